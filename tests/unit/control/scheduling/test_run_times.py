"""Run times in the live system: learned from every completed job, predicted for every queued job, and present
again after a restart."""

from __future__ import annotations

from dataclasses import replace

from corral.control.jobs import jobs
from corral.control.jobs.checkpoints import Saved, note_saved
from corral.control.ports import AttemptPhase, Store
from corral.control.scheduling import views
from corral.control.system.policies import Policies
from corral.core.jobs.lifecycle import Ended, StopRequested
from corral.core.model import EndReason, Job, Queue
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.changes import PutQueue
from tests.unit.control.world import ANN, BOB, Desk, draft


def ran(desk: Desk, name: str, seconds: float, gpus: int = 2) -> Job:
    (job,) = desk.started(draft(name, gpus=gpus))
    desk.now += seconds
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    return desk.job(job.id)


def stored_prediction(desk: Desk, job: Job) -> tuple[float, float, int, str] | None:
    """The stored prediction, which is the one in the snapshot."""
    stored = desk.job(job.id).predicted
    assert desk.state.snapshot.jobs[job.id].predicted == stored
    return None if stored is None else (stored.p50_seconds, stored.p90_seconds, stored.samples, stored.like)


def test_a_new_job_gets_the_run_time_of_similar_jobs(desk: Desk) -> None:
    (first,) = desk.submit(draft("sweep-1", gpus=2))
    assert stored_prediction(desk, first) is None
    desk.do(jobs.stop, ANN, first.id)
    for number, seconds in enumerate((100.0, 120.0, 110.0), start=2):
        ran(desk, f"sweep-{number}", seconds)
    (next_one,) = desk.submit(draft("sweep-9", gpus=2))
    assert stored_prediction(desk, next_one) == (110.0, 120.0, 3, "ann's sweep-# on 2 GPUs")
    (bobs,) = desk.submit(draft("sweep-9", gpus=2), caller=BOB)
    assert stored_prediction(desk, bobs) == (110.0, 120.0, 3, "all training jobs on 2 GPUs")


def test_a_restart_forgets_nothing_of_it_not_even_of_deleted_jobs(desk: Desk) -> None:
    over = [ran(desk, f"sweep-{number}", 60.0) for number in range(3)]
    desk.do(jobs.delete, ANN, over[0].id)
    desk.state = desk.loaded()
    (job,) = desk.submit(draft("sweep-9", gpus=2))
    assert stored_prediction(desk, job) == (60.0, 60.0, 3, "ann's sweep-# on 2 GPUs")
    desk.state = desk.loaded()
    assert stored_prediction(desk, job) == (60.0, 60.0, 3, "ann's sweep-# on 2 GPUs")


def test_failed_and_stopped_runs_teach_nothing(desk: Desk) -> None:
    (failed, stopped) = desk.started(draft("sweep-1"), draft("sweep-2"))
    desk.now += 5
    desk.hear(desk.job(failed.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    desk.do(jobs.stop, ANN, stopped.id)
    desk.hear(desk.job(stopped.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    for _ in range(2):
        assert len(desk.state.run_times) == 0
        desk.state = desk.loaded()


def test_a_preempted_job_has_the_rest_before_it(desk: Desk) -> None:
    for number in range(3):
        ran(desk, f"sweep-{number}", 100.0)
    (job,) = desk.started(draft("sweep-9", gpus=2))
    desk.now += 60
    up = desk.job(job.id)
    saved = desk.do(lambda work: work.jobs.edit(up, replace(up, checkpointed_at=work.now)))
    desk.now += 10
    stopping = desk.do(lambda work: work.jobs.advance(saved, StopRequested(at=work.now, reason=EndReason.PREEMPTED)))
    queued = desk.do(lambda work: work.jobs.advance(stopping, Ended(at=work.now, reason=EndReason.EXIT_CODE)))
    assert stored_prediction(desk, queued) == (40.0, 40.0, 3, "ann's sweep-# on 2 GPUs")
    # It took 60 seconds and 40: that is what its like take, and not 40.
    desk.cycle()
    desk.hear(desk.job(job.id), AttemptPhase.RUNNING)
    desk.now += 40
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    (next_one,) = desk.submit(draft("sweep-10", gpus=2))
    assert stored_prediction(desk, next_one) == (100.0, 100.0, 4, "ann's sweep-# on 2 GPUs")


def test_a_checkpoint_that_is_found_after_the_end_of_its_attempt_counts(desk: Desk) -> None:
    """Programs save when they are warned, and end: their directories are read afterwards."""
    for number in range(3):
        ran(desk, f"sweep-{number}", 100.0)
    (job,) = desk.started(draft("sweep-9", gpus=2))
    desk.now += 60
    preempted = StopRequested(at=desk.now, reason=EndReason.PREEMPTED)
    stopping = desk.do(lambda work: work.jobs.advance(desk.job(job.id), preempted))
    queued = desk.do(lambda work: work.jobs.advance(stopping, Ended(at=work.now, reason=EndReason.EXIT_CODE)))
    assert queued.saved_seconds == 0.0
    for _ in range(2):
        desk.do(note_saved, [Saved(job_id=job.id, at=desk.now)])
        assert desk.job(job.id).saved_seconds == 60.0
    assert stored_prediction(desk, queued) == (40.0, 40.0, 3, "ann's sweep-# on 2 GPUs")
    desk.cycle()
    desk.hear(desk.job(job.id), AttemptPhase.RUNNING)
    desk.now += 40
    desk.do(note_saved, [Saved(job_id=job.id, at=desk.now - 10)])
    assert desk.job(job.id).saved_seconds == 60.0, "the present attempt has not ended"
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    (next_one,) = desk.submit(draft("sweep-10", gpus=2))
    assert stored_prediction(desk, next_one) == (100.0, 100.0, 4, "ann's sweep-# on 2 GPUs")


def test_a_job_that_comes_after_others_is_predicted_when_its_line_gets_it(desk: Desk) -> None:
    (first,) = desk.started(draft("sweep-1", gpus=2))
    (second,) = desk.submit(draft("sweep-2", gpus=2, after=(first.id,)))
    assert stored_prediction(desk, second) is None
    desk.now += 30
    desk.hear(desk.job(first.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert stored_prediction(desk, second) == (30.0, 30.0, 1, "ann's sweep-# of any size")


def test_a_queue_by_shortest_says_so_for_every_place(desk: Desk) -> None:
    desk.do(lambda work: work.change(PutQueue(queue=Queue(name="default", policy="shortest"))))
    for name, seconds in (("long-1", 9000.0), ("short-1", 60.0)):
        ran(desk, name, seconds, gpus=4)
    desk.started(draft("fills-a", gpus=4), draft("fills-b", gpus=4))
    long, short = desk.submit(draft("long-2", gpus=4), draft("short-2", gpus=4))
    (line,) = views.queue_order(desk.state, desk.now, "default")
    assert [(place.job.id, place.detail) for place in line.places] == [
        (
            short.id,
            "predicted 1m of 4 GPUs from 1 run like it; nothing queued over 6h40m after it goes before it",
        ),
        (
            long.id,
            "predicted 2h30m of 4 GPUs from 1 run like it; nothing queued over 41d16h after it goes before it",
        ),
    ]
    desk.cycle()
    assert views.why(desk.state, desk.now, desk.job(long.id)).place == line.places[1].detail


def test_the_rules_of_the_installation_are_in_the_snapshot(store: Store) -> None:
    rules = OrderingRules(ageing=0.5, unknown_seconds=60.0)
    assert Desk(store, Policies(ordering_rules=rules)).state.snapshot.ordering == rules
