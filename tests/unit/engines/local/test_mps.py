"""The daemons of NVIDIA's MPS, with a program that stands in for them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.engines.attempts.accounts import Account
from corral.engines.local.mps import PROGRAM, Mps

#: Like the real one: its exit code is 0 in any case, and it answers only while the daemon runs.
STAND_IN = """#!/bin/sh
if [ "$1" = -d ]; then
  echo "$(id -u)" >> PLACE/calls
  [ -e PLACE/broken ] || touch "$CUDA_MPS_PIPE_DIRECTORY/runs"
  exit 0
fi
read question
if [ -e "$CUDA_MPS_PIPE_DIRECTORY/runs" ]; then echo 100.0; else echo Cannot find MPS control daemon process; fi
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Other accounts reach it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


def daemons(place: Path) -> Mps:
    program = place / "bin" / PROGRAM
    program.parent.mkdir()
    program.write_text(STAND_IN.replace("PLACE", str(place)))
    program.chmod(0o755)
    (place / "calls").touch()
    (place / "calls").chmod(0o666)
    return Mps(str(place / "mps"), {"PATH": f"{program.parent}:/usr/bin:/bin"})


def calls(place: Path) -> list[str]:
    return (place / "calls").read_text().split()


def test_a_daemon_is_started_once_and_again_after_its_death(place: Path) -> None:
    mps = daemons(place)
    pipe = mps.pipe_of(None)
    assert pipe == str(place / "mps" / str(os.geteuid()) / "pipe")
    assert mps.pipe_of(None) == pipe
    assert len(calls(place)) == 1
    (Path(pipe) / "runs").unlink()
    assert mps.pipe_of(None) == pipe
    assert len(calls(place)) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs as other accounts: run as root")
def test_each_account_has_a_daemon_of_its_own_that_others_do_not_reach(place: Path) -> None:
    mps = daemons(place)
    one, two = (Account(name=f"a{uid}", uid=uid, gid=uid, groups=(uid,)) for uid in (48_601, 48_602))
    pipes = [Path(mps.pipe_of(account)) for account in (one, two, one)]
    assert pipes[0] == pipes[2] != pipes[1]
    assert calls(place) == ["48601", "48602"]
    for account, pipe in ((one, pipes[0]), (two, pipes[1])):
        about = pipe.parent.stat()
        assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (account.uid, 0o700)


def test_without_it_shares_are_not_enforced_and_the_operator_is_notified(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Mps(str(place / "mps"), {"PATH": str(place)}).pipe_of(None) == ""
    mps = daemons(place)
    (place / "broken").touch()
    assert mps.pipe_of(None) == ""
    texts = [record.message for record in caplog.records]
    assert ["no effect" in texts[0], "not enforced" in texts[1]] == [True, True]
