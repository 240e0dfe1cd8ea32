"""For every test: nothing that a test started outlives the run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is read now is for good. To look through it for garbage again and again was a tenth of the unit run."""
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
    mark = f"CORRAL_RUN_DIR={tmp_path_factory.getbasetemp()}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended by itself, or is not ours
