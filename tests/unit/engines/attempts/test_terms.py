"""Engines obey the server with the latest term, and supervisors too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.control.ports import EngineUnavailable, Fenced, Instance, LaunchOrder, Leadership
from corral.engines.attempts.json_files import write_json
from corral.engines.attempts.terms import read_term, write_term
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import fleet_for
from corral.engines.local.rundir import STOP
from tests.integration.waiting import wait_until


def order(attempt_id: str, *command: str) -> LaunchOrder:
    return LaunchOrder(
        attempt_id=attempt_id,
        job_id=attempt_id.partition(".")[0],
        user="ann",
        command=command,
        instances=(Instance(rank=0, node="node-1"),),
        grace_seconds=5.0,
    )


def lead(term: int) -> Leadership:
    return Leadership(term=term, installation="here")


def engine_in(root: Path) -> LocalEngine:
    return LocalEngine(root=root, fleet=fleet_for(virtual_gpus="2xA10", drill_directory=root))


def phases(engine: LocalEngine) -> dict[str, str]:
    return {one.attempt_id: one.phase for one in engine.observe().attempts}


def test_a_term_only_grows(tmp_path: Path) -> None:
    path = str(tmp_path / "term")
    assert read_term(path) == 0
    write_term(path, 5)
    write_term(path, 3)
    assert read_term(path) == 5
    Path(path).write_bytes(b"")
    assert read_term(path) == 0, "the machine lost power: any server may begin"


def test_an_engine_of_an_older_term_starts_and_stops_nothing(tmp_path: Path) -> None:
    old, new = engine_in(tmp_path / "root"), engine_in(tmp_path / "root")
    try:
        assert isinstance(old, Fenced)
        old.lead(lead(1))
        old.launch(order("j-1.1", "sleep", "60"))
        wait_until(lambda: phases(old) == {"j-1.1": "running"}, "it runs")
        assert new.term_seen() == 1
        new.lead(lead(2))
        for call in (
            lambda: old.launch(order("j-2.1", "true")),
            lambda: old.stop("j-1.1", 0.0),
            lambda: old.observe(),
        ):
            with pytest.raises(EngineUnavailable, match="another server has taken over"):
                call()
        assert phases(new) == {"j-1.1": "running"}, "the new one has found it, and it goes on"
        # What the old one had on its way: an order to stop, written before it noticed.
        write_json(os.path.join(new._layout.attempt_dir("j-1.1"), STOP), {"grace_seconds": 0.0, "term": 1})
        old._files.stop(old._tracked["j-1.1"], 0.0, term=1)
        new.launch(order("j-3.1", "true"))
        wait_until(
            lambda: any(one.attempt_id == "j-3.1" and one.phase == "ended" for one in new.observe().attempts), ""
        )
        assert {one.attempt_id: one.phase for one in new.observe().attempts}["j-1.1"] == "running"
        new.stop("j-1.1", 0.0)
        wait_until(lambda: all(one.phase == "ended" for one in new.observe().attempts), "the new one ends it")
    finally:
        old.close()
        new.close()


def test_a_launch_that_was_on_its_way_comes_to_nothing(tmp_path: Path) -> None:
    engine = engine_in(tmp_path / "root")
    touched = tmp_path / "touched"
    try:
        engine.lead(lead(1))
        # The other server takes over between the engine's look and the supervisor's.
        engine._check_open = lambda: None  # type: ignore[method-assign]
        write_term(engine._layout.term_path, 2)
        engine.launch(order("j-1.1", "touch", str(touched)))
        other = engine_in(tmp_path / "root")
        try:
            other.lead(lead(2))
            other.launch(order("j-1.1", "true"))
            wait_until(lambda: any(one.phase == "ended" for one in other.observe().attempts), "the new one runs it")
            assert not touched.exists()
        finally:
            other.close()
    finally:
        engine.close()


def test_jobs_know_their_installation(tmp_path: Path) -> None:
    engine = engine_in(tmp_path / "root")
    try:
        engine.lead(lead(1))
        engine.launch(order("j-1.1", "sh", "-c", "echo $CORRAL_INSTALLATION"))
        wait_until(lambda: any(one.phase == "ended" for one in engine.observe().attempts), "it ends")
        assert engine.logs("j-1.1", 0, 0, 100).data == b"here\n"
    finally:
        engine.close()
