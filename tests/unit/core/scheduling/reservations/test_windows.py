"""Windows of reservations: when they are open, for whom, and which nodes and GPUs are closed to a job."""

from __future__ import annotations

import math
from typing import Any

import pytest

from corral.core.people.membership import Membership
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.windows import Layout, in_force, is_active, layout_of, owns, window_of
from corral.core.snapshot.changes import DropReservation, PutMembership, PutReservation, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import AllocationRules, Limits, PreemptionRules, Strategy
from tests.unit.core.builders import node, snapshot_of, waiting

OWN, OTHER = waiting(1, user="eve", gpus=1), waiting(2, user="ann", gpus=1)


def reserved(name: str = "demo", gpus: tuple[str, ...] = ("n1/0", "n1/1"), **values: Any) -> Reservation:
    base = {"pool": "default", "gpus": gpus, "users": ("eve",), "lends": False}
    return Reservation(name=name, **{**base, **values})


def rules(strategy: Strategy = Strategy.HYBRID, *, preempts: bool = False) -> PutRules:
    return PutRules(
        limits=Limits(),
        score_time_constant=3600.0,
        preemption=PreemptionRules(enabled=preempts),
        allocation=AllocationRules(strategy=strategy),
    )


def snapshot_with(*reservations: Reservation, by: PutRules | None = None) -> ClusterSnapshot:
    """Two nodes of two GPUs."""
    puts = [PutReservation(reservation=one) for one in reservations]
    return snapshot_of(node("n1", 2), node("n2", 2), by or rules(), *puts)


@pytest.mark.parametrize(("at", "expected"), [(9.9, False), (10.0, True), (19.9, True), (20.0, False)])
def test_a_window_includes_its_beginning_and_not_its_end(at: float, expected: bool) -> None:
    assert is_active(reserved(since=10.0, until=20.0), at) is expected


def test_a_standing_reservation_has_no_end() -> None:
    assert window_of(reserved(since=3.0)) == (3.0, math.inf)
    assert is_active(reserved(), 1e12)


def test_users_and_members_of_groups_own_a_reservation() -> None:
    snapshot = snapshot_of(PutMembership(user="bob", membership=Membership(group="vision", pool="default")))
    group = reserved(groups=("vision",))
    assert [owns(snapshot, group, user) for user in ("eve", "bob", "ann")] == [True, True, False]


def test_past_reservations_do_not_apply_and_the_others_come_soonest_first() -> None:
    past, late, soon = reserved("a", until=5.0), reserved("b", since=90.0, until=99.0), reserved("c", until=50.0)
    assert [one.name for one in in_force(snapshot_with(past, late, soon), 10.0)] == ["c", "b"]


def test_standing_reservations_do_not_apply_under_the_dynamic_strategy() -> None:
    standing, timed = reserved("standing"), reserved("timed", until=50.0)
    snapshot = snapshot_with(standing, timed, by=rules(Strategy.DYNAMIC))
    assert [one.name for one in in_force(snapshot, 0.0)] == ["timed"]


def test_reserved_gpus_are_closed_to_other_users() -> None:
    layout = Layout(snapshot_with(reserved()), 0.0)
    assert layout.closed_places(OWN, "default", math.inf) == ((), ())
    assert layout.closed_places(OTHER, "default", math.inf) == (("n1",), ()), "a node without an open GPU as a whole"
    assert layout.never_open_places(OTHER, "default") == (("n1",), ())


def test_single_gpus_of_a_node_are_closed_alone() -> None:
    layout = Layout(snapshot_with(reserved(gpus=("n1/1",))), 0.0)
    assert layout.closed_places(OTHER, "default", math.inf) == ((), ("n1/1",))
    assert layout.places_not_reserved_for_owner(OWN, "default", math.inf) == (("n2",), ("n1/0",))


def test_a_job_that_ends_before_the_window_opens_may_start() -> None:
    layout = Layout(snapshot_with(reserved(since=100.0, until=200.0)), 0.0)
    assert layout.closed_places(OTHER, "default", 100.0) == ((), ())
    assert layout.closed_places(OTHER, "default", 101.0) == (("n1",), ())
    assert layout.never_open_places(OTHER, "default") == ((), ())
    terms = layout.terms(OTHER, "default")
    assert terms.openings == ((200.0, ("n1/0", "n1/1")),)
    assert terms.is_reserved_by_others("n1/0", 50.0, 150.0)
    assert not terms.is_reserved("n1/0", 50.0)
    assert terms.is_reserved("n1/0", 150.0)


@pytest.mark.parametrize(
    ("preempts", "preemptible", "closed"),
    [(True, True, ((), ())), (True, False, (("n1",), ())), (False, True, (("n1",), ()))],
)
def test_lent_gpus_are_open_to_preemptible_jobs_where_preemption_is_on(
    preempts: bool, preemptible: bool, closed: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    layout = Layout(snapshot_with(reserved(lends=True), by=rules(preempts=preempts)), 0.0)
    job = waiting(3, user="ann", gpus=1, preemptible=preemptible)
    assert layout.closed_places(job, "default", math.inf) == closed
    # A job that must not be reclaimed avoids them in any case.
    assert layout.closed_or_reclaimable_places(job, "default", math.inf) == (("n1",), ())


def test_under_the_static_strategy_gpus_without_a_reservation_are_closed_too() -> None:
    layout = Layout(snapshot_with(reserved(), by=rules(Strategy.STATIC)), 0.0)
    assert layout.closed_places(OWN, "default", math.inf) == (("n2",), ())
    assert layout.closed_places(OTHER, "default", math.inf) == (("n1", "n2"), ())
    assert layout.concerns("another")
    assert layout.terms(OWN, "default").ever_allows("n1/0")
    assert not layout.terms(OWN, "default").ever_allows("n2/0")


def test_the_gpus_of_a_user_are_those_of_open_windows() -> None:
    now, later = reserved("now"), reserved("later", gpus=("n2/0",), since=50.0, until=60.0)
    snapshot = snapshot_with(now, later)
    assert Layout(snapshot, 0.0).own_now("eve", "default") == {"n1/0", "n1/1"}
    assert Layout(snapshot, 55.0).own_now("eve", "default") == {"n1/0", "n1/1", "n2/0"}
    assert Layout(snapshot, 55.0).own_now("ann", "default") == frozenset()


def test_a_layout_is_kept_until_a_window_opens_or_reservations_change() -> None:
    snapshot = snapshot_with(reserved(since=100.0, until=200.0))
    layout = layout_of(snapshot, 0.0)
    assert layout_of(snapshot, 99.0) is layout
    assert layout_of(snapshot, 100.0) is not layout
    kept = layout_of(snapshot, 150.0)
    snapshot.apply([DropReservation(name="demo")])
    assert layout_of(snapshot, 150.0) is not kept
    assert not layout_of(snapshot, 150.0).concerns("default")
