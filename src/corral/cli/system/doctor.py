"""`corral doctor`: checks the set-up, and shows how to fix problems. `CHECKS` lists the checks in their order."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import typer

from corral.cli.system.doctor_checks import engine_checks, machine_checks, server_checks
from corral.cli.system.doctor_checks.findings import Finding, Verdict
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.core.visible_text import visible

app = typer.Typer()


@command(app, "doctor", section=Section.SETUP, examples=["corral doctor", "corral doctor -o json"])
def doctor(terminal: Terminal) -> None:
    """Check the set-up of this machine and of the server, and show how to fix problems."""
    findings = [check(terminal) for check in (CHECKS if _has_server() else CLIENT_CHECKS)]
    failed = sum(finding.verdict is Verdict.FAIL for finding in findings)
    warned = sum(finding.verdict is Verdict.WARN for finding in findings)
    if terminal.as_json:
        terminal.json(
            {
                "items": [
                    {"check": f.check, "verdict": str(f.verdict), "detail": f.detail, "fix": f.fix} for f in findings
                ],
                "healthy": not failed,
            }
        )
    else:
        for finding in findings:
            colour = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red"}[finding.verdict]
            typer.echo(
                f"{typer.style(f'{finding.verdict:<4}', fg=colour)}  {finding.check:<14}  {visible(finding.detail)}"
            )
            if finding.fix:
                typer.echo(f"{'':22}fix: {visible(finding.fix)}")
        summary = ", ".join([formats.count(failed, "failure"), formats.count(warned, "warning")])
        typer.echo(f"\n{summary}." if failed or warned else "\nEverything is in place.")
    if failed:
        raise typer.Exit(1)


def _has_server() -> bool:
    """Whether this installation can run a server; a light client checks itself and the server that it talks to."""
    return find_spec("fastapi") is not None


CLIENT_CHECKS: tuple[Callable[[Terminal], Finding], ...] = (
    machine_checks.python_version,
    server_checks.server_reachable,
    server_checks.signed_in,
    server_checks.platform_parts,
    server_checks.clock,
)
CHECKS: tuple[Callable[[Terminal], Finding], ...] = (
    machine_checks.python_version,
    machine_checks.configuration,
    machine_checks.home_writable,
    machine_checks.free_disk,
    machine_checks.file_system,
    machine_checks.disk_limits,
    machine_checks.database,
    machine_checks.gpus,
    engine_checks.cgroup_limits,
    engine_checks.gpu_shares,
    engine_checks.isolation,
    engine_checks.containers,
    engine_checks.slurm_accounts,
    engine_checks.kubernetes_rights,
    *CLIENT_CHECKS[1:],
)
