"""The jobs of a window out of attempts and jobs: who is measured, who comes along, and how long each ran."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.records import UsageRecord
from corral.control.whatif import past_jobs
from corral.control.whatif.past_jobs import Past, TooManyJobs, Window
from corral.core.model import Elastic, Job, JobKind, JobState, Prediction, Request
from corral.core.monitoring.attempt_usage import Measured
from corral.core.whatif.past_jobs import PastJob

WINDOW = Window(since=1000.0, until=2000.0, now=3000.0, queues={"default"})


def attempt(job: int, number: int = 1, **given: Any) -> UsageRecord:
    fields: dict[str, Any] = {
        "attempt_id": f"j-{job}.{number}", "job_id": f"j-{job}", "job_name": f"job-{job}", "user": "ann",
        "group": "vision", "kind": JobKind.TRAINING, "queue": "default", "pool": "default", "model": "A100",
        "nodes": 1, "gpu_milli": 2000, "queued_at": 1100.0, "planned_at": 1150.0, "started_at": 1150.0,
        "ended_at": 1250.0, "outcome": JobState.COMPLETED, **given,
    }  # fmt: skip
    return UsageRecord(**fields)


def gathered(
    *attempts: UsageRecord, known: tuple[Job, ...] = (), waiting: tuple[Job, ...] = ()
) -> tuple[list[PastJob], dict[str, int]]:
    found = Past(window=WINDOW)
    found.add(attempts)
    return found.jobs({job.id: job for job in known}, waiting), dict(found.left_out)


def test_a_job_of_the_window_is_measured_and_its_real_wait_known() -> None:
    (one,), left_out = gathered(attempt(7, measured=Measured(gpu_seconds=200.0, busy_gpu_seconds=50.0)))
    assert one.job.id == "j-1"
    assert (one.job.name, one.job.user, one.group) == ("job-7", "ann", "vision")
    assert one.job.request == Request(gpus=2, models=("A100",))
    assert one.job.created_at == 1100.0
    assert (one.run_seconds, one.waited_seconds, one.busy) == (100.0, 50.0, 0.25)
    assert one.is_measured
    assert not one.is_estimated
    assert left_out == {}


def test_request_is_read_from_the_job_if_the_job_exists() -> None:
    asked = Job(
        id="j-7", name="job-7", user="ann", state=JobState.COMPLETED, request=Request(gpus=2, cpu_milli=4000),
        priority=2, time_limit_seconds=500.0, allocation=None, attempt=1, preemptible=False,
    )  # fmt: skip
    (one,), _ = gathered(attempt(7), known=(asked,))
    assert one.job.request == asked.request
    assert (one.job.priority, one.job.time_limit_seconds, one.job.preemptible) == (2, 500.0, False)
    assert (one.job.state, one.job.attempt) == (JobState.CREATED, 0)


def test_jobs_from_before_the_window_are_included_unmeasured() -> None:
    ran = attempt(1, queued_at=700.0, planned_at=800.0, started_at=800.0, ended_at=1200.0)
    waited = attempt(2, queued_at=900.0, planned_at=1300.0, started_at=1300.0, ended_at=1400.0)
    jobs, _ = gathered(ran, waited)
    assert [(one.job.name, one.job.created_at, one.is_measured) for one in jobs] == [
        ("job-1", 800.0, False),
        ("job-2", 1000.0, False),
    ]
    assert [one.waited_seconds for one in jobs] == [None, None]


def test_retries_are_one_job_and_a_new_start_is_another() -> None:
    jobs, _ = gathered(
        attempt(1, 1, ended_at=1200.0, outcome=JobState.QUEUED),
        attempt(1, 2, queued_at=1200.0, planned_at=1210.0, started_at=1210.0, ended_at=1240.0),
        attempt(1, 3, queued_at=1500.0, planned_at=1510.0, started_at=1510.0, ended_at=1515.0),
    )
    assert [(one.job.created_at, one.run_seconds) for one in jobs] == [(1100.0, 80.0), (1500.0, 5.0)]


def test_an_elastic_job_ran_as_if_it_had_had_the_least() -> None:
    job = Job(
        id="j-1", name="grows", user="ann", state=JobState.COMPLETED, request=Request(gpus=4),
        elastic=Elastic(min_gpus=2, max_gpus=4),
    )  # fmt: skip
    (one,), _ = gathered(
        attempt(1, 1, gpu_milli=2000, ended_at=1200.0, outcome=JobState.STARTING),
        attempt(1, 2, gpu_milli=4000, planned_at=1200.0, started_at=1200.0, ended_at=1250.0),
        known=(job,),
    )
    assert one.job.request.gpus == 2
    assert one.run_seconds == 50 + 50 * 2


def test_the_run_time_of_what_has_not_ended_is_predicted() -> None:
    predicted = Prediction(p50_seconds=5000.0, p90_seconds=9000.0, samples=3)
    running = Job(id="j-1", name="run", user="ann", state=JobState.RUNNING, predicted=predicted)
    waits = Job(id="j-3", name="wait", user="bob", state=JobState.QUEUED, queued_at=1900.0, time_limit_seconds=60.0)
    unknown = Job(id="j-4", name="who", user="bob", state=JobState.QUEUED, queued_at=1900.0)
    later = Job(id="j-5", name="late", user="bob", state=JobState.QUEUED, queued_at=2500.0)
    jobs, left_out = gathered(
        attempt(1, ended_at=None, outcome=None),
        attempt(2, ended_at=None, outcome=None),
        known=(running,),
        waiting=(waits, unknown, later),
    )
    assert [(one.job.name, one.run_seconds) for one in jobs] == [("run", 5000.0), ("job-2", 3700.0), ("wait", 60.0)]
    assert all(one.is_estimated for one in jobs)
    assert left_out == {past_jobs.UNKNOWN_RUN_TIME: 1}


def test_jobs_that_cannot_be_replayed_are_counted() -> None:
    jobs, left_out = gathered(attempt(1, queue="gone"), attempt(2, started_at=None, outcome=JobState.FAILED))
    assert jobs == []
    assert left_out == {past_jobs.NO_QUEUE: 1, past_jobs.NEVER_UP: 1}


def test_too_many_jobs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_jobs, "MOST_JOBS", 2)
    with pytest.raises(TooManyJobs, match="more than 2 jobs"):
        gathered(attempt(1), attempt(2), attempt(3))
