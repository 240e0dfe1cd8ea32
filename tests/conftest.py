"""For every test: nothing that a test started outlives the run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.objects.bucket_mounts import detach

# A shell that starts a command in the background (`nohup make test &`) lets it ignore SIGINT, and so all its children:
# what tests interrupt would not hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes skipped tests for scripts/skipped-tests."""
    notes = os.environ.get("CORRAL_SKIPPED_TESTS")
    # Those of a worker are reported a second time, by the process that started it.
    if report.skipped and notes and "PYTEST_XDIST_WORKER" not in os.environ and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ").replace("\n", " ")
        path = Path(notes)
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(f"{reason}\t{report.nodeid}\n")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Excludes the modules that are loaded now from garbage collection: searching them took a tenth of the unit run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_jobs_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jobs outlive their server, which is the point of it; those of the tests must not outlive the tests."""
    yield
    # Those who keep buckets mounted, too.
    marks = [f"{name}={tmp_path_factory.getbasetemp()}".encode() for name in ("CORRAL_RUN_DIR", "CORRAL_OBJECTS_DIR")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes()
            if any(mark in environ for mark in marks):
                os.kill(int(process.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended by itself, or is not ours
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split()[4]
        if place.startswith(f"{tmp_path_factory.getbasetemp()}/"):
            detach(place)
