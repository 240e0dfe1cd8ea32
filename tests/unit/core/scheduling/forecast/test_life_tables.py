"""How long jobs run of which no run of the same name is known: by the ends, and by those that still run."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.lifecycle import Ended, StopRequested, advance
from corral.core.model import Elastic, EndReason, Job, JobKind, JobState, Prediction
from corral.core.scheduling.forecast import life_tables
from corral.core.scheduling.forecast.life_tables import (
    ENOUGH,
    MOST_TABLES,
    NO_TABLES,
    Hazards,
    LifeTables,
    Tables,
    is_enough,
    table_keys,
)
from corral.core.scheduling.forecast.remaining_time import Outlook, RolloutSample, seconds_from_start, seconds_left
from corral.core.scheduling.forecast.run_time_model import (
    Features,
    RunTimes,
    has_similar_runs,
    learn,
    life_table_keys,
    predicted,
)
from corral.core.scheduling.ordering.cost import OrderingRules
from tests.unit.core.builders import running, waiting

RULES = OrderingRules(unknown_seconds=7200.0)
HOUR = 3600.0
ANN, BOB = (table_keys(user, JobKind.TRAINING, 1, 1000) for user in ("ann", "bob"))

run_times = st.lists(st.floats(0.0, 1e7), min_size=ENOUGH, max_size=60)


def tables_of(*runs: float, user: str = "ann") -> Tables:
    tables = LifeTables()
    for seconds in runs:
        tables.add(table_keys(user, JobKind.TRAINING, 1, 1000), seconds)
    return tables.copy()


def middle(tables: Tables, ran: float = 0.0, keys: tuple[life_tables.TableKey, ...] = ANN) -> float:
    return Hazards(tables, ()).of(keys).end(ran, 0.5)


def unnamed(serial: int = 1, **values: object) -> Job:
    return replace(waiting(serial, gpus=1), name=str(serial), **values)  # type: ignore[arg-type]


def test_quantiles_are_about_those_of_the_runs() -> None:
    draw = random.Random(1)
    runs = [draw.lognormvariate(8.0, 1.5) for _ in range(3000)]
    hazard = Hazards(tables_of(*runs), ()).of(ANN)
    lately = sorted(runs[-life_tables.HALF_LIVES[-1] * 2 :])
    for level in (0.2, 0.5, 0.8):
        assert hazard.end(0.0, level) == pytest.approx(lately[int(level * len(lately))], rel=0.5)


def test_jobs_that_still_run_count_with_what_they_have_run() -> None:
    """Forty jobs ended within minutes, and forty more run for a day already: half of such jobs take long."""
    tables = tables_of(*[120.0] * 40)
    alone = Hazards(tables, ()).of(ANN).end(0.0, 0.8)
    beside = Hazards(tables, [(ANN, 24 * HOUR)] * 40).of(ANN).end(0.0, 0.8)
    assert alone < 0.2 * HOUR
    assert beside > 24 * HOUR


def test_the_longer_a_job_has_run_the_longer_it_will() -> None:
    tables = tables_of(*[60.0 * 2**number for number in range(10)] * 3)
    ends = [middle(tables, ran) - ran for ran in (0.0, 600.0, 6000.0)]
    assert ends == sorted(ends)


def test_a_user_without_runs_is_predicted_from_all_users() -> None:
    tables = LifeTables()
    for _ in range(30):
        tables.add(ANN, 10 * HOUR)
        tables.add(BOB, 300.0)
    known = tables.copy()
    eve = table_keys("eve", JobKind.TRAINING, 1, 1000)
    assert middle(known, keys=BOB) < middle(known, keys=eve) < middle(known, keys=ANN)


def test_later_runs_count_more() -> None:
    before, after = [300.0] * 500, [10 * HOUR] * 500
    assert middle(tables_of(*before, *after)) > 5 * HOUR
    assert middle(tables_of(*after, *before)) < HOUR


@given(run_times, st.floats(0.0, 1e8), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_ends_are_after_what_has_run_and_rise_with_the_level(
    runs: list[float], ran: float, one: float, other: float
) -> None:
    hazard = Hazards(tables_of(*runs), ()).of(ANN)
    early, late = sorted((one, other))
    assert ran <= hazard.end(ran, early) <= hazard.end(ran, late) < float("inf")


def test_a_copy_stays_as_it_was_and_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life_tables, "MOST_TABLES", 3)
    tables = LifeTables()
    tables.add(ANN, 60.0)
    copy = tables.copy()
    tables.add(ANN, 60.0)
    assert copy != tables.copy()
    tables.add(BOB, 60.0)
    assert set(tables.copy()) == {(), BOB[1], BOB[2]}
    assert MOST_TABLES > 3


def test_few_ends_are_not_used() -> None:
    assert not is_enough(NO_TABLES)
    assert not is_enough(tables_of(*[60.0] * (ENOUGH // 2)))
    assert is_enough(tables_of(*[60.0] * 2 * ENOUGH))


def test_only_jobs_without_limit_and_without_runs_of_their_name_take_them() -> None:
    outlook = Outlook(tables_of(*[600.0] * 40))
    taught = RunTimes()
    for number in range(4):
        taught.observe(features(f"resnet-{number}"), 50.0)
    of_a_series = predicted(taught, replace(waiting(9, gpus=1), name="resnet-9"))
    assert has_similar_runs(of_a_series)
    assert not has_similar_runs(predicted(taught, unnamed()))
    exact = Prediction(p50_seconds=60.0, p90_seconds=60.0, samples=32)
    for job in (
        of_a_series,
        unnamed(time_limit_seconds=HOUR),
        unnamed(predicted=exact),
        unnamed(elastic=Elastic(min_gpus=1, max_gpus=4)),
    ):
        assert outlook.length_of(job, RULES).hazard is None
    assert outlook.length_of(unnamed(), RULES).hazard is not None
    assert outlook.length_of(predicted(taught, unnamed()), RULES).hazard is not None
    assert Outlook().length_of(unnamed(), RULES).hazard is None


def features(name: str) -> Features:
    return Features(user="ann", name=name, kind=JobKind.TRAINING, gpu_milli=1000)


@given(run_times, st.floats(0.0, 1e7), st.integers(1, 10_000), st.floats(-2.0, 2.0))
def test_samples_are_positive_and_always_the_same(runs: list[float], ran: float, serial: int, late: float) -> None:
    length = Outlook(tables_of(*runs), (), 0.0).length_of(unnamed(serial), RULES)
    sample = RolloutSample(number=1, late=late)
    left = seconds_left(length, ran, serial, sample)
    assert 0.0 < left < float("inf")
    assert left == seconds_left(length, ran, serial, sample)
    assert seconds_left(length, 0.0, serial, sample) == seconds_from_start(length, serial, sample)


def test_saved_work_counts_as_run() -> None:
    tables = tables_of(*[60.0] * 40, *[10 * HOUR] * 10)
    fresh, saved = (Outlook(tables).length_of(unnamed(saved_seconds=seconds), RULES) for seconds in (0.0, HOUR))
    sample = RolloutSample()
    assert sorted(seconds_from_start(fresh, n, sample) for n in range(99))[49] < HOUR
    assert sorted(seconds_from_start(saved, n, sample) for n in range(99))[49] > HOUR


def test_a_job_that_fails_or_is_stopped_is_an_end_but_no_run_to_predict_by() -> None:
    job = running(1, {"a": (0,)})
    failed = advance(job, Ended(at=100.0, reason=EndReason.EXIT_CODE, exit_code=1)).job
    stopping = advance(job, StopRequested(at=50.0, reason=EndReason.STOPPED_BY_USER)).job
    stopped = advance(stopping, Ended(at=100.0, reason=EndReason.STOPPED_BY_USER, exit_code=143)).job
    preempting = advance(job, StopRequested(at=50.0, reason=EndReason.PREEMPTED, for_job="j-9")).job
    preempted = advance(preempting, Ended(at=100.0, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert [failed.state, stopped.state, preempted.state] == [JobState.FAILED, JobState.STOPPED, JobState.QUEUED]
    for before, after, ends in ((job, failed, 1), (stopping, stopped, 1), (preempting, preempted, 0)):
        taught = RunTimes()
        learn(taught, before, after)
        assert len(taught) == 0
        assert sum(sum(table.ends) for table in taught.life_tables.copy().values()) == ends * len(life_table_keys(job))
