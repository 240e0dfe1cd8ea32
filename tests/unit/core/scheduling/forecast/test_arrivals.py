"""Future arrivals, which are expected to be like those of the last day."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import Job, JobState, Prediction, Queue
from corral.core.scheduling.forecast.arrivals import DAY, HORIZON_SECONDS, MOST, NO_RECENT_JOBS, Recent, came_at, coming
from corral.core.scheduling.forecast.estimates import Effort, forecast
from corral.core.scheduling.forecast.remaining_time import RolloutSample
from tests.unit.core.builders import node, running, snapshot_of, waiting

NOW = 10 * DAY
MIDDLE = RolloutSample()
HOUR = 3600.0


def known(seconds: float) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=32)


def lately(count: int, every: float, **values: float) -> Recent:
    """So many jobs, the last one just before now."""
    jobs = tuple(
        waiting(number, "bob", gpus=1, at=NOW - every * (count - number) - 1.0, predicted=known(HOUR / 2), **values)
        for number in range(1, count + 1)
    )
    return Recent(jobs=jobs, since=NOW - DAY)


def test_the_last_day_comes_again() -> None:
    recent = lately(4, every=HOUR)
    jobs = list(coming(recent, NOW, MIDDLE))
    assert [job.queued_at for job in jobs[:4]] == [came_at(job) + DAY for job in recent.jobs]
    assert len(jobs) == 4 * 7
    assert {job.state for job in jobs} == {JobState.QUEUED}
    assert len({job.id for job in jobs}) == len(jobs)
    assert all(NOW < (job.queued_at or 0) <= NOW + HORIZON_SECONDS for job in jobs)
    assert jobs == list(coming(recent, NOW, MIDDLE))


def test_late_rollouts_have_more_of_them() -> None:
    counts = [
        len(list(coming(lately(50, 60.0), NOW, RolloutSample(number=n, late=late))))
        for n, late in enumerate((-1.3, 1.3))
    ]
    assert counts[0] < 50 * 7 < counts[1]
    assert len(list(coming(lately(3000, 10.0), NOW, MIDDLE))) == MOST


def test_from_too_little_nothing_is_concluded() -> None:
    recent = replace(lately(4, every=60.0), since=NOW - 600.0)
    assert list(coming(recent, NOW, MIDDLE)) == list(coming(NO_RECENT_JOBS, NOW, MIDDLE)) == []


def test_an_interruption_makes_no_job_new() -> None:
    job = replace(waiting(1, at=NOW - 60.0), aged_from=NOW - 5 * HOUR)
    assert came_at(job) == NOW - 5 * HOUR


def _long_one(policy: str, recent: Recent, effort: Effort) -> float:
    job: Job = waiting(500, "ann", gpus=1, at=NOW - 10.0, predicted=known(3 * HOUR))
    cluster = snapshot_of(
        node("a", 1),
        Queue(name="default", policy=policy),
        running(499, {"a": (0,)}, predicted=known(HOUR), started_at=NOW - 60.0, allocated_at=NOW - 60.0),
        *(waiting(400 + n, "ann", gpus=1, at=NOW - 100.0 + n, predicted=known(4 * HOUR)) for n in range(6)),
        job,
    )
    return forecast(cluster, NOW, recent=recent, effort=effort).estimates[job.id].p50 - NOW


def test_later_jobs_that_go_first_count() -> None:
    """Every hour a job of half an hour comes: behind everybody by age, in front of the long ones by cost."""
    often = lately(24, every=HOUR)
    for effort in (Effort(), Effort(sizes=((float("inf"), 3, 0),))):
        assert abs(_long_one("fcfs", often, effort) - _long_one("fcfs", NO_RECENT_JOBS, effort)) < 60.0
        # The shortest of those that wait: it goes next, but for the half hours in between.
        assert _long_one("shortest", often, effort) >= _long_one("shortest", NO_RECENT_JOBS, effort)
    cluster = snapshot_of(
        node("a", 1),
        Queue(name="default", policy="shortest"),
        running(499, {"a": (0,)}, predicted=known(6 * HOUR), started_at=NOW - 60.0, allocated_at=NOW - 60.0),
        waiting(500, "ann", gpus=1, at=NOW - 10.0, predicted=known(20 * HOUR)),
    )
    alone = forecast(cluster, NOW).estimates["j-500"]
    crowded = forecast(cluster, NOW, recent=often).estimates["j-500"]
    assert crowded.p50 > alone.p50
    assert crowded.p90 >= crowded.p50
