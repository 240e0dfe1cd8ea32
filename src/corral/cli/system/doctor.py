"""`corral doctor`: checks the set-up, and shows how to fix problems.

Each check is one small function that returns a Finding; `CHECKS` lists them. A check never raises: an error in a check
is itself a finding.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from corral.cli.entry import own_version
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ClientError, NotSignedIn, ServerUnreachable
from corral.core.counts import counted
from corral.core.visible_text import visible

if TYPE_CHECKING:
    from corral.server.settings.settings import Settings

app = typer.Typer()

OLDEST_PYTHON = (3, 11)
LOW_DISK_BYTES = 2 * 1024**3
NO_DISK_BYTES = 100 * 1024**2
CLOCK_SECONDS = 5.0


class Verdict(StrEnum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    check: str
    verdict: Verdict
    detail: str
    #: how to fix it
    fix: str = ""


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


def _ok(check: str, detail: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, detail=detail)


def _warn(check: str, detail: str, fix: str = "") -> Finding:
    return Finding(check=check, verdict=Verdict.WARN, detail=detail, fix=fix)


def _fail(check: str, detail: str, fix: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAIL, detail=detail, fix=fix)


def python_version(terminal: Terminal) -> Finding:
    running = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < OLDEST_PYTHON:
        return _fail("Python", f"{running} is too old", "Install Python 3.11 or newer and run `make setup` again.")
    return _ok("Python", running)


def _settings() -> Settings | str:
    """The settings of a server on this machine, or the error in them."""
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import load_settings

    try:
        return load_settings()
    except ConfigError as error:
        return str(error.problems[0])


def configuration(terminal: Terminal) -> Finding:
    settings = _settings()
    if isinstance(settings, str):
        return _fail("Configuration", settings, "Fix that line; `corral config check FILE` checks it again.")
    return _ok("Configuration", str(settings.config_file or "defaults"))


def _home() -> Path:
    from corral.server.settings.settings_sources import default_home

    settings = _settings()
    if not isinstance(settings, str):
        return settings.home
    return Path(os.environ["CORRAL_HOME"]) if os.environ.get("CORRAL_HOME") else default_home(os.environ)


def _existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def home_writable(terminal: Terminal) -> Finding:
    home = _home()
    place = _existing(home)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return _fail(
            "Home", f"{home} cannot be written", "Set CORRAL_HOME to a directory of yours, or change its owner."
        )
    return _ok("Home", f"{home}" if place == home else f"{home} (will be created)")


def free_disk(terminal: Terminal) -> Finding:
    free = shutil.disk_usage(_existing(_home())).free
    detail = f"{formats.size(free)} free for {_home()}"
    fix = "Make room, or set CORRAL_HOME to a larger disk."
    if free < NO_DISK_BYTES:
        return _fail("Disk", detail, fix)
    return _warn("Disk", detail, fix) if free < LOW_DISK_BYTES else _ok("Disk", detail)


def disk_limits(terminal: Terminal) -> Finding:
    """The disk limits of jobs, and how they are enforced."""
    from corral.server.settings.disk_limits import disk_limits as limits_of

    settings = _settings()
    if isinstance(settings, str) or not settings.home.is_dir():
        return _warn("Disk limits", "not checked: there is no home, or the configuration cannot be used")
    limits = limits_of(settings)
    job = "no limit" if limits.job_bytes is None else formats.size(limits.job_bytes)
    files = "any number of files" if limits.job_files is None else counted(limits.job_files, "file")
    detail = (
        f"a job: {job}, {files}, measured every few seconds; nothing is launched with less than "
        f"{formats.size(limits.min_free_bytes)} free; {formats.size(limits.reserve_bytes)} in reserve"
    )
    if limits.job_bytes is None or not limits.reserve_bytes or not limits.min_free_bytes:
        return _warn("Disk limits", detail, "One job can fill the disk: set disk.job_limit, min_free and reserve.")
    return _ok("Disk limits", detail)


def file_system(terminal: Terminal) -> Finding:
    """An SQLite store must be on a local disk: over a network, its locks and its log are not reliable."""
    from corral.server.system.file_systems import network_file_system

    settings = _settings()
    url = "" if isinstance(settings, str) else settings.database_url
    if url.startswith("postgres"):
        kind = network_file_system(_existing(_home()))
        return _ok("File system", f"the home is on {kind or 'a local disk'}, the store in PostgreSQL")
    store = Path(url.removeprefix("sqlite:///")) if url else _home() / "corral.db"
    kind = network_file_system(_existing(store))
    if kind is None:
        return _ok("File system", f"{store} is on a local disk")
    fix = "Set storage.database to sqlite:////var/lib/corral/corral.db on a local disk, or use PostgreSQL."
    return _fail("File system", f"{store} is on a network file system ({kind}), where a store can be damaged", fix)


def database(terminal: Terminal) -> Finding:
    settings = _settings()
    if isinstance(settings, str):
        return _warn("Database", "not checked: the configuration cannot be used")
    url = settings.database_url
    if not url.startswith("postgres"):
        return _ok("Database", "SQLite, in the home")
    try:
        import psycopg
    except ModuleNotFoundError:
        return _fail("Database", "the driver of PostgreSQL is not installed", "pip install 'corral[postgres]'")

    try:
        with psycopg.connect(url.replace("+psycopg", ""), connect_timeout=5) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return _fail(
            "Database",
            f"PostgreSQL cannot be reached: {reason}",
            "Start it, or correct storage.database in corral.yaml.",
        )
    return _ok("Database", f"PostgreSQL {version // 10000}")


def server_reachable(terminal: Terminal) -> Finding:
    try:
        with terminal.client() as client:
            about = client.system.about()
    except ServerUnreachable as error:
        return _fail("Server", error.message, "Start it with `corral up`, or set CORRAL_SERVER.")
    except NotSignedIn:
        return _ok("Server", f"{terminal.server} answers")
    except ClientError as error:
        return _fail("Server", error.message, error.hint or "See the server's log.")
    if about["version"] != own_version():
        return _warn(
            "Server",
            f"{terminal.server} has version {about['version']}, this command {own_version()}",
            "Use the same version on both sides.",
        )
    return _ok(
        "Server", f"{terminal.server}, version {about['version']}, up {formats.duration(about['uptime_seconds'])}"
    )


def platform_parts(terminal: Terminal) -> Finding:
    """The parts of the platform, as the server reports them."""
    try:
        with terminal.client() as client:
            failing = [part for part in client.system.about()["parts"] if not part["healthy"]]
            is_operator = client.people.me()["role"] == "operator"
    except ClientError:
        return _warn("Parts", "not checked: the server did not answer")
    if not failing:
        return _ok("Parts", "every part of the platform works")
    fix = "`corral cluster` shows since when; `corral cluster log PART` its log." if is_operator else "Ask an operator."
    return _fail("Parts", "; ".join(f"{part['name']}: {part['detail']}" for part in failing), fix)


def signed_in(terminal: Terminal) -> Finding:
    try:
        with terminal.client() as client:
            me = client.people.me()
    except NotSignedIn:
        return _fail("Sign-in", "not signed in", "Run `corral login`.")
    except ServerUnreachable:
        return _warn("Sign-in", "not checked: the server cannot be reached")
    except ClientError as error:
        return _fail("Sign-in", error.message, error.hint or "Run `corral login`.")
    if me["must_change_password"]:
        return _warn("Sign-in", f"{me['name']} still has the one-time password", "Run `corral passwd`.")
    return _ok("Sign-in", f"{me['name']} ({me['role']})")


def clock(terminal: Terminal) -> Finding:
    """Tables show times relative to this machine's clock, so it must agree with the server's."""
    try:
        with terminal.client() as client:
            before = terminal.now()
            about = client.system.about()
    except ClientError:
        return _warn("Clock", "not compared: the server did not answer")
    server_now = formats.moment(about["started_at"]) + about["uptime_seconds"]
    off = server_now - (before + terminal.now()) / 2
    if abs(off) > CLOCK_SECONDS:
        return _warn("Clock", f"the server's clock is {off:+.0f} s off from this machine's", "Let NTP set both clocks.")
    return _ok("Clock", "agrees with the server's")


def gpus(terminal: Terminal) -> Finding:
    import pynvml  # type: ignore[import-untyped]

    fix = "Install the NVIDIA driver; to try things out use `corral up --virtual-gpus 8xA100-80G`."
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _warn("GPUs", f"NVML finds none ({error}); a server here uses virtual ones", fix)
    try:
        count, driver = pynvml.nvmlDeviceGetCount(), pynvml.nvmlSystemGetDriverVersion()
        names = sorted({str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i))) for i in range(count)})
    except pynvml.NVMLError as error:
        return _warn(
            "GPUs", f"NVML is installed but fails: {error}", "`nvidia-smi` should list the GPUs; reboot if not."
        )
    finally:
        pynvml.nvmlShutdown()
    return _ok("GPUs", f"{count} ({formats.listed(names)}), driver {driver}")


def cgroup_limits(terminal: Terminal) -> Finding:
    from corral.engines.local.cgroups import cgroup_support

    support = cgroup_support()
    if not support.writable:
        return _warn(
            "Limits",
            f"memory and CPU limits of jobs are not enforced: {support.detail}",
            "Run the server as a systemd unit with Delegate=yes, or as root.",
        )
    if not support.pids:
        return _warn(
            "Limits",
            f"enforced by cgroup {support.detail}, but nothing limits how many processes a job starts",
            "Give the server's group the pids controller: under systemd, Delegate=yes does.",
        )
    return _ok("Limits", f"enforced by cgroup {support.detail}")


def gpu_shares(terminal: Terminal) -> Finding:
    """Whether the server enforces shares of GPUs."""
    try:
        with terminal.client() as client:
            known = client.system.about().get("gpu_shares")
    except ClientError:
        return _warn("Shares of GPUs", "not known without a server", "Start one: `corral up`.")
    if known is None:
        return _warn("Shares of GPUs", "the server does not report it: it has an older version")
    return _ok("Shares of GPUs", known["detail"])


def isolation(terminal: Terminal) -> Finding:
    """The isolation that the server reports; without a server, that of a server on this machine."""
    try:
        with terminal.client() as client:
            known = client.system.about().get("isolation")
        if known is None:
            return _warn("Isolation", "the server does not report it: it has an older version")
        separation, detail = known["separation"], known["detail"]
    except ClientError:
        from corral.server.system.isolation import account_rules, separated

        settings = _settings()
        if isinstance(settings, str):
            return _warn("Isolation", "not checked: the configuration cannot be used")
        here = separated(account_rules(settings) if os.geteuid() == 0 else None)
        separation, detail = here.separation.value, here.detail
    if separation == "single_user":
        return _warn("Isolation", detail, "For several users run it as root: `corral init server` writes the unit.")
    if separation == "shared_accounts":
        return _warn("Isolation", detail, "Give each user an account of the machine (local.run_as).")
    return _ok("Isolation", detail)


def containers(terminal: Terminal) -> Finding:
    from corral.engines.local.cgroups import cgroup_support
    from corral.engines.local.containers.container_runtime import find_runtime

    runtime = find_runtime(cgroup_support(), os.environ)
    if runtime is None:
        return _warn("Containers", "jobs with an image cannot run here", "Install Podman, or Docker with its daemon.")
    gpus_by = "GPUs by CDI" if runtime.cdi_devices else "no CDI specification of GPUs"
    return _ok("Containers", f"{runtime.detail}, {gpus_by}")


def slurm_accounts(terminal: Terminal) -> Finding:
    settings = _settings()
    if isinstance(settings, str):
        return _warn("Slurm", "not checked: the configuration cannot be used")
    names = [cluster.name for cluster in settings.cluster if cluster.engine == "slurm"]
    if not names:
        return _ok("Slurm", "no cluster of it is configured")
    from corral.engines.slurm.root_users import REMEDY, root_on_nodes
    from corral.server.system.isolation import account_rules

    if who := root_on_nodes(account_rules(settings) if os.geteuid() == 0 else None):
        return _warn("Slurm", f"{formats.listed(names)}: {who}", f"{REMEDY[0].upper()}{REMEDY[1:]}.")
    return _ok("Slurm", f"{formats.listed(names)}: no job is root on the nodes")


def kubernetes_rights(terminal: Terminal) -> Finding:
    """Whether each Kubernetes cluster can be reached, and which rights are missing there."""
    settings = _settings()
    if isinstance(settings, str):
        return _warn("Kubernetes", "not checked: the configuration cannot be used")
    found = [cluster for cluster in settings.cluster if cluster.engine == "kubernetes"]
    if not found:
        return _ok("Kubernetes", "no cluster of it is configured")
    from corral.engines.kubernetes.api.client import ApiClient, ApiError, ApiUnavailable
    from corral.engines.kubernetes.api.kubeconfig import KubeconfigError
    from corral.engines.kubernetes.api.rights import missing_in
    from corral.engines.kubernetes.attempts.pod_rules import NO_HOME
    from corral.engines.kubernetes.cluster_checks import check_cluster
    from corral.engines.kubernetes.factory import access_of, namespace_of, rules_of

    missing: list[str] = []
    versions: list[str] = []
    is_needed = False
    homeless = [cluster.name for cluster in found if cluster.kubernetes.home is None]
    for cluster in found:
        try:
            access = access_of(cluster.kubernetes)
            rules = rules_of(cluster.kubernetes, namespace_of(cluster.kubernetes, access), 0)
            api = ApiClient(access)
            places = f"namespace{'s' if len(rules.namespaces) > 1 else ''} {', '.join(rules.namespaces)}"
            versions.append(f"{cluster.name}: {api.get('/version')['gitVersion']}, {places}")
            for namespace, right in missing_in(api, rules.namespaces):
                where = f" in {namespace}" if namespace and len(rules.namespaces) > 1 else ""
                missing.append(f"{cluster.name}: {right}{where} (to {right.purpose})")
                is_needed |= not right.is_optional
            findings = check_cluster(api, rules)
            if failed := next((one for one in findings if one.verdict == "FAIL" and one.check != "Rights"), None):
                return _fail("Kubernetes", f"{cluster.name}: {failed.check}: {failed.detail}", failed.fix)
        except (KubeconfigError, ApiError, ApiUnavailable) as error:
            return _fail("Kubernetes", f"{cluster.name}: {error}", "Correct cluster.kubernetes in corral.yaml.")
    if missing:
        fix = "Give the account of the kubeconfig these rights by a Role, or by a ClusterRole for all namespaces."
        return (_fail if is_needed else _warn)("Kubernetes", f"rights are missing: {'; '.join(missing)}", fix)
    if homeless:
        fix = "Set cluster.kubernetes.home to a claim that the server has mounted, too (the chart's home.shared)."
        return _warn("Kubernetes", f"{', '.join(homeless)}: {NO_HOME}", fix)
    return _ok("Kubernetes", "; ".join(versions))


CLIENT_CHECKS: tuple[Callable[[Terminal], Finding], ...] = (
    python_version,
    server_reachable,
    signed_in,
    platform_parts,
    clock,
)
CHECKS: tuple[Callable[[Terminal], Finding], ...] = (
    python_version,
    configuration,
    home_writable,
    free_disk,
    file_system,
    disk_limits,
    database,
    gpus,
    cgroup_limits,
    gpu_shares,
    isolation,
    containers,
    slurm_accounts,
    kubernetes_rights,
    *CLIENT_CHECKS[1:],
)
