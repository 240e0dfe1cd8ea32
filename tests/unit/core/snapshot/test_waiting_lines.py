"""The order of a waiting line is total, repeatable, and obeys the rules of its policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Job, JobKind, JobState, Request
from corral.core.scheduling.ordering import POLICIES as ORDERS
from corral.core.scheduling.ordering import shortest, weighted
from corral.core.scheduling.ordering.cost import OrderingRules, Weights
from corral.core.snapshot.waiting_lines import Line, LineKey, line_of, shape_of
from tests.unit.core.strategies import POLICIES, PREDICTIONS, USERS
from tests.unit.searching import between, each, pick, seconds

#: under both, a second of waiting makes up for a quarter of the cost's unit
RULES = OrderingRules(ageing=0.25, weights=Weights(age=900.0), unknown_seconds=40.0)
NOW = 1000.0
COSTS: dict[str, Callable[[Job], float]] = {
    "shortest": lambda job: shortest.cost(job, RULES),
    "weighted": lambda job: weighted.cost(job, RULES),
}
REQUESTS = tuple(Request(gpus=gpus) for gpus in (1, 2, 3))
KEY = LineKey("default", "any", False)
scores = st.fixed_dictionaries({user: st.sampled_from([0.0, 0.5, 2.0]) for user in USERS})


@st.composite
def waiting_jobs(draw: st.DrawFn) -> list[Job]:
    return [
        Job(
            id=f"j-{serial}",
            name=f"job-{serial}",
            state=JobState.QUEUED,
            **each(
                draw,
                user=USERS,
                kind=(JobKind.TRAINING, JobKind.WORKBENCH),
                request=REQUESTS,
                priority=(1, 5, 5),
                created_at=seconds(0, 3),
                pinned_at=(None, None, None, None, 1.0, 2.0),
                user_order=(0, 0, -1, -2, 3),
                queued_at=seconds(0, 30),
                time_limit_seconds=(None, 60.0, 90.0, 600.0),
                predicted=(None, None, *PREDICTIONS),
            ),
        )
        for serial in range(1, draw(between(1, 14)) + 1)
    ]


def line_with(policy: str, jobs: list[Job]) -> Line:
    line = Line(KEY, policy, RULES)
    for job in jobs:
        line.add(job)
    return line


def order_of(line: Line, score: dict[str, float]) -> list[Job]:
    walked = list(line.cursor(score.__getitem__))
    assert list(line.in_order(score.__getitem__)) == walked, "seen as it is walked"
    assert list(line.in_order(score.__getitem__, few=True)) == walked, "the same, put in order as it is read"
    assert [line.count_before(job, score.__getitem__) for job in walked] == [*range(len(walked))], "counted as walked"
    for job, following in pairwise(walked):
        assert line.goes_before(job, following, score.__getitem__)
        assert not line.goes_before(following, job, score.__getitem__)
    return walked


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=waiting_jobs(), score=scores, seed=st.integers(0, 999))
def test_the_order_is_total_and_does_not_depend_on_arrival(
    policy: str, jobs: list[Job], score: dict[str, float], seed: int
) -> None:
    order = order_of(line_with(policy, jobs), score)
    assert sorted(job.id for job in order) == sorted(job.id for job in jobs)
    shuffled = list(jobs)
    Random(seed).shuffle(shuffled)
    line = line_with(policy, shuffled)
    assert order_of(line, score) == order
    # Also after some have left and come back.
    for job in shuffled[::2]:
        line.remove(job)
    assert {job.id for job in order_of(line, score)} == {job.id for job in shuffled[1::2]}
    for job in shuffled[::2]:
        line.add(job)
    assert order_of(line, score) == order


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=waiting_jobs(), score=scores)
def test_every_pair_stands_as_the_rules_say(policy: str, jobs: list[Job], score: dict[str, float]) -> None:
    order = order_of(line_with(policy, jobs), score)
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            assert not _must_be_before(policy, second, first, score), (second.id, first.id)


def _must_be_before(policy: str, one: Job, other: Job, score: dict[str, float]) -> bool:
    """Whether the rules alone, without looking at third jobs, put `one` before `other`."""
    if one.pinned_at is not None or other.pinned_at is not None:
        return (one.pinned_at or -1.0, -one.serial) > (other.pinned_at or -1.0, -other.serial)
    by_age = (one.created_at, one.serial) < (other.created_at, other.serial)
    by_priority = (one.priority, one.created_at, one.serial) < (other.priority, other.created_at, other.serial)
    if policy == "fcfs":
        return by_age
    if policy in COSTS:
        # By what each has left of its cost, at any moment at which both wait.
        left = [COSTS[policy](job) - 0.25 * (NOW - (job.queued_at or 0.0)) for job in (one, other)]
        return left[0] < left[1] - 1e-6 or (left[0] == left[1] and by_age and policy == "shortest")
    if policy == "priority":
        return by_priority
    if one.user != other.user:
        # With equal scores the whole sequences decide, not this pair.
        return score[one.user] < score[other.user]
    return by_priority if one.user_order == other.user_order else one.user_order < other.user_order


@given(jobs=waiting_jobs(), score=scores, data=st.data())
def test_stepping_over_jobs_keeps_the_order_of_the_rest(
    jobs: list[Job], score: dict[str, float], data: st.DataObject
) -> None:
    """For different scores, a walk that skips some shapes sees what the whole walk sees, less those, and less what
    differs from them in staying for longer.
    """
    distinct = {user: value + place * 0.01 for place, (user, value) in enumerate(score.items())}
    line = line_with("fair-share", jobs)
    whole = order_of(line, distinct)
    cursor = line.cursor(distinct.__getitem__)
    seen, skipped_for = [], set()
    skipped: list[Job] = []
    skipped_own: list[Job] = []
    expected = []
    for job in whole:
        shape = line.number_of(job)
        own = [other for other in skipped_own if other.user == job.user]
        if any(_is_like_and_as_long(job, other) for other in [*skipped, *own]) or (job.user, shape) in skipped_for:
            continue
        expected.append(job.id)
        assert cursor.peek() == job
        popped = cursor.pop()
        assert popped is not None
        seen.append(popped.id)
        match data.draw(pick("", "", "all", "own", "own and longer")):
            case "all":
                skipped.append(job)
                cursor.skip_like(job)
            case "own":
                skipped_for.add((job.user, shape))
                cursor.skip_own_like(job)
            case "own and longer":
                skipped_own.append(job)
                cursor.skip_own_longer(job, math.inf)
    assert seen == expected
    assert cursor.pop() is None


def _is_like_and_as_long(job: Job, other: Job) -> bool:
    one, two = shape_of(job), shape_of(other)
    longer = two.held_seconds is not None and (one.held_seconds is None or one.held_seconds >= two.held_seconds)
    return one == two or (one._replace(held_seconds=None) == two._replace(held_seconds=None) and longer)


@given(jobs=waiting_jobs())
def test_a_line_that_is_empty_again_has_forgotten_everything(jobs: list[Job]) -> None:
    line = line_with("fair-share", jobs)
    for job in jobs:
        line.remove(job)
    assert not any((line._numbers, line._population, line._lengths, line._timeless, line._lengths_of, line._users))


def test_own_order_against_age_makes_no_cycle() -> None:
    """Equal scores, and ann put her new job before her old one; bob's age is in between: pair by pair, a circle."""
    old = Job(id="j-1", name="ann-old", user="ann", state=JobState.QUEUED, created_at=1, user_order=-1)
    bobs = Job(id="j-2", name="bobs", user="bob", state=JobState.QUEUED, created_at=2)
    new = Job(id="j-3", name="ann-new", user="ann", state=JobState.QUEUED, created_at=3, user_order=-2)
    order = order_of(line_with("fair-share", [old, bobs, new]), {"ann": 0.0, "bob": 0.0})
    assert [job.name for job in order] == ["bobs", "ann-new", "ann-old"]


