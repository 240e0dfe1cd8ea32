"""Starting NVIDIA's MPS, with a program that stands in for its daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.engines.local.mps import PROGRAM, start_mps


def daemon(tmp_path: Path, text: str) -> dict[str, str]:
    program = tmp_path / "bin" / PROGRAM
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin"}


def test_the_daemon_is_started_once_and_found_again(tmp_path: Path) -> None:
    env = daemon(
        tmp_path, f'echo "$1" >> {tmp_path}/calls; echo {os.getpid()} > $CUDA_MPS_PIPE_DIRECTORY/{PROGRAM}.pid'
    )
    pipe = start_mps(str(tmp_path / "mps"), env)
    assert pipe == str(tmp_path / "mps" / "pipe")
    assert start_mps(str(tmp_path / "mps"), env) == pipe
    assert (tmp_path / "calls").read_text() == "-d\n"
    (Path(pipe) / f"{PROGRAM}.pid").write_text("no number")
    start_mps(str(tmp_path / "mps"), env)
    assert (tmp_path / "calls").read_text() == "-d\n-d\n"


def test_without_it_shares_are_not_enforced_and_the_operator_is_notified(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert start_mps(str(tmp_path / "mps"), {"PATH": str(tmp_path)}) == ""
    assert start_mps(str(tmp_path / "mps"), daemon(tmp_path, "exit 1")) == ""
    assert [record.message for record in caplog.records if "local.mps has no effect" in record.message]
    assert len(caplog.records) == 2
