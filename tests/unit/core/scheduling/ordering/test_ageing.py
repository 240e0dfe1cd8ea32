"""`shortest` and `weighted`: what a job costs, how waiting makes up for it, and the text about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Job, Prediction, Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain, line_order
from corral.core.scheduling.ordering import shortest, weighted
from corral.core.scheduling.ordering.cost import OrderingRules, Weights, expected_seconds
from corral.core.snapshot.changes import PutQueue, PutRules
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.waiting_lines import line_of
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.searching import between, every

HOUR = 3600.0
#: fast ageing, so that its numbers are small
RULES = OrderingRules(ageing=4.0, unknown_seconds=24 * HOUR)
POLICIES = {"shortest": shortest, "weighted": weighted}


def expecting(seconds: float, samples: int = 12) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=2 * seconds, samples=samples, like="ann's job-# on 4 GPUs")


def ruled(ordering: OrderingRules) -> PutRules:
    return PutRules(limits=Limits(), score_time_constant=HOUR, ordering=ordering)


def names(*jobs: Job, policy: str = "shortest", rules: OrderingRules = RULES) -> list[int]:
    snapshot = snapshot_of(Queue(name="default", policy=policy), ruled(rules), *jobs)
    return [job.serial for job in line_order(snapshot, line_of(jobs[0]), 1e6)]


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        (waiting(1, predicted=expecting(600.0)), 600.0),
        (waiting(1, predicted=expecting(600.0), time_limit_seconds=HOUR), 600.0),
        (waiting(1, predicted=expecting(600.0), time_limit_seconds=60.0), 60.0),
        (waiting(1, time_limit_seconds=60.0), 60.0),
        (waiting(1, time_limit_seconds=60.0, ran_seconds=20.0), 40.0),
        (waiting(1), 24 * HOUR),
    ],
)
def test_a_job_runs_as_its_like_did_and_never_longer_than_it_may(job: Job, seconds: float) -> None:
    assert expected_seconds(job, RULES) == seconds


def test_the_least_gpu_time_goes_first() -> None:
    long = waiting(1, gpus=1, predicted=expecting(9 * HOUR))
    large = waiting(2, gpus=4, predicted=expecting(2 * HOUR))
    short = waiting(3, gpus=2, predicted=expecting(HOUR))
    unknown = waiting(4, gpus=1)
    assert names(long, large, short, unknown) == [3, 2, 1, 4]


def test_an_hour_of_waiting_makes_up_for_the_ageing_in_gpu_hours() -> None:
    long = waiting(1, at=0.0, gpus=1, predicted=expecting(9 * HOUR))
    soon = waiting(2, at=1.9 * HOUR, gpus=1, predicted=expecting(HOUR))
    late = waiting(3, at=2.1 * HOUR, gpus=1, predicted=expecting(HOUR))
    # Eight GPU-hours more are made up for in two hours at four an hour.
    assert names(long, soon, late) == [2, 1, 3]
    assert names(long, soon, late, rules=OrderingRules(ageing=0.1)) == [2, 3, 1]


def test_the_parts_of_weighted_add_up() -> None:
    urgent = waiting(1, gpus=1, priority=1, predicted=expecting(3 * 60.0))
    assert weighted.cost(urgent, RULES) == 1 + 1 + 2
    assert weighted.cost(urgent, OrderingRules(weights=Weights(priority=5, size=0, runtime=10))) == 5 + 20


def test_each_weight_decides_when_it_is_the_only_one() -> None:
    first = waiting(1, gpus=4, priority=5, predicted=expecting(60.0))
    second = waiting(2, gpus=1, priority=9, predicted=expecting(600.0))
    third = waiting(3, gpus=2, priority=1, predicted=expecting(6000.0))
    none = {"priority": 0.0, "size": 0.0, "runtime": 0.0, "age": 0.001}

    def order(**weight: float) -> list[int]:
        rules = OrderingRules(weights=Weights(**{**none, **weight}))
        return names(first, second, third, policy="weighted", rules=rules)

    assert order(priority=1.0) == [3, 1, 2]
    assert order(size=1.0) == [2, 3, 1]
    assert order(runtime=1.0) == [1, 2, 3]
    assert order(age=1.0) == [1, 2, 3]


def test_pins_stand_above_every_sum() -> None:
    short, pinned = waiting(1, gpus=1, predicted=expecting(1.0)), waiting(2, gpus=1, pinned_at=5.0)
    assert names(short, pinned) == [2, 1]


def test_a_line_is_ordered_anew_when_its_policy_or_the_rules_change() -> None:
    long = waiting(1, at=0.0, gpus=1, predicted=expecting(9 * HOUR))
    short = waiting(2, at=HOUR, gpus=1, predicted=expecting(HOUR))
    snapshot = snapshot_of(Queue(name="default", policy="fcfs"), long, short)

    def order() -> list[int]:
        return [job.serial for job in line_order(snapshot, line_of(long), 1e6)]

    assert order() == [1, 2]
    snapshot.apply([PutQueue(queue=Queue(name="default", policy="shortest"))])
    assert order() == [2, 1]
    snapshot.apply([ruled(OrderingRules(ageing=100.0))])
    assert order() == [1, 2]


@pytest.mark.parametrize(
    ("policy", "job", "words"),
    [
        (
            "shortest",
            waiting(2, gpus=4, predicted=expecting(4800.0)),
            "predicted 1h20m of 4 GPUs from 12 runs like it; nothing queued over 1h20m after it goes before it",
        ),
        (
            "shortest",
            waiting(2, gpus=1, time_limit_seconds=HOUR),
            "at most 1h of 1 GPU by its time limit, as no runs like it are known; "
            "nothing queued over 15m after it goes before it",
        ),
        (
            "weighted",
            waiting(2, gpus=1, predicted=expecting(180.0, samples=1)),
            "priority 5 + size 1 + run time 2, less 1 for each hour of waiting "
            "(predicted 3m of 1 GPU from 1 run like it); nothing queued over 8h after it goes before it",
        ),
        ("fcfs", waiting(2, gpus=1), "by age"),
        ("priority", waiting(2, gpus=1), "priority 5, then age"),
        (
            "fair-share",
            waiting(2, gpus=1, user_order=-1),
            "score 0 of ann, moved by its owner, then priority 5 and age",
        ),
        ("shortest", waiting(2, gpus=1, pinned_at=3.0), "pinned by an operator"),
    ],
)
def test_why_says_what_a_place_comes_from(policy: str, job: Job, words: str) -> None:
    snapshot = snapshot_of(
        Queue(name="default", policy=policy), ruled(RULES), node("n1", gpus=4), running(1, {"n1": (0, 1, 2, 3)}), job
    )
    assert explain(snapshot, schedule(snapshot, 10.0), job, 10.0).place == words


times = st.integers(0, 10**6).map(float)


FIELDS = every(user=("ann", "bob"), gpus=(1, 2, 8), priority=(0, 5, 100), time_limit_seconds=(None, 60.0, 1e5))


@st.composite
def lined_up(draw: st.DrawFn) -> list[Job]:
    return [
        waiting(
            serial,
            at=draw(times),
            predicted=draw(st.none() | st.floats(0, 1e6).map(expecting)),
            **draw(FIELDS),
        )
        for serial in range(1, draw(between(2, 8)) + 1)
    ]


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=lined_up(), ageing=st.sampled_from([0.01, 1.0, 64.0]), age=st.sampled_from([0.01, 1.0, 50.0]))
def test_nothing_queued_after_the_bound_stands_before_a_job(
    policy: str, jobs: list[Job], ageing: float, age: float
) -> None:
    rules = OrderingRules(ageing=ageing, weights=Weights(age=age))
    snapshot = snapshot_of(Queue(name="default", policy=policy), ruled(rules), *jobs)
    order = list(line_order(snapshot, line_of(jobs[0]), 1e7))
    for place, one in enumerate(order):
        latest = (one.queued_at or 0.0) + POLICIES[policy].bound_seconds(one, rules)
        # A thousandth of a second is left to rounding.
        assert all((ahead.queued_at or 0.0) <= latest + 1e-3 for ahead in order[:place])