def test_the_later_pin_goes_first_in_every_policy() -> None:
    jobs = [
        Job(id=f"j-{n}", name=f"job-{n}", user="ann", state=JobState.QUEUED, priority=0, pinned_at=pin)
        for n, pin in ((1, None), (2, 10.0), (3, 20.0))
    ]
    for policy in POLICIES:
        assert [job.serial for job in order_of(line_with(policy, jobs), {"ann": 0.0})] == [3, 2, 1]


def test_lines_are_per_queue_model_and_gang() -> None:
    def line(**request: object) -> LineKey:
        return line_of(Job(id="j-1", name="name", user="ann", request=Request(**request)))  # type: ignore[arg-type]

    assert line() == ("default", "cpu", False)
    assert line(gpus=1) == ("default", "any", False)
    assert line(gpu_milli=500, models=("A10", "H100")) == ("default", "A10|H100", False)
    assert line(gpus=1, nodes=2, models=("A10",)) == ("default", "A10", True)


def test_removing_a_job_that_is_not_there_is_an_error() -> None:
    job = Job(id="j-1", name="name", user="ann", state=JobState.QUEUED)
    with pytest.raises(KeyError, match="j-1"):
        Line(KEY, "fcfs").remove(job)


@given(jobs=waiting_jobs(), policy=st.sampled_from(sorted(POLICIES)))
def test_without_scores_users_are_merged_by_what_orders_their_own_jobs(jobs: list[Job], policy: str) -> None:
    """Lines rely on it: they keep the one key and never work out the other."""
    rules = ORDERS[policy]
    for job in jobs:
        merged, own = rules.merge_key(job, 0.5, RULES), rules.own_key(job, RULES)
        assert merged == (own if not rules.uses_score else (0.5, *own[1:]))
        assert rules.uses_score == rules.uses_own_order
