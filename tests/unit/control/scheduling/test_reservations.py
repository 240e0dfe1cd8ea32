"""Reservations: GPUs that can really be had in the window, or a refusal with the numbers and names in the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, OverLimit, Refusal, Taken, WrongState
from corral.control.fleet import node_actions, pools
from corral.control.people import groups, user_accounts
from corral.control.ports import Store
from corral.control.records import ReservationRecord
from corral.control.scheduling import reservations
from corral.control.scheduling.reservations import LISTED_SECONDS, ReservationState
from corral.control.scheduling.reserved_gpus import ReservationDraft
from corral.control.system import housekeeping
from corral.control.system.policies import Policies
from corral.core.snapshot.changes import PutRules
from corral.core.snapshot.installation import AllocationRules, Limits, PreemptionRules, Strategy
from corral.core.snapshot.journal import digest_of
from tests.unit.control.tenants import A10S, A100S, EVE, MIXED_NODES, assert_state_is_stored, reasons, tenants
from tests.unit.control.world import ANN, ROOT, Desk, draft
from tests.unit.core.builders import node

HOUR = 3600.0


@pytest.fixture
def desk(store: Store) -> Desk:
    return tenants(store)


def window(
    count: int | None = 4, since: float = 2000.0, until: float | None = 3000.0, **values: Any
) -> ReservationDraft:
    base: dict[str, Any] = {"users": ("eve",), "groups": (), "lends": False}
    return ReservationDraft(count=count, since=since, until=until, sets_until=True, **{**base, **values})


def reserve(desk: Desk, name: str = "demo", wanted: ReservationDraft | None = None) -> ReservationRecord:
    return desk.do(reservations.create, ROOT, name, "default", wanted or window())


def refused(desk: Desk, kind: type[Refusal], use_case: Callable[..., Any], *args: Any, **values: Any) -> Refusal:
    """The refusal; nothing is different after it."""
    before = digest_of(desk.state.snapshot.contents())
    with pytest.raises(kind) as found:
        desk.do(use_case, *args, **values)
    assert digest_of(desk.state.snapshot.contents()) == before
    return found.value


def view(desk: Desk, name: str = "demo") -> reservations.ReservationView:
    with desk.store.read() as tx:
        record = reservations.existing(tx, name)
    return reservations.reservation_views(desk.state, [record], desk.now)[0]


# -------------------------------------------------------------------------------------------- what can be done


def test_whole_nodes_of_one_model_are_chosen_first(desk: Desk) -> None:
    desk.started(draft("on-n1", gpus=1, nodes=1), caller=EVE)
    record = reserve(desk, wanted=window(5, groups=("default",), users=()))
    assert record.model == "A100"
    assert record.reservation.gpus == ("n3/0", "n3/1", "n3/2", "n3/3", "n4/0")
    assert desk.actions("demo") == ["reservation.created"]
    assert_state_is_stored(desk)


def test_named_gpus_are_taken_as_they_are(desk: Desk) -> None:
    record = reserve(desk, wanted=window(None, gpu_ids=("n2/3", "n1/0")))
    assert (record.model, record.reservation.gpus) == ("A10", ("n2/3", "n1/0"))
    assert view(desk).nodes == {"n2": ("n2/3",), "n1": ("n1/0",)}


def test_a_job_of_another_user_waits_with_the_reason_and_the_owners_runs(desk: Desk) -> None:
    reserve(desk, wanted=window(8, model="A10", since=1000.0, users=("eve",)))
    reserve(desk, "rest", window(8, model="A100", since=1000.0, users=("eve",)))
    (job,) = desk.submit(draft("stranger", gpus=1), caller=ROOT)
    (own,) = desk.submit(draft("owner-job", gpus=2), caller=EVE)
    assert desk.cycle() == [own.id]
    assert reasons(desk, job.id) == ["reserved"]
    assert (view(desk).used_by_owners + view(desk, "rest").used_by_owners, view(desk).lent) == (2, 0)
    desk.now = 3000.0
    assert desk.cycle() == [job.id]


def test_state_of_a_reservation_follows_the_time(desk: Desk) -> None:
    reserve(desk)
    states = []
    for desk.now in (1000.0, 2000.0, 2999.0, 3000.0):
        states.append(view(desk).state)
    assert states == ["upcoming", "active", "active", "over"]
    assert (
        reservations.state_of(replace(view(desk).record.reservation, until=None), 5000.0) is ReservationState.STANDING
    )


def test_expired_reservation_leaves_the_snapshot_and_later_the_list(desk: Desk) -> None:
    reserve(desk)
    desk.now = 3000.0
    desk.do(housekeeping.tidy)
    assert not desk.state.snapshot.reservations
    assert view(desk).state == "over"
    refused(desk, WrongState, reservations.edit, ROOT, "demo", ReservationDraft(note="too late"))
    again = reserve(desk, wanted=window(since=4000.0, until=5000.0))
    assert again.reservation.since == 4000.0
    desk.now = 5000.0 + LISTED_SECONDS + 1
    desk.do(housekeeping.tidy)
    with desk.store.read() as tx:
        assert tx.reservations.all() == []


def test_an_edit_keeps_what_it_can(desk: Desk) -> None:
    before = reserve(desk, wanted=window(3, model="A10"))
    more = desk.do(reservations.edit, ROOT, "demo", ReservationDraft(count=5, note="more people"))
    assert {*before.reservation.gpus} < {*more.reservation.gpus}
    assert (more.model, more.note, len(more.reservation.gpus)) == ("A10", "more people", 5)
    fewer = desk.do(reservations.edit, ROOT, "demo", ReservationDraft(count=2))
    assert {*fewer.reservation.gpus} < {*more.reservation.gpus}
    open_to_all = desk.do(reservations.edit, ROOT, "demo", ReservationDraft(lends=True, groups=("default",)))
    assert open_to_all.reservation == replace(fewer.reservation, lends=True, groups=("default",))
    assert desk.do(reservations.edit, ROOT, "demo", ReservationDraft()) == open_to_all
    assert desk.actions("demo") == ["reservation.created", *["reservation.edited"] * 3]
    assert_state_is_stored(desk)


def test_deleting_lets_everybody_in_again(desk: Desk) -> None:
    reserve(desk, wanted=window(None, gpu_ids=(*A10S,), since=1000.0))
    reserve(desk, "rest", window(None, gpu_ids=(*A100S,), since=1000.0))
    (job,) = desk.submit(draft("waiting-one", gpus=4), caller=ROOT)
    assert desk.cycle() == []
    desk.do(reservations.delete, ROOT, "demo")
    assert desk.cycle() == [job.id]
    refused(desk, NotFound, reservations.delete, ROOT, "demo")
    assert_state_is_stored(desk)


def test_a_list_is_of_a_pool_and_of_a_time(desk: Desk) -> None:
    reserve(desk)
    reserve(desk, "later", window(since=5000.0, until=6000.0))
    with desk.store.read() as tx:
        assert [one.name for one in reservations.listed(tx, "default", 2999.0, 5001.0)] == ["demo", "later"]
        assert [one.name for one in reservations.listed(tx, None, 3000.0, None)] == ["later"]
        assert [one.name for one in reservations.listed(tx, None, None, 2000.0)] == []
        assert reservations.listed(tx, "elsewhere") == []


# -------------------------------------------------------------------------------------------- what is refused


def test_only_operators_reserve(desk: Desk) -> None:
    for use_case, rest in (
        (reservations.create, ("demo", "default", window())),
        (reservations.edit, ("demo", ReservationDraft())),
        (reservations.delete, ("demo",)),
    ):
        refused(desk, Forbidden, use_case, ANN, *rest)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (window(users=(), groups=()), "say for which users or groups"),
        (window(users=("unknown",)), "there is no user unknown"),
        (window(groups=("nobodies",)), "there is no group nobodies"),
        (window(until=2000.0), "the end is not after the beginning"),
        (window(since=10.0, until=900.0), "the end is not after the beginning"),
        (window(None), "a reservation needs a number of GPUs, or a list of them"),
        (window(None, gpu_ids=()), "at least one GPU"),
        (window(None, gpu_ids=("n9/0",)), "pool default has no GPU n9/0"),
        (window(None, gpu_ids=("n1/0", "n3/0")), "of one model, these are: A10, A100"),
        (window(model="H100"), "no H100 GPU; it has: A10, A100"),
        (window(3, gpu_ids=("n1/0",)), "3 GPUs are asked for, and 1 is named"),
    ],
)
def test_invalid_reservations_are_refused(desk: Desk, wanted: ReservationDraft, words: str) -> None:
    assert words in refused(desk, Invalid, reservations.create, ROOT, "demo", "default", wanted).detail


def test_names_and_pools(desk: Desk) -> None:
    reserve(desk)
    refused(desk, Taken, reservations.create, ROOT, "demo", "default", window())
    refused(desk, Invalid, reservations.create, ROOT, "no good", "default", window())
    assert "there is no pool 'x'" in refused(desk, Invalid, reservations.create, ROOT, "two", "x", window()).detail


def test_two_cannot_have_a_gpu_at_the_same_time(desk: Desk) -> None:
    reserve(desk, wanted=window(None, gpu_ids=("n1/0", "n1/1")))
    clash = refused(
        desk, InUse, reservations.create, ROOT, "two", "default", window(None, gpu_ids=("n1/1", "n1/2"), since=2999.0)
    )
    assert clash.detail == "not free in that window: reservation demo has 1"
    assert clash.numbers == {"jobs": [], "reservations": ["demo"], "gpus": ["n1/1"]}
    after = window(None, gpu_ids=("n1/1",), since=3000.0, until=4000.0)
    reserve(desk, "two", after)
    # Nor by an edit that brings them together.
    edit = ReservationDraft(sets_until=True, until=3500.0, gpu_ids=("n1/0", "n1/1"))
    assert "reservation two has 1" in refused(desk, InUse, reservations.edit, ROOT, "demo", edit).detail
    # Without named GPUs it goes elsewhere.
    moved = desk.do(reservations.edit, ROOT, "demo", ReservationDraft(sets_until=True, until=3500.0))
    assert moved.reservation.gpus == ("n1/0", "n1/2")


def test_too_few_are_free_in_the_window(desk: Desk) -> None:
    (long,) = desk.started(draft("long-job", gpus=4), caller=ROOT)
    on = desk.job(long.id).allocation
    assert on is not None
    (short,) = desk.started(draft("short-job", gpus=4, time_limit_seconds=500.0), caller=ROOT)
    reserve(desk, "other", window(2, model=on.model))
    refusal = refused(desk, InUse, reservations.create, ROOT, "demo", "default", window(4, model=on.model))
    assert refusal.detail == (
        f"asked for 4 GPUs of one model; free of others in that window: 2 of 8 {on.model}. "
        f"In the way: job {long.id} has 4, reservation other has 2"
    ) or refusal.detail.endswith(f"In the way: reservation other has 2, job {long.id} has 4")
    assert (refusal.numbers["asked"], refusal.numbers["free"]) == (4, 2)
    assert short.id not in str(refusal.numbers["jobs"])
    # The owner's own jobs block no other job.
    reserve(desk, "mine", window(4, model=on.model, users=("root",)))


def test_a_job_that_could_be_preempted_is_in_the_way_of_one_that_does_not_lend(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", gpus=2),))
    desk.do(user_accounts.create_user, ROOT, "root")
    desk.do(user_accounts.create_user, ROOT, "eve")
    desk.started(draft("long-job", gpus=2), caller=ROOT)
    preempts = PutRules(limits=Limits(), score_time_constant=1.0, preemption=PreemptionRules(enabled=True))
    desk.state.apply([preempts])
    with pytest.raises(InUse, match="job j-1 has 2"):
        desk.do(reservations.create, ROOT, "demo", "default", window(2, lends=False))
    desk.state.apply([preempts])
    assert reserve(desk, wanted=window(2, lends=True)).reservation.gpus == ("n1/0", "n1/1")


def test_hybrid_reserves_only_a_part_of_a_pool_standing(desk: Desk) -> None:
    reserve(desk, wanted=window(3, until=None))
    refusal = refused(desk, OverLimit, reservations.create, ROOT, "two", "default", window(2, until=None))
    assert refusal.detail == (
        "standing reservations may take 4 GPUs of pool default together (allocation.reserved_ratio is 0.3):"
        " asked for 2, others have 3"
    )
    assert refusal.numbers == {"asked": 2, "held": 3, "limit": 4}
    reserve(desk, "two", window(1, until=None))
    reserve(desk, "window", window(4, until=9000.0))


def test_dynamic_reserves_nothing_standing_and_static_as_much_as_wanted(store: Store) -> None:
    for strategy in (Strategy.DYNAMIC, Strategy.STATIC):
        desk = Desk(store, Policies(allocation=AllocationRules(strategy=strategy)), nodes=MIXED_NODES)
        if strategy is Strategy.DYNAMIC:
            desk.do(user_accounts.create_user, ROOT, "eve")
            refusal = refused(desk, Invalid, reservations.create, ROOT, "always", "default", window(1, until=None))
            assert "allocation.strategy is dynamic" in refusal.detail
        else:
            reserve(desk, "always", window(8, until=None))


# -------------------------------------------------------------------------------------------- what else changes


def test_reserved_gpus_and_their_pool_stay(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "small", gpus=A10S)
    desk.do(reservations.create, ROOT, "demo", "small", window(4))
    detail = "reserved GPUs cannot be moved: demo has 4 of them"
    assert refused(desk, InUse, pools.move_gpus, ROOT, "default", A10S).detail == detail
    assert refused(desk, InUse, pools.edit, ROOT, "small", gpus=A10S[4:]).detail == detail
    assert refused(desk, InUse, pools.delete, ROOT, "small").detail == "pool small has reservations: demo"
    desk.now = 3000.0
    desk.do(pools.delete, ROOT, "small")


def test_owners_that_go(desk: Desk) -> None:
    desk.do(groups.create, ROOT, "vision")
    reserve(desk, wanted=window(users=("bob", "eve"), groups=("vision",)))
    reserve(desk, "own", window(1, users=("bob",)))
    assert "alone owns reservations: own" in refused(desk, InUse, user_accounts.delete_user, ROOT, "bob").detail
    assert "named by reservations: demo" in refused(desk, InUse, groups.delete, ROOT, "vision").detail
    desk.do(reservations.delete, ROOT, "own")
    desk.do(user_accounts.delete_user, ROOT, "bob")
    assert view(desk).record.reservation.users == ("eve",)
    assert desk.actions("demo")[-1] == "reservation.edited"
    assert_state_is_stored(desk)


def test_gpus_that_go(desk: Desk) -> None:
    reserve(desk, wanted=window(8, model="A10"))
    reserve(desk, "small", window(2, model="A100"))
    # A node that is away for a while takes nothing with it.
    desk.observe(*MIXED_NODES[1:2])
    assert len(view(desk).record.reservation.gpus) == 8
    desk.do(node_actions.remove, ROOT, "n1")
    assert view(desk).record.reservation.gpus == A10S[4:]
    desk.do(node_actions.remove, ROOT, "n3")
    assert desk.actions("small") == ["reservation.created", "reservation.deleted"]
    assert_state_is_stored(desk)
