"""Aggregation of instances to attempts, without any process."""

from __future__ import annotations

from dataclasses import replace

from corral.control.ports import AttemptPhase, AttemptStatus
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit, InstanceState, aggregate, must_stop, up_since


def claimed(rank: int = 0) -> InstanceState:
    return InstanceState(rank=rank, node=f"node{rank + 1}", claimed_at=10.0 + rank)


def up(rank: int = 0) -> InstanceState:
    return InstanceState(rank=rank, node=f"node{rank + 1}", claimed_at=10.0, started_at=20.0 + rank)


def over(
    rank: int = 0, *, at: float = 30.0, code: int | None = 0, reason: EndReason = EndReason.EXIT_CODE
) -> InstanceState:
    end = InstanceExit(reason=reason, ended_at=at, exit_code=code, message=f"exit code {code}" if code else "")
    return InstanceState(rank=rank, node=f"node{rank + 1}", claimed_at=10.0, started_at=20.0, exit=end)


def unclaimed(rank: int = 0) -> InstanceState:
    return InstanceState(rank=rank, node=f"node{rank + 1}")


def test_an_attempt_is_unknown_until_every_instance_has_a_supervisor() -> None:
    assert aggregate("j-1.1", []) is None
    assert aggregate("j-1.1", [unclaimed()]) is None
    assert aggregate("j-1.1", [up(0), unclaimed(1)]) is None


def test_with_all_supervisors_there_it_is_running_and_up_with_the_last_program() -> None:
    starting = aggregate("j-1.1", [up(0), claimed(1)])
    assert starting == AttemptStatus(attempt_id="j-1.1", phase=AttemptPhase.RUNNING, at=11.0)
    assert up_since([up(0), claimed(1)]) is None
    assert aggregate("j-1.1", [up(0), up(1)]) == AttemptStatus(attempt_id="j-1.1", phase=AttemptPhase.RUNNING, at=21.0)


def test_attempt_ends_with_its_last_instance() -> None:
    status = aggregate("j-1.1", [over(0, at=30.0), over(1, at=40.0)])
    assert status == AttemptStatus(
        attempt_id="j-1.1", phase=AttemptPhase.ENDED, at=40.0, reason=EndReason.EXIT_CODE, exit_code=0
    )
    half = aggregate("j-1.1", [over(0), up(1)])
    assert half is not None
    assert half.phase is AttemptPhase.RUNNING


def test_the_first_failure_is_the_reason_for_a_gang() -> None:
    status = aggregate("j-1.1", [over(0, at=31.0, code=143), over(1, at=30.0, code=3), over(2)])
    assert status is not None
    assert (status.exit_code, status.message, status.at) == (3, "instance 1 on node2: exit code 3", 31.0)


def test_the_first_to_fail_is_not_the_first_to_be_gone() -> None:
    """The other instances ended because of its end, before its leftover processes had ended."""
    slow = InstanceExit(
        reason=EndReason.EXIT_CODE, ended_at=32.0, main_ended_at=29.0, exit_code=137, message="killed by SIGKILL"
    )
    first = InstanceState(rank=1, node="node2", claimed_at=10.0, started_at=20.0, exit=slow)
    status = aggregate("j-1.1", [over(0, at=30.0, code=1), first])
    assert status is not None
    assert (status.exit_code, status.message, status.at) == (137, "instance 1 on node2: killed by SIGKILL", 32.0)


def test_a_platform_failure_is_the_reason_for_all_instances_that_it_ended() -> None:
    status = aggregate("j-1.1", [over(0, at=30.0, code=1), over(1, at=35.0, code=None, reason=EndReason.LOST)])
    assert status is not None
    assert (status.reason, status.exit_code) == (EndReason.LOST, None)


def test_a_single_instance_gives_its_own_reason() -> None:
    status = aggregate("j-1.1", [over(code=2)])
    assert status is not None
    assert (status.exit_code, status.message) == (2, "exit code 2")


def test_a_bad_end_stops_the_others_and_a_good_one_does_not() -> None:
    assert must_stop([over(0, code=1), up(1)])
    assert must_stop([over(0, code=None, reason=EndReason.LOST), unclaimed(1)])
    assert not must_stop([over(0, code=0), up(1)])
    assert not must_stop([over(0, code=1), over(1, code=143)])
    assert not must_stop([up(0), up(1)])


def test_an_attempt_whose_image_is_pulled_is_not_up_yet() -> None:
    running = InstanceState(rank=0, claimed_at=1.0, started_at=3.0, prepares=True)
    pulling = InstanceState(rank=1, claimed_at=2.0, prepares=True, progress="half of it is here")
    status = aggregate("j-1.1", [running, pulling])
    assert status is not None
    assert (status.phase, status.at, status.message) == (AttemptPhase.STARTING, 2.0, "half of it is here")
    status = aggregate("j-1.1", [running, replace(pulling, started_at=4.0)])
    assert status is not None
    assert (status.phase, status.at) == (AttemptPhase.RUNNING, 4.0)
