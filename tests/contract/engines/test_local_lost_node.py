"""A virtual node that a drill takes down: its processes are gone at once, and reported as such."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, Instance, LaunchOrder
from corral.core.model import EndReason, NodeState
from corral.engines.local.faults import FAULTS_FILE, Faults, write_faults
from tests.contract.engine_harness import LocalHarness, kill, order, process_exists, script, wait_until

STUBBORN = script("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo daemon $$; while :; do sleep 1; done' & "
                  "echo main $$; while :; do sleep 1; done")  # fmt: skip


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalHarness]:
    harness = LocalHarness(tmp_path / "engine")
    yield harness
    harness.clean_up()


def take_down(local: LocalHarness, *nodes: str) -> None:
    write_faults(local.root / FAULTS_FILE, Faults(down=frozenset(nodes)))


def on(*nodes: str, command: tuple[str, ...] = ("sleep", "300"), attempt_id: str = "j-1.1") -> LaunchOrder:
    base = order(*command, attempt_id=attempt_id)
    return LaunchOrder(
        attempt_id=attempt_id,
        job_id=base.job_id,
        user=base.user,
        command=base.command,
        instances=tuple(Instance(rank=rank, node=node) for rank, node in enumerate(nodes)),
        env={},
        grace_seconds=60.0,
    )


def states(local: LocalHarness) -> dict[str, NodeState]:
    return {node.id: node.state for node in local.engine.observe().nodes}


def test_processes_on_a_lost_node_are_killed_at_once_whatever_they_ignore(local: LocalHarness) -> None:
    local.launch(on("a10-001", command=STUBBORN))
    local.launch(on("a10-002", attempt_id="j-2.1"))
    pids = [local.number_from_output(word) for word in ("daemon", "main")]
    local.listener.running("j-2.1")
    take_down(local, "a10-001")
    ended = local.listener.ended()
    assert (ended.reason, ended.message, ended.exit_code) == (EndReason.NODE_LOST, "node a10-001 went down", None)
    assert not [pid for pid in pids if process_exists(pid)]
    assert states(local)["a10-001"] is NodeState.DOWN
    neighbour = local.status("j-2.1")
    assert neighbour is not None
    assert neighbour.phase is AttemptPhase.RUNNING
    take_down(local)
    assert set(states(local).values()) == {NodeState.READY}
    assert local.status() == ended
    assert local.listener.phases() == [AttemptPhase.RUNNING, AttemptPhase.ENDED]


def test_a_gang_with_one_instance_there_ends_whole(local: LocalHarness) -> None:
    local.launch(on("a10-001", "a10-002", "a10-003"))
    local.listener.running()
    supervisors = [local.supervisor_pid(rank=rank) for rank in range(3)]
    take_down(local, "a10-002")
    ended = local.listener.ended()
    assert ended.reason is EndReason.NODE_LOST
    assert ended.message == "instance 1 on a10-002: node a10-002 went down"
    assert not [pid for pid in supervisors if process_exists(pid)]


def test_a_launch_onto_a_node_that_is_down_ends_as_lost(local: LocalHarness) -> None:
    take_down(local, "a10-001")
    local.launch(on("a10-001", command=script("echo ran; sleep 300")))
    assert local.listener.ended().reason is EndReason.NODE_LOST
    take_down(local)
    local.launch(on("a10-001", command=("true",), attempt_id="j-1.2"))
    assert local.listener.ended("j-1.2").exit_code == 0


def test_a_launch_that_no_supervisor_has_claimed_yet_is_lost_too(local: LocalHarness) -> None:
    os.kill(local.spawner_pid(), signal.SIGSTOP)
    local.launch(on("a10-001", command=script("echo ran; sleep 300")))
    take_down(local, "a10-001")
    ended = local.listener.ended()
    os.kill(local.spawner_pid(), signal.SIGCONT)
    assert (ended.reason, ended.message) == (EndReason.NODE_LOST, "node a10-001 went down")
    local.launch(on("a10-002", command=("true",), attempt_id="j-2.1"))
    local.listener.ended("j-2.1")
    assert local.output() == ""  # the spawner came too late: the claim was taken


def test_a_node_lost_while_no_server_lived_is_found(local: LocalHarness) -> None:
    local.launch(on("a10-001"))
    local.listener.running()
    supervisor = local.supervisor_pid()
    local.stop_server()
    take_down(local, "a10-001")
    local.start()
    status = local.status()
    assert status is not None
    assert status.reason is EndReason.NODE_LOST
    wait_until(lambda: not process_exists(supervisor), "the end of the supervisor")


def test_a_server_that_dies_while_it_ends_them_still_reports_the_reason(local: LocalHarness) -> None:
    local.launch(on("a10-001"))
    local.listener.running()
    supervisor = local.supervisor_pid()
    local.stop_server()
    # As an engine leaves it that dies between the kill and the burial.
    (Path(local.layout.attempt_dir("j-1.1")) / "lost").write_text('{"node": "a10-001", "ranks": [0], "at": 5.0}')
    kill(supervisor)
    local.start()
    status = local.status()
    assert status is not None
    assert (status.reason, status.message) == (EndReason.NODE_LOST, "node a10-001 went down")
