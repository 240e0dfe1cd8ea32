"""The daemons of NVIDIA's MPS, with a program that stands in for them."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import Instance, LaunchOrder
from corral.engines.attempts.accounts import Account
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import VirtualFleet
from corral.engines.local.mps import PROGRAM, Mps
from corral.engines.local.virtual import build_nodes, parse_virtual_nodes

#: Like the real one: its exit code is 0 in any case, and it answers only while the daemon runs.
STAND_IN = """#!/bin/sh
if [ "$1" = -d ]; then
  echo "$(id -u)" >> PLACE/calls
  [ -e PLACE/broken ] || touch "$CUDA_MPS_PIPE_DIRECTORY/runs"
  exit 0
fi
read question
[ -e PLACE/hangs ] && exec sleep 600
[ -e PLACE/dawdles ] && sleep 0.5 && echo "$(id -u)" >> PLACE/calls && exec echo no number
[ -e PLACE/floods ] && exec cat /dev/zero
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


def test_an_account_whose_daemon_hangs_is_not_asked_at_each_launch(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything in the directory belongs to the account: its owner decides whether anything answers."""
    monkeypatch.setattr("corral.engines.local.mps._ANSWER_SECONDS", 0.2)
    mps = daemons(place)
    assert mps.pipe_of(None)
    (place / "hangs").touch()
    assert [mps.pipe_of(None) for _ in range(5)] == [""] * 5
    assert len(caplog.records) == 1
    (place / "hangs").unlink()
    assert mps.pipe_of(None) == ""
    monkeypatch.setattr(mps, "_again_at", {})
    assert mps.pipe_of(None)


def test_an_account_whose_daemon_fails_late_is_not_asked_at_each_launch(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers just in time, each time with something else."""
    monkeypatch.setattr("corral.engines.local.mps._LATE_SECONDS", 0.2)
    mps = daemons(place)
    assert mps.pipe_of(None)
    (place / "dawdles").touch()
    assert mps.pipe_of(None) == ""
    asked = len(calls(place))
    assert [mps.pipe_of(None) for _ in range(5)] == [""] * 5
    assert len(calls(place)) == asked


def test_an_answer_without_an_end_is_none(place: Path) -> None:
    mps = daemons(place)
    assert mps.pipe_of(None)
    (place / "floods").touch()
    assert mps.pipe_of(None) == ""


def test_no_other_call_waits_for_the_program_of_one_account(tmp_path: Path) -> None:
    """While a launch waits for an answer, the engine shows, stops and starts everything else."""
    asked, answered = threading.Event(), threading.Event()

    class Slow:
        def pipe_of(self, account: Account | None) -> str:
            asked.set()
            assert answered.wait(60)
            return ""

    fleet = VirtualFleet(build_nodes(parse_virtual_nodes("1x2xA10"), host="n"))
    engine = LocalEngine(root=tmp_path / "engine", fleet=fleet, isolation=Isolation(share_limits=Slow()))
    share = Instance(rank=0, node="n", gpu_ids=("GPU-1",), gpu_indexes=(0,), gpu_milli=500)
    order = LaunchOrder(attempt_id="j-1.1", job_id="j-1", user="eve", command=("true",), instances=(share,))
    launch = threading.Thread(target=engine.launch, args=(order,))
    launch.start()
    try:
        assert asked.wait(60)
        seen = threading.Thread(target=engine.observe)
        seen.start()
        seen.join(30)
        assert not seen.is_alive(), "it waits for the launch"
    finally:
        answered.set()
        launch.join(60)
        engine.close()
