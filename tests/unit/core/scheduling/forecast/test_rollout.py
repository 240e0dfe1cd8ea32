"""A rollout: the scheduler in virtual time, with run times that are drawn, until every waiting job has started."""

from __future__ import annotations

from typing import Any

import pytest

from corral.core.model import Job, JobState, Prediction, Queue
from corral.core.scheduling.forecast.remaining_time import RolloutSample, length_of
from corral.core.scheduling.forecast.rollout import HORIZON_SECONDS, Rollout
from corral.core.snapshot.changes import PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from tests.unit.core.builders import node, running, snapshot_of, waiting

#: A prediction without spread: a job of this length runs exactly so long.
SURE = 1000


def lasts(seconds: float) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=SURE)


def rollout_of(snapshot: ClusterSnapshot, now: float = 0.0, **values: Any) -> Rollout:
    lengths = {job.id: length_of(job, snapshot.ordering) for job in snapshot.jobs.values()}
    return Rollout(snapshot=snapshot, now=now, sample=RolloutSample(), lengths=lengths, **values)


def one_gpu(*jobs: Job) -> ClusterSnapshot:
    return snapshot_of(node("n1", 1), *jobs)


def test_jobs_start_one_after_the_other_on_one_gpu() -> None:
    jobs = [waiting(serial, gpus=1, at=0.0, predicted=lasts(100.0 * serial)) for serial in (1, 2, 3)]
    rollout = rollout_of(one_gpu(*jobs))
    assert rollout.wanted == {"j-1", "j-2", "j-3"}
    assert rollout.run()
    assert rollout.starts == pytest.approx({"j-1": 0.0, "j-2": 100.0, "j-3": 300.0})
    assert not rollout.wanted


def test_a_running_job_ends_after_its_remaining_time() -> None:
    held = running(1, {"n1": (0,)}, predicted=lasts(100.0))
    rollout = rollout_of(one_gpu(held, waiting(2, gpus=1, predicted=lasts(10.0))), now=40.0)
    assert rollout.run()
    assert rollout.starts == pytest.approx({"j-2": 100.0})


def test_a_time_limit_ends_a_job_earlier() -> None:
    limited = waiting(1, gpus=1, at=0.0, predicted=lasts(500.0), time_limit_seconds=60.0)
    rollout = rollout_of(one_gpu(limited, waiting(2, gpus=1, at=1.0, predicted=lasts(5.0))))
    assert rollout.run()
    assert rollout.starts["j-2"] == pytest.approx(60.0)


def test_a_dependent_job_starts_when_its_dependency_has_completed() -> None:
    first = waiting(1, gpus=1, at=0.0, predicted=lasts(70.0))
    dependent = waiting(2, at=0.0, after=("j-1",), predicted=lasts(5.0))
    rollout = rollout_of(snapshot_of(node("n1", 1), first, dependent))
    assert rollout.run()
    assert rollout.starts == pytest.approx({"j-1": 0.0, "j-2": 70.0})


def test_jobs_that_arrive_later_take_part() -> None:
    things = (
        node("n1", 1),
        Queue(name="default", policy="priority"),
        running(1, {"n1": (0,)}, predicted=lasts(50.0)),
        waiting(2, gpus=1, at=0.0, priority=50, predicted=lasts(10.0)),
    )
    alone = rollout_of(snapshot_of(*things))
    assert alone.run()
    assert alone.starts == pytest.approx({"j-2": 50.0})
    urgent = waiting(9, gpus=1, at=20.0, priority=0, predicted=lasts(30.0))
    busy = rollout_of(snapshot_of(*things), arrivals=iter([urgent]))
    assert busy.run()
    assert busy.starts == pytest.approx({"j-9": 50.0, "j-2": 80.0})


def test_a_job_that_can_never_start_ends_the_rollout() -> None:
    rollout = rollout_of(one_gpu(waiting(1, gpus=4, predicted=lasts(10.0))))
    assert rollout.run()
    assert rollout.starts == {}
    assert rollout.wanted == {"j-1"}
    assert rollout.now < HORIZON_SECONDS


def test_a_rollout_is_interrupted_and_continued() -> None:
    jobs = [waiting(serial, gpus=1, at=0.0, predicted=lasts(10.0)) for serial in range(1, 7)]
    rollout = rollout_of(one_gpu(*jobs))
    assert not rollout.run(most_starts=3)
    begun = dict(rollout.starts)
    assert 0 < len(begun) < len(jobs)
    assert rollout.run()
    assert {job: rollout.starts[job] for job in begun} == begun
    assert sorted(rollout.starts.values()) == pytest.approx([0.0, 10.0, 20.0, 30.0, 40.0, 50.0])


def test_the_pause_between_cycles_can_end_the_rollout() -> None:
    class Enough(Exception):
        pass

    def stop() -> None:
        raise Enough

    jobs = [waiting(serial, gpus=1, at=0.0, predicted=lasts(10.0)) for serial in (1, 2)]
    with pytest.raises(Enough):
        rollout_of(one_gpu(*jobs), pause=stop).run()


def test_a_preempted_job_continues_with_its_remaining_time() -> None:
    rules = PutRules(
        limits=Limits(), score_time_constant=3600.0, preemption=PreemptionRules(enabled=True, min_run_seconds=0.0)
    )
    snapshot = snapshot_of(
        node("n1", 1),
        Queue(name="default", policy="priority", preempts=True),
        rules,
        running(1, {"n1": (0,)}, priority=90, preemptible=True, predicted=lasts(100.0)),
        waiting(2, gpus=1, priority=0, at=40.0, predicted=lasts(30.0)),
    )
    rollout = rollout_of(snapshot, now=40.0)
    assert rollout.run()
    assert rollout.starts["j-2"] == pytest.approx(40.0)
    assert rollout.wanted == set()
    # The victim waits again; its end was expected at 100, so 60 seconds are left.
    victim = rollout.snapshot.jobs["j-1"]
    assert victim.state is JobState.QUEUED
    rollout.wanted.add("j-1")
    assert rollout.run()
    assert rollout.starts["j-1"] == pytest.approx(70.0)
    ends = [at for at, _, job_id, attempt in rollout.ends if (job_id, attempt) == ("j-1", 2)]
    assert ends == pytest.approx([130.0])


def test_scores_follow_the_starts() -> None:
    snapshot = one_gpu(waiting(1, user="ann", gpus=1, predicted=lasts(10.0)))
    rollout = rollout_of(snapshot)
    rollout.run()
    assert snapshot.scores["ann", "A10"].usage == pytest.approx(1.0)
