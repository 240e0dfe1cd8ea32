"""Checks of this machine: Python, settings, home, disk, store, GPUs and limits of jobs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from corral.cli.system.doctor_checks.findings import Finding, existing, fail, local_home, local_settings, ok, warn
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal
from corral.core.counts import counted

OLDEST_PYTHON = (3, 11)
LOW_DISK_BYTES = 2 * 1024**3
NO_DISK_BYTES = 100 * 1024**2


def python_version(terminal: Terminal) -> Finding:
    running = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < OLDEST_PYTHON:
        return fail("Python", f"{running} is too old", "Install Python 3.11 or newer and run `make setup` again.")
    return ok("Python", running)


def configuration(terminal: Terminal) -> Finding:
    settings = local_settings()
    if isinstance(settings, str):
        return fail("Configuration", settings, "Fix that line; `corral config check FILE` checks it again.")
    return ok("Configuration", str(settings.config_file or "defaults"))


def home_writable(terminal: Terminal) -> Finding:
    home = local_home()
    place = existing(home)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return fail(
            "Home", f"{home} cannot be written", "Set CORRAL_HOME to a directory of yours, or change its owner."
        )
    return ok("Home", f"{home}" if place == home else f"{home} (will be created)")


def free_disk(terminal: Terminal) -> Finding:
    free = shutil.disk_usage(existing(local_home())).free
    detail = f"{formats.size(free)} free for {local_home()}"
    fix = "Make room, or set CORRAL_HOME to a larger disk."
    if free < NO_DISK_BYTES:
        return fail("Disk", detail, fix)
    return warn("Disk", detail, fix) if free < LOW_DISK_BYTES else ok("Disk", detail)


def disk_limits(terminal: Terminal) -> Finding:
    """The disk limits of jobs, and how they are enforced."""
    from corral.server.settings.disk_limits import disk_limits as limits_of

    settings = local_settings()
    if isinstance(settings, str) or not settings.home.is_dir():
        return warn("Disk limits", "not checked: there is no home, or the configuration cannot be used")
    limits = limits_of(settings)
    job = "no limit" if limits.job_bytes is None else formats.size(limits.job_bytes)
    files = "any number of files" if limits.job_files is None else counted(limits.job_files, "file")
    detail = (
        f"a job: {job}, {files}, measured every few seconds; nothing is launched with less than "
        f"{formats.size(limits.min_free_bytes)} free; {formats.size(limits.reserve_bytes)} in reserve"
    )
    if limits.job_bytes is None or not limits.reserve_bytes or not limits.min_free_bytes:
        return warn("Disk limits", detail, "One job can fill the disk: set disk.job_limit, min_free and reserve.")
    return ok("Disk limits", detail)


def file_system(terminal: Terminal) -> Finding:
    """An SQLite store must be on a local disk: over a network, its locks and its log are not reliable."""
    from corral.server.system.file_systems import network_file_system

    settings = local_settings()
    url = "" if isinstance(settings, str) else settings.database_url
    if url.startswith("postgres"):
        kind = network_file_system(existing(local_home()))
        return ok("File system", f"the home is on {kind or 'a local disk'}, the store in PostgreSQL")
    store = Path(url.removeprefix("sqlite:///")) if url else local_home() / "corral.db"
    kind = network_file_system(existing(store))
    if kind is None:
        return ok("File system", f"{store} is on a local disk")
    fix = "Set storage.database to sqlite:////var/lib/corral/corral.db on a local disk, or use PostgreSQL."
    return fail("File system", f"{store} is on a network file system ({kind}), where a store can be damaged", fix)


def database(terminal: Terminal) -> Finding:
    settings = local_settings()
    if isinstance(settings, str):
        return warn("Database", "not checked: the configuration cannot be used")
    url = settings.database_url
    if not url.startswith("postgres"):
        return ok("Database", "SQLite, in the home")
    try:
        import psycopg
    except ModuleNotFoundError:
        return fail("Database", "the driver of PostgreSQL is not installed", "pip install 'corral[postgres]'")

    try:
        with psycopg.connect(url.replace("+psycopg", ""), connect_timeout=5) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return fail(
            "Database",
            f"PostgreSQL cannot be reached: {reason}",
            "Start it, or correct storage.database in corral.yaml.",
        )
    return ok("Database", f"PostgreSQL {version // 10000}")


def gpus(terminal: Terminal) -> Finding:
    import pynvml  # type: ignore[import-untyped]

    if found := _amd_gpus():
        return found
    fix = "Install the NVIDIA driver; to try things out use `corral up --virtual-gpus 8xA100-80G`."
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return warn("GPUs", f"NVML finds none ({error}); a server here uses virtual ones", fix)
    try:
        count, driver = pynvml.nvmlDeviceGetCount(), pynvml.nvmlSystemGetDriverVersion()
        names = sorted({str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i))) for i in range(count)})
    except pynvml.NVMLError as error:
        return warn(
            "GPUs", f"NVML is installed but fails: {error}", "`nvidia-smi` should list the GPUs; reboot if not."
        )
    finally:
        pynvml.nvmlShutdown()
    return ok("GPUs", f"{count} ({formats.listed(names)}), driver {driver}")


def _amd_gpus() -> Finding | None:
    """AMD's GPUs; None on a machine without them, or with NVIDIA's, which are used then."""
    from corral.engines.local.amd_gpus import find_amd_gpus
    from corral.engines.local.fleet import discover_gpus
    from corral.telemetry.amd.sources import find_source

    amd = find_amd_gpus()
    if not amd or discover_gpus():
        return None
    models = formats.listed(sorted({each.gpu.model for each in amd}))
    detail = f"{len(amd)} of AMD ({models}), which corral supports without a trial on such hardware"
    source = find_source()
    if source is None:
        return warn("GPUs", f"{detail}; no tool reads them", "Install amd-smi of ROCm, or the package amdsmi.")
    source.close()
    return ok("GPUs", f"{detail}; read by {source.name}")
