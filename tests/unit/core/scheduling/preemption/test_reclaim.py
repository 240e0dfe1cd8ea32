"""Lent GPUs return to the owners of their reservation, and no two jobs preempt each other in turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.core.jobs.lifecycle import Ended, Planned, StopRequested, Up, advance
from corral.core.model import EndReason, Queue
from corral.core.people.membership import Membership
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan, PreemptionRule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.windows import is_active, owns
from corral.core.snapshot.changes import PutJob, PutMembership, PutReservation, PutRules
from corral.core.snapshot.installation import Limits, PreemptionRules
from tests.unit.core.builders import node, promises, running, snapshot_of, started, waiting
from tests.unit.searching import between, each

NOW = 10_000.0


def rules(**values: Any) -> PutRules:
    preemption = PreemptionRules(**{"enabled": True, "min_run_seconds": 600.0, **values})
    return PutRules(limits=Limits(), score_time_constant=3600.0, preemption=preemption)


def reserved(name: str, user: str, *gpus: str, **values: Any) -> PutReservation:
    base = {"pool": "default", "since": 5_000.0, "until": 20_000.0}
    return PutReservation(reservation=Reservation(name=name, users=(user,), gpus=gpus, **{**base, **values}))


def preempted_for(plan: Plan) -> dict[str, str]:
    return {preemption.job_id: preemption.for_job for preemption in plan.preemptions}


def test_an_owner_gets_back_what_was_lent() -> None:
    snapshot = snapshot_of(
        rules(),
        node("n1", 2),
        node("n2", 2),
        reserved("demo", "ann", "n1/0", "n1/1"),
        running(1, {"n1": (0, 1)}, user="bob", grace_seconds=30.0),
        running(2, {"n2": (0, 1)}, user="bob"),
        waiting(3, "ann", gpus=2),
        waiting(4, "bob", gpus=2),
    )
    plan = schedule(snapshot, NOW)
    assert preempted_for(plan) == {"j-1": "j-3"}, "not the job elsewhere, and none for bob"
    (preemption,) = plan.preemptions
    assert preemption.rule is PreemptionRule.RESERVATION
    assert preemption.lost_gpu_seconds == 20_000.0
    assert preemption.detail == (
        "reservation demo has 2 GPUs for ann for 2h46m40s more; j-3 asks for 2, and 2 of them were lent"
    )
    assert promises(plan)["j-3"] == NOW + 30.0


@pytest.mark.parametrize(
    ("because", "things"),
    [
        ("the window is not open", [reserved("demo", "ann", "n1/0", "n1/1", since=15_000.0)]),
        ("the window is over", [reserved("demo", "ann", "n1/0", "n1/1", until=9_000.0)]),
        ("it belongs to another user", [reserved("demo", "eve", "n1/0", "n1/1")]),
        ("preemption is off here", [reserved("demo", "ann", "n1/0", "n1/1"), rules(enabled=False)]),
        ("it has only begun", [reserved("demo", "ann", "n1/0", "n1/1"), rules(min_run_seconds=20_000.0)]),
        ("the job does not fit there", [reserved("demo", "ann", "n1/0")]),
    ],
)
def test_others_are_left_alone(because: str, things: list[PutReservation | PutRules]) -> None:
    snapshot = snapshot_of(
        rules(), node("n1", 2), *things, running(1, {"n1": (0, 1)}, user="bob"), waiting(3, "ann", gpus=2)
    )
    assert preempted_for(schedule(snapshot, NOW)) == {}, because


def test_job_that_is_not_preemptible_stays() -> None:
    snapshot = snapshot_of(
        rules(),
        node("n1", 2),
        reserved("demo", "ann", "n1/0", "n1/1"),
        running(1, {"n1": (0, 1)}, user="bob", preemptible=False),
        waiting(3, "ann", gpus=2),
    )
    assert preempted_for(schedule(snapshot, NOW)) == {}


def test_an_owner_does_not_take_from_another_owner() -> None:
    snapshot = snapshot_of(
        rules(),
        node("n1", 2),
        reserved("demo", "ann", "n1/0", "n1/1", groups=("vision",)),
        PutMembership(user="eve", membership=Membership(group="vision", pool="default")),
        running(1, {"n1": (0, 1)}, user="eve"),
        waiting(3, "ann", gpus=2),
    )
    assert preempted_for(schedule(snapshot, NOW)) == {}


def test_the_right_ends_where_the_reservation_does() -> None:
    """The job on three GPUs would give back enough, but only one of them is reserved: with a free one it is enough for
    two, not for three."""
    things = (
        rules(),
        node("n1", 4),
        reserved("demo", "ann", "n1/0"),
        running(1, {"n1": (0, 1, 2)}, user="bob"),
    )
    assert preempted_for(schedule(snapshot_of(*things, waiting(3, "ann", gpus=3)), NOW)) == {}
    assert preempted_for(schedule(snapshot_of(*things, waiting(3, "ann", gpus=2)), NOW)) == {"j-1": "j-3"}


def test_a_guarantee_does_not_take_what_its_owner_would_only_get_back() -> None:
    lab, rest = Queue(name="lab", policy="fcfs", guaranteed_gpus=2), Queue(name="rest", policy="fcfs")
    things = (
        rules(),
        lab,
        rest,
        node("n1", 2),
        running(1, {"n1": (0, 1)}, user="ann", queue="rest"),
        waiting(3, "bob", gpus=2, queue="lab"),
    )
    assert preempted_for(schedule(snapshot_of(*things), NOW)) == {"j-1": "j-3"}
    assert preempted_for(schedule(snapshot_of(*things, reserved("demo", "ann", "n1/0", "n1/1")), NOW)) == {}


def test_owners_take_what_all_share_before_what_others_lend() -> None:
    snapshot = snapshot_of(
        rules(),
        node("n1", 4),
        reserved("mine", "ann", "n1/3"),
        reserved("theirs", "eve", "n1/0", "n1/1"),
        waiting(1, "ann", gpus=2),
        waiting(2, "ann", gpus=2),
    )
    plan = schedule(snapshot, NOW)
    assert started(plan) == {"j-1": ["n1"], "j-2": ["n1"]}
    assert [sorted(start.allocation.gpus) for start in plan.starts] == [["n1/2", "n1/3"], ["n1/0", "n1/1"]]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_two_owners_never_take_turns(data: st.DataObject) -> None:
    """A job that is preempted for an owner and would run again in the place of another victim preempts no job
    back: apply each plan until nothing changes, with the time standing still but for the least time of a run."""
    gpus = [f"n1/{index}" for index in range(4)]
    owner_of = each(data.draw, **dict.fromkeys(gpus, ("ann", "bob", "eve", "")))
    things: list[Any] = [rules(min_run_seconds=0.0), node("n1", 4)]
    for user in ("ann", "bob", "eve"):
        mine = [gpu for gpu in gpus if owner_of[gpu] == user]
        if mine:
            things.append(reserved(f"of-{user}", user, *mine))
    jobs = [
        waiting(serial, **each(data.draw, user=("ann", "bob", "eve"), gpus=(1, 2, 3, 4)))
        for serial in range(1, data.draw(between(2, 5)) + 1)
    ]
    snapshot = snapshot_of(*things, *jobs)
    preemptions = 0
    for _ in range(40):
        plan = schedule(snapshot, NOW)
        if not plan.starts and not plan.preemptions:
            break
        _check_victims(snapshot, plan)
        preemptions += len(plan.preemptions)
        _apply(snapshot, plan)
    else:
        raise AssertionError(f"it never comes to rest: {preemptions} preemptions")


def _check_victims(snapshot: Any, plan: Plan) -> None:
    for preemption in plan.preemptions:
        victim, winner = snapshot.jobs[preemption.job_id], snapshot.jobs[preemption.for_job]
        mine = [one for one in snapshot.reservations.values() if owns(snapshot, one, winner.user)]
        held = {gpu for one in mine if is_active(one, NOW) for gpu in one.gpus} & {*victim.allocation.gpus}
        assert held, "only jobs on reserved GPUs are preempted"
        assert victim.preemptible
        assert victim.user != winner.user


def _apply(snapshot: Any, plan: Plan) -> None:
    """Starts are up, and victims have saved and are back in the queue, before the next cycle."""
    for start in plan.starts:
        planned = advance(snapshot.jobs[start.job_id], Planned(at=NOW, allocation=start.allocation)).job
        snapshot.apply([PutJob(job=advance(planned, Up(at=NOW)).job)])
    for preemption in plan.preemptions:
        stop = StopRequested(at=NOW, reason=EndReason.PREEMPTED, for_job=preemption.for_job)
        stopping = advance(snapshot.jobs[preemption.job_id], stop).job
        ended = Ended(at=NOW, reason=EndReason.EXIT_CODE, exit_code=143)
        snapshot.apply([PutJob(job=advance(stopping, ended).job)])
