"""`corral health`: active checks of GPUs, their results, and texts for repair tickets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.hints import none_found
from corral.cli.terminal.terminal import Terminal, command

if TYPE_CHECKING:
    from corral.client import Client
    from corral.client.views import HealthCheckView

app = typer.Typer(help="Check GPUs actively, and see the results.", no_args_is_help=True)

TITLES = ("JOB", "GPU~", "MODEL?", "STATE!", "CAUSE", "WHEN", "FOUND~")
POLL_SECONDS = 1.0
#: What `--wait` ends with.
_CODES = {"passed": 0, "failed": 1, "unknown": 1}


@command(
    app,
    "run",
    examples=[
        "corral health run a10-001",
        "corral health run a10-001-gpu0 --checks compute,memory --wait",
    ],
)
def run(
    terminal: Terminal,
    target: Annotated[str, typer.Argument(metavar="NODE|GPU", help="A GPU, or a node: all its GPUs.")],
    checks: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Any of compute, memory, pcie, disk, network and dcgm, with commas."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until all are over; exit code 1 unless all have passed.")
    ] = False,
) -> None:
    """Check a GPU or a node by jobs of the lowest priority (operators). A suspect or failed GPU that passes returns."""
    names = None if checks is None else [name.strip() for name in checks.split(",") if name.strip()]
    with terminal.client() as client:
        begun = client.fleet.run_health_checks(target, names)["items"]
        found = _ended(client, begun) if wait else begun
    if terminal.as_json:
        terminal.json({"items": found})
    else:
        now = terminal.now()
        terminal.table(TITLES, found, lambda check: _row(check, now), empty="Nothing is checked.")
    if wait and any(_CODES[check["state"]] for check in found):
        raise typer.Exit(1)


@command(
    app,
    "ls",
    examples=["corral health ls", "corral health ls --gpu a10-001-gpu0", "corral health ls --node a10-001 -o json"],
)
def list_checks(
    terminal: Terminal,
    gpu: Annotated[str | None, typer.Option(metavar="GPU", help="Only of this GPU.")] = None,
    node: Annotated[str | None, typer.Option(metavar="NODE", help="Only of this node.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, metavar="N", help="At most N checks.")] = 50,
) -> None:
    """List checks with their results, the newest first."""
    with terminal.client() as client:
        found = [check for check, _ in zip(client.fleet.health_checks(gpu=gpu, node=node), range(limit), strict=False)]
        hint = "Check one: corral health run NODE"
        empty = "" if terminal.as_json else none_found(client, found, "No GPU was checked yet.", hint)
    now = terminal.now()
    terminal.table(TITLES, found, lambda check: _row(check, now), empty=empty)


@command(
    app, "ticket", examples=["corral health ticket a10-001-gpu0", "corral health ticket a10-001-gpu0 > ticket.txt"]
)
def ticket(
    terminal: Terminal,
    gpu: Annotated[str, typer.Argument(metavar="GPU", help="A GPU's id, from `corral gpus`.")],
) -> None:
    """Write the text of a repair ticket: the GPU's place, the evidence and its latest checks (operators)."""
    with terminal.client() as client:
        view = client.fleet.repair_ticket(gpu)
    terminal.answer(view, view["text"])


def _ended(client: Client, begun: Sequence[HealthCheckView]) -> list[HealthCheckView]:
    jobs = {check["job"] for check in begun}
    node = begun[0]["node"]
    while True:
        found = {
            check["job"]: check for check, _ in zip(client.fleet.health_checks(node=node), range(500), strict=False)
        }
        of_these = [found[job] for job in sorted(jobs) if job in found]
        if len(of_these) == len(jobs) and all(check["state"] != "open" for check in of_these):
            return of_these
        time.sleep(POLL_SECONDS)


def _row(check: HealthCheckView, now: float) -> Sequence[str]:
    measured = [f"{item['metric']} {item['value']:.4g}" for item in check["measurements"]]
    problems = [problem["text"] for problem in check["problems"]]
    simulated = ["by the processor"] if check["is_simulated"] and measured else []
    return (
        check["job"],
        check["gpu"],
        check["model"],
        check["state"],
        check["cause"],
        formats.ago(check["ended_at"] or check["requested_at"], now),
        "; ".join([*problems, *measured, *simulated, *(check["skipped"] if not measured else [])]),
    )
