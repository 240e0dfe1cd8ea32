"""When a lease is free, and how long its holder acts: by steady clocks only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.ports import EngineUnavailable, LaunchOrder, LeaseRecord
from corral.control.standby.lease import HeldLease, LeaseTimes, LeaseWatch

TIMES = LeaseTimes(lease_seconds=4.0)
ORDER = LaunchOrder(attempt_id="j-1.1", job_id="j-1", user="ann", command=("true",), instances=())


def held(renewals: int, *, has_session: bool = True, token: str = "a") -> LeaseRecord:
    return LeaseRecord(server="one", token=token, renewals=renewals, has_session=has_session)


def test_a_lease_without_a_holder_is_free_at_once() -> None:
    assert LeaseWatch(TIMES).saw(LeaseRecord(), 100.0)


def test_a_lease_is_free_after_its_time_without_a_renewal() -> None:
    watch = LeaseWatch(TIMES)
    assert not watch.saw(held(1), 100.0)
    assert not watch.saw(held(1), 103.9)
    assert watch.saw(held(1), 104.0)


def test_a_renewal_begins_the_time_again() -> None:
    watch = LeaseWatch(TIMES)
    watch.saw(held(1), 100.0)
    assert not watch.saw(held(2), 103.9)
    assert not watch.saw(held(2), 107.8)


def test_another_leader_with_the_same_number_of_renewals_is_another_lease() -> None:
    watch = LeaseWatch(TIMES)
    watch.saw(held(0), 100.0)
    assert not watch.saw(held(0, token="b"), 200.0)


def test_a_leader_whose_session_is_gone_is_replaced_sooner_but_not_at_once() -> None:
    watch = LeaseWatch(TIMES)
    assert not watch.saw(held(1), 100.0)
    assert not watch.saw(held(1, has_session=False), 100.7)
    assert watch.saw(held(1, has_session=False), 100.9)


def test_after_an_outage_of_the_store_the_leader_gets_its_whole_time() -> None:
    watch = LeaseWatch(TIMES)
    watch.saw(held(1), 100.0)
    watch.failed()
    assert not watch.saw(held(1), 110.0)
    assert watch.saw(held(1), 114.0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_leader_stops_launching_before_its_lease_ends_and_goes_on_when_it_renews() -> None:
    clock = Clock()
    lease = HeldLease(TIMES, clock)
    assert not lease.may_act
    lease.renewed(0.0)
    clock.now = TIMES.act_seconds - 0.01
    assert lease.may_act
    clock.now = TIMES.act_seconds
    with pytest.raises(EngineUnavailable, match="renew"):
        lease.prepare("local", ORDER)
    lease.renewed(clock.now)
    assert lease.prepare("local", ORDER) == ORDER


def test_a_failed_renewal_stops_it_at_once() -> None:
    lease = HeldLease(TIMES, Clock())
    lease.renewed(0.0)
    lease.failed()
    assert not lease.may_act


@given(
    offset=st.floats(-1e6, 1e6),
    renewals=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=20),
    delays=st.lists(st.floats(0.0, 2.0), min_size=20, max_size=20),
    looks=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=100),
)
def test_no_standby_finds_a_lease_free_while_its_holder_acts(
    offset: float, renewals: list[float], delays: list[float], looks: list[float]
) -> None:
    """Holds for any difference of the two clocks, and any duration of a renewal's commit. The leader's session is there
    all the time: it is frozen, or cut off.
    """
    leader_clock, watch = Clock(), LeaseWatch(TIMES)
    lease = HeldLease(TIMES, leader_clock)
    begun, commits = 0.0, []
    for pause, delay in zip(renewals, delays, strict=False):
        begun += pause
        # A renewal is answered after its commit; the next one begins after that.
        commits.append((begun, begun + delay))
        begun += delay
    at = 0.0
    for step in looks:
        at += step
        seen = sum(1 for _, committed in commits if committed <= at)
        is_free = watch.saw(held(seen), at + offset)
        leader_clock.now = at
        for began, committed in commits:
            if committed <= at:
                lease.renewed(began)
        assert not (is_free and lease.may_act)
