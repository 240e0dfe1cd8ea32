"""The order of running jobs, compared with a plain count of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corral.core.model import Job, Prediction
from corral.core.scheduling.ordering.cost import OrderingRules, next_fall_at
from corral.core.snapshot.running_order import Ranking, rank_in
from tests.unit.core.builders import running
from tests.unit.searching import every, seconds

RULES = OrderingRules(ageing=0.5, unknown_seconds=40.0, unknown_margin=0.8)
PREDICTIONS = [
    *(Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=3) for seconds in (20.0, 300.0)),
    Prediction(p50_seconds=40.0, p90_seconds=90.0, samples=20, spread=(5.0, 5.0, 40.0, 41.0, 90.0, 300.0)),
]
RUNNERS = every(
    gpus=(1, 2, 3, 4),
    priority=(1, 2, 3),
    started_at=(0.0, 30.0),
    aged_from=seconds(0, 50),
    time_limit_seconds=(None, 200.0),
    predicted=(None, *PREDICTIONS),
    preemptible=(True, True, True, True, False),
    pinned_at=(None, None, None, 1.0),
)

#: some places are asked for again and again, as those of a job that waits for long
PLACES = st.sampled_from([0.0, 12.0, 300.0]) | st.floats(-10.0, 4_000.0)


@st.composite
def runners(draw: st.DrawFn, serial: int) -> Job:
    drawn = draw(RUNNERS)
    return running(serial, {"n1": tuple(range(drawn.pop("gpus")))}, **drawn)


@given(
    st.integers(1, 12).flatmap(lambda count: st.tuples(*(runners(serial) for serial in range(1, count + 1)))),
    st.sampled_from(["priority", "shortest", "weighted"]),
    st.floats(30.0, 500.0),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.lists(st.floats(-10.0, 1_300.0), min_size=1, max_size=4),
    st.sets(st.integers(1, 12)),
)
def test_all_behind_a_place_are_named_and_no_other_job(
    jobs: tuple[Job, ...], policy: str, now: float, margin: float, places: list[float], gone: set[int]
) -> None:
    ranking = Ranking(policy, RULES, jobs)
    for job in jobs:
        if job.serial in gone:
            ranking.remove(job.id)
    left = [job for job in jobs if job.serial not in gone and job.preemptible and job.pinned_at is None]
    # What was computed earlier must not change the answer.
    earlier = ranking.at(0.9 * now, margin)
    assert earlier.next_fall() is None or list(earlier.behind(places[0])) is not None
    then = ranking.at(now, margin)
    for place in places:
        expected = set()
        for job in left:
            rank = rank_in(policy, job, RULES, now)
            assert rank is not None
            if place < rank.place - max(margin * rank.cost, rank.least_lead):
                expected.add(job.id)
        assert {job.id for job in then.behind(place)} == expected


def next_fall(jobs: Sequence[Job], policy: str, place: float = 0.0) -> float | None:
    then = Ranking(policy, RULES, jobs).at(10.0, 0.0)
    list(then.behind(place))
    return then.next_fall()


def test_only_what_nothing_is_known_of_falls_back() -> None:
    known = running(1, {"n1": (0,)}, time_limit_seconds=100.0)
    unknown = running(2, {"n1": (1,)})
    assert next_fall([known], "shortest") is None
    assert next_fall([known, unknown], "shortest") == pytest.approx(40.0, abs=0.01)
    assert next_fall([unknown], "priority") is None


def test_a_fall_that_lets_no_job_pass_is_not_waited_for() -> None:
    """It is taken for 40 s, then for 80 s, then for 160 s: after the second fall 80 s are left, a fifth is 16."""
    unknown = running(1, {"n1": (0,)}, aged_from=0.0)
    assert next_fall([unknown], "shortest", place=7.9) == pytest.approx(40.0, abs=0.01)
    assert next_fall([unknown], "shortest", place=15.9) == pytest.approx(80.0, abs=0.01)
    assert next_fall([unknown], "shortest", place=31.9) == pytest.approx(160.0, abs=0.01)
    assert Ranking("shortest", RULES, [unknown]).at(10.0, 0.0).next_fall() is None, "no job has asked"


@given(
    st.integers(1, 8).flatmap(lambda count: st.tuples(*(runners(serial) for serial in range(1, count + 1)))),
    st.floats(30.0, 500.0),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.floats(-10.0, 1_300.0),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5),
)
def test_before_the_next_fall_no_further_job_can_be_preempted(
    jobs: tuple[Job, ...], now: float, margin: float, place: float, parts: list[float]
) -> None:
    ranking = Ranking("shortest", RULES, jobs)
    first = ranking.at(now, margin)
    behind = {job.id for job in first.behind(place)}
    fall = first.next_fall()
    until = now + 5_000.0 if fall is None else fall - 0.01
    for part in parts:
        at = now + part * max(0.0, until - now)
        assert {job.id for job in ranking.at(at, margin).behind(place)} <= behind
    if fall is not None:
        assert fall > now
        assert {*ranking.at(fall, margin).behind(place)}


def _plain_next_fall(job: Job, policy: str, now: float, margin: float, place: float) -> float | None:
    """The next fall of one job that lets a job at this place pass, searched step by step from now on; the eighth at the
    latest."""
    at = now
    for _ in range(8):
        following = next_fall_at(job, RULES, at)
        if following is None or following <= at:
            return None
        at = following + 1e-3
        rank = rank_in(policy, job, RULES, at)
        assert rank is not None
        if rank.place - (max(margin * rank.cost, rank.least_lead) if rank.cost else 0.0) > place:
            break
    return at


@given(
    st.integers(1, 8).flatmap(lambda count: st.tuples(*(runners(serial) for serial in range(1, count + 1)))),
    st.lists(st.tuples(st.integers(1, 8), st.floats(30.0, 500.0), PLACES), max_size=12),
)
def test_jobs_that_come_and_go_leave_the_next_fall_of_those_that_are_there(
    jobs: tuple[Job, ...], steps: list[tuple[int, float, float]]
) -> None:
    """Each step takes a job out or puts it in again, then asks; also for an earlier time than before."""
    ranking, there = Ranking("shortest", RULES, jobs), {job.id: job for job in jobs}
    for serial, now, place in steps:
        job = jobs[serial % len(jobs)]
        if there.pop(job.id, None) is None:
            there[job.id] = job
            ranking.add(job)
        else:
            ranking.remove(job.id)
        fresh = Ranking("shortest", RULES, there.values()).at(now, 0.3)
        then = ranking.at(now, 0.3)
        assert [one.id for one in then.behind(place)] == [one.id for one in fresh.behind(place)]
        assert then.next_fall() == fresh.next_fall()


@given(
    runners(1),
    st.sampled_from(["shortest", "weighted"]),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.lists(st.tuples(st.floats(30.0, 5_000.0), PLACES), min_size=1, max_size=5),
    st.sampled_from([(0.0, 0.0), (100.0, 30.0), (0.0, 45.0)]),
)
@example(
    running(1, {"n1": (0, 1, 2, 3)}, priority=1, aged_from=20.0, predicted=PREDICTIONS[1]),
    "weighted",
    0.0,
    [(300.0, 12.0)],
    (0.0, 0.0),
)
def test_falls_that_are_kept_are_those_of_a_plain_search(
    job: Job, policy: str, margin: float, asked: list[tuple[float, float]], before: tuple[float, float]
) -> None:
    """Earlier queries, for earlier or later times, change nothing."""
    if not job.preemptible or job.pinned_at is not None or job.time_limit_seconds is not None:
        return
    job = replace(job, attained_seconds=before[0], reached_seconds=before[1])
    ranking = Ranking(policy, RULES, [job])
    for now, place in asked:
        expected = _plain_next_fall(job, policy, now, margin, place)
        found = ranking.unsteady(margin).next_fall(now, place)
        assert found == ranking.unsteady(margin).next_fall(now, place)
        assert found == Ranking(policy, RULES, [job]).unsteady(margin).next_fall(now, place)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None and found != pytest.approx(expected, abs=0.01):
            # A fall that is over by less than the rounding counts once more: a cycle too many, none too few.
            assert now < found == pytest.approx(_plain_next_fall(job, policy, now - 2e-3, margin, place), abs=0.01)
