"""Reserved GPUs: who may start where and when, and what that costs where nothing is reserved."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corral.core.model import Job
from corral.core.people.membership import Membership
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.reservations import Reserved, reserved_reason
from corral.core.scheduling.reservations.windows import in_force, is_active, owns
from corral.core.snapshot.changes import Change, DropReservation, PutMembership, PutReservation, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import AllocationRules, Limits, PreemptionRules, Strategy
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node, promises, running, snapshot_of, started, waiting
from tests.unit.core.strategies import arrivals, clusters
from tests.unit.searching import DEAR, between, pick


def reservation(name: str = "demo", **values: Any) -> PutReservation:
    base = {"pool": "default", "gpus": ("n1/0", "n1/1"), "users": ("eve",), "lends": False}
    return PutReservation(reservation=Reservation(name=name, **{**base, **values}))


def rules(strategy: Strategy = Strategy.HYBRID, *, preempts: bool = False) -> PutRules:
    return PutRules(
        limits=Limits(),
        score_time_constant=3600.0,
        preemption=PreemptionRules(enabled=preempts),
        allocation=AllocationRules(strategy=strategy),
    )


def test_a_snapshot_without_reservations_is_searched_as_ever() -> None:
    snapshot = snapshot_of(node("n1", 2), waiting(1, gpus=1))
    reserved = Reserved(snapshot, 0.0)
    job = snapshot.jobs["j-1"]
    assert [*reserved.searches(job, "default", math.inf)] == [job]
    assert reserved.widest(job, "default", math.inf) is job
    assert reserved.ever(job, "default") is job
    assert reserved.kind_of("default") is None
    assert schedule(snapshot, 0.0).wake_at is None


def test_reservations_are_owned_by_users_and_group_members() -> None:
    snapshot = snapshot_of(PutMembership(user="bob", membership=Membership(group="vision", pool="default")))
    own = reservation(groups=("vision",)).reservation
    assert [owns(snapshot, own, user) for user in ("eve", "bob", "ann")] == [True, True, False]
    snapshot.apply([PutMembership(user="bob", membership=Membership())])
    assert not owns(snapshot, own, "bob")


@pytest.mark.parametrize(
    ("since", "until", "limit", "starts"),
    [
        (50.0, 90.0, 40.0, True),  # gone just in time
        (50.0, 90.0, 41.0, False),
        (50.0, 90.0, None, False),
        (0.0, 10.0, None, True),  # the window is over
        (0.0, None, 1.0, False),  # standing
    ],
)
def test_others_must_surely_be_gone_when_the_window_opens(
    since: float, until: float | None, limit: float | None, starts: bool
) -> None:
    snapshot = snapshot_of(
        node("n1", 2), reservation(since=since, until=until), waiting(1, gpus=1, time_limit_seconds=limit)
    )
    assert bool(schedule(snapshot, 10.0).starts) is starts


def test_grace_counts_too() -> None:
    job = waiting(1, gpus=1, time_limit_seconds=40.0, grace_seconds=5.0)
    snapshot = snapshot_of(node("n1", 2), reservation(since=54.0, until=90.0), job)
    assert not schedule(snapshot, 10.0).starts


def test_the_scheduler_wakes_when_a_window_opens_or_closes() -> None:
    snapshot = snapshot_of(
        node("n1", 2), reservation(since=50.0, until=90.0), reservation("later", since=200.0, until=300.0)
    )
    assert [schedule(snapshot, now).wake_at for now in (0.0, 50.0, 90.0, 250.0, 300.0)] == [
        50.0,
        90.0,
        200.0,
        300.0,
        None,
    ]


def test_a_job_of_another_user_that_asks_for_the_same_is_not_stepped_over() -> None:
    """Jobs of one shape are skipped together; here one of them owns what the other may not use."""
    snapshot = snapshot_of(
        node("n1", 2), reservation(), *(waiting(number, gpus=2) for number in range(1, 4)), waiting(9, "eve", gpus=2)
    )
    assert started(schedule(snapshot, 10.0)) == {"j-9": ["n1"]}


def test_a_shorter_job_of_the_same_shape_still_fits_before_the_window() -> None:
    snapshot = snapshot_of(
        node("n1", 2),
        reservation(since=50.0, until=90.0),
        waiting(1, gpus=1, time_limit_seconds=500.0),
        waiting(2, gpus=1, time_limit_seconds=30.0),
    )
    assert started(schedule(snapshot, 10.0)) == {"j-2": ["n1"]}


def test_a_gang_is_planned_for_when_all_its_nodes_are_open() -> None:
    snapshot = snapshot_of(
        node("n1", 2),
        node("n2", 2),
        reservation(since=0.0, until=90.0),
        running(5, {"n2": (0, 1)}, time_limit_seconds=40.0),
        waiting(1, nodes=2, gpus=2),
    )
    plan = schedule(snapshot, 10.0)
    assert promises(plan) == {"j-1": 90.0}
    # n2 comes back for it; of n1, which is its owners' until then, nothing is kept.
    assert plan.planned[0].held.gpus == ()


def test_a_job_that_can_never_start_blocks_no_job() -> None:
    snapshot = snapshot_of(node("n1", 2), node("n2", 1), reservation(), waiting(1, gpus=2), waiting(2, gpus=1))
    plan = schedule(snapshot, 10.0)
    assert started(plan) == {"j-2": ["n2"]}
    assert not plan.planned


def test_the_reason_has_names_numbers_and_windows() -> None:
    snapshot = snapshot_of(
        node("n1", 2),
        reservation("sprint", groups=("vision",), gpus=("n1/0",), since=0.0, until=3610.0),
        reservation("night", gpus=("n1/1",), since=7210.0, until=10810.0, lends=True),
        waiting(1, gpus=2, preemptible=False),
    )
    (reason,) = explain(snapshot, schedule(snapshot, 10.0), snapshot.jobs["j-1"], 10.0).reasons
    assert reason.rule == "reserved"
    assert reason.detail == (
        "2 GPUs of pool default are reserved: 1 by sprint for eve, group vision for 1h more; "
        "1 by night for eve from 2h from now on, for 1h; what is lent is lent to preemptible jobs only"
    )
    assert reason.numbers == {
        "reserved_gpus": 2,
        "free_reserved_gpus": 2,
        "reservations": "sprint, night",
        "opens_in_seconds": 3600.0,
    }


def test_under_static_the_reason_says_what_the_user_has() -> None:
    snapshot = snapshot_of(
        rules(Strategy.STATIC), node("n1", 2), reservation(since=110.0, until=200.0), waiting(1, "eve", gpus=1)
    )
    job = snapshot.jobs["j-1"]
    reason = reserved_reason(snapshot, Reserved(snapshot, 50.0), job, "default", 50.0, math.inf)
    assert reason is not None
    assert reason.detail == (
        "allocation is static: eve may use what is reserved for eve in pool default, which is nothing now; "
        "more opens in 1m"
    )
    assert promises(schedule(snapshot, 50.0)) == {"j-1": 110.0}


def test_a_share_of_a_reserved_gpu_is_reserved_too() -> None:
    snapshot = snapshot_of(node("n1", 2), reservation(), waiting(1, gpu_milli=500), waiting(2, "eve", gpu_milli=500))
    assert started(schedule(snapshot, 10.0)) == {"j-2": ["n1"]}


def test_standing_ones_do_not_count_where_nothing_is_reserved_standing() -> None:
    snapshot = snapshot_of(rules(Strategy.DYNAMIC), reservation(), reservation("window", since=0.0, until=9.0))
    assert [one.name for one in in_force(snapshot, 1.0)] == ["window"]


# ---------------------------------------------------------------- what holds always

WINDOWS = ((0.0, None), (0.0, 25.0), (10.0, 40.0), (30.0, 35.0), (45.0, 90.0), (60.0, None))


@st.composite
def reserved_clusters(draw: st.DrawFn) -> tuple[Change, ...]:
    """A cluster, and reservations of which no two have a GPU at the same time."""
    changes: list[Change] = [change for change in draw(clusters()) if not isinstance(change, PutRules)]
    changes += [PutMembership(user="bob", membership=Membership(group="vision"))] if draw(pick(False, True)) else []
    strategy = draw(pick(Strategy.HYBRID, Strategy.HYBRID, Strategy.STATIC, Strategy.DYNAMIC))
    changes.append(replace(rules(strategy, preempts=draw(pick(False, True)))))
    gpus = [gpu for change in changes if hasattr(change, "node") for gpu in change.node.gpus if gpu.pool == "default"]
    taken: dict[str, list[tuple[float, float]]] = {}
    for number in range(draw(between(1, 4)) if gpus else 0):
        since, until = draw(pick(*WINDOWS))
        end = math.inf if until is None else until
        free = [
            gpu.id
            for gpu in gpus
            if not any(since < its_end and end > begin for begin, its_end in taken.get(gpu.id, []))
        ]
        if not free:
            continue
        chosen = tuple(draw(st.lists(st.sampled_from(free), min_size=1, unique=True)))
        for gpu in chosen:
            taken.setdefault(gpu, []).append((since, end))
        made = Reservation(
            name=f"r{number}",
            pool="default",
            gpus=chosen,
            users=draw(pick(("ann",), ("eve",), ("ann", "eve"), ())),
            groups=draw(pick((), ("vision",))),
            since=since,
            until=until,
            lends=draw(pick(False, True)),
        )
        changes.append(PutReservation(reservation=made))
    return tuple(changes)


@DEAR
@given(cluster=reserved_clusters(), coming=arrivals(("default", "default", "strict")), data=st.data())
def test_no_job_runs_on_what_is_reserved_for_others_unless_it_is_lent(
    cluster: tuple[Change, ...], coming: tuple[Arrival, ...], data: st.DataObject
) -> None:
    """A job that holds a GPU within a window of others is preemptible, and the reservation lends; under `static` a job
    that starts owns the GPU at that moment. Planned starts keep to that as well."""
    coming = tuple(
        replace(arrival, job=replace(arrival.job, preemptible=data.draw(pick(False, True)))) for arrival in coming
    )
    simulation = Simulation(snapshot=_snapshot(cluster), arrivals=coming, until=400.0)
    snapshot = simulation.snapshot
    by_id = {arrival.job.id: arrival.job for arrival in coming}
    for step in simulation:
        for start in step.plan.starts:
            _check_terms(snapshot, by_id[start.job_id], start.allocation.gpus, step.at)
        for planned in step.plan.planned:
            job = by_id[planned.job_id]
            others = [one for one in in_force(snapshot, step.at) if not owns(snapshot, one, job.user)]
            kept = {gpu for one in others if is_active(one, step.at) for gpu in one.gpus} & {*planned.held.gpus}
            assert not kept, "nothing is kept from the owners within their window"
    for job_id, since, until, allocation in simulation.allocations:
        for one in in_force(snapshot, 0.0):
            overlaps = since < (math.inf if one.until is None else one.until) and until > one.since
            if overlaps and {*allocation.gpus} & {*one.gpus} and not owns(snapshot, one, by_id[job_id].user):
                assert one.lends
                assert by_id[job_id].preemptible
                assert snapshot.preemption.enabled


@DEAR
@given(cluster=reserved_clusters(), coming=arrivals(("default", "default", "strict")))
def test_when_a_window_opens_its_gpus_are_there_for_the_owners(
    cluster: tuple[Change, ...], coming: tuple[Arrival, ...]
) -> None:
    """Backfill delays no window: if nothing of it is lent, then at its first moment no job else is on its GPUs."""
    simulation = Simulation(snapshot=_snapshot(cluster), arrivals=coming, until=400.0)
    snapshot = simulation.snapshot
    assume(snapshot.reservations)
    users = {arrival.job.id: arrival.job.user for arrival in coming}
    for _ in simulation:
        pass
    for one in in_force(snapshot, 0.0):
        if one.lends and snapshot.preemption.enabled:
            continue
        holders = {
            users[job_id]
            for job_id, since, until, allocation in simulation.allocations
            if since <= one.since < until and {*allocation.gpus} & {*one.gpus}
        }
        assert all(owns(snapshot, one, user) for user in holders)


@DEAR
@given(cluster=clusters(), coming=arrivals(("default", "strict")))
def test_a_reservation_that_is_over_or_elsewhere_changes_nothing(
    cluster: tuple[Change, ...], coming: tuple[Arrival, ...]
) -> None:
    """Plans are the same as without it."""
    over = reservation(since=-20.0, until=-10.0)
    elsewhere = reservation("elsewhere", pool="nowhere")
    plain = Simulation(snapshot=_snapshot(cluster), arrivals=coming, until=200.0)
    other = Simulation(snapshot=_snapshot((*cluster, over, elsewhere)), arrivals=coming, until=200.0)
    assert [step.plan for step in plain] == [step.plan for step in other]


def _snapshot(cluster: tuple[Change, ...]) -> Any:
    return snapshot_of(*cluster)


def _check_terms(snapshot: Any, job: Job, gpus: tuple[str, ...], at: float) -> None:
    end = end_if_started(job, at)
    found = in_force(snapshot, at)
    if snapshot.allocation.strategy is Strategy.STATIC and gpus:
        own = {gpu for one in found if owns(snapshot, one, job.user) and is_active(one, at) for gpu in one.gpus}
        assert {*gpus} <= own
    for one in found:
        if {*gpus} & {*one.gpus} and not owns(snapshot, one, job.user) and end > one.since:
            assert one.lends
            assert job.preemptible
            assert snapshot.preemption.enabled
            assert snapshot.allocation.strategy is not Strategy.STATIC


@DEAR
@given(cluster=reserved_clusters(), coming=arrivals(("default", "strict")), data=st.data())
def test_cache_between_cycles_decides_like_a_new_computation(
    cluster: tuple[Change, ...], coming: tuple[Arrival, ...], data: st.DataObject
) -> None:
    """While reservations and groups come, change and go."""
    simulation = Simulation(snapshot=_snapshot(cluster), arrivals=coming, until=100.0)
    snapshot = simulation.snapshot
    for step in simulation:
        assert schedule(ClusterSnapshot(snapshot.contents()), step.at) == step.plan
        names = sorted(snapshot.reservations)
        match data.draw(between(0, 5)):
            case 0 if names:
                snapshot.apply([DropReservation(name=data.draw(st.sampled_from(names)))])
            case 1 if names:
                one = snapshot.reservations[data.draw(st.sampled_from(names))]
                snapshot.apply([PutReservation(reservation=replace(one, users=("bob",), lends=not one.lends))])
            case 2:
                member = Membership(group=data.draw(pick(None, "vision")))
                snapshot.apply([PutMembership(user="eve", membership=member)])
            case _:
                pass
