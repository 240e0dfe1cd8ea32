"""Programs that save, noticed without reading more than what changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.checkpoint.environment import Surroundings
from corral.checkpoint.keeper import Keeper
from corral.control.jobs.jobs import submit
from corral.control.live.controller import Controller
from corral.control.ports import AttemptPhase, Store
from corral.control.scheduling.preemptions import preempt, undecided
from corral.control.system.policies import Policies
from corral.core.model import EndReason, Job, JobState
from corral.core.scheduling.plan.plan import Preemption, PreemptionRule
from corral.server.jobs.checkpoint_watch import LOOK_SECONDS, CheckpointWatch
from corral.stores.jobs.checkpoints import DirectoryCheckpoints
from corral.stores.jobs.job_directories import DirectoryWorkspace
from tests.unit.control.world import ANN, BOB, RecordingEngine, StillClock, draft, eventually, status


class CountingCheckpoints(DirectoryCheckpoints):
    def __init__(self, workspace: DirectoryWorkspace) -> None:
        super().__init__(workspace)
        self.reads: list[str] = []
        self.on_read: Callable[[str], None] = lambda job_id: None

    def last_saved_at(self, job_id: str) -> float | None:
        self.reads.append(job_id)
        self.on_read(job_id)
        return super().last_saved_at(job_id)


class Watched:
    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        # As long after now as it takes for what happens in the test to be settled.
        self.clock = StillClock(time.time() + 3600.0)
        self.engine = RecordingEngine()
        self.workspace = DirectoryWorkspace(root)
        self.checkpoints = CountingCheckpoints(self.workspace)
        self.controller = Controller(
            store=store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=self.workspace,
            observe_seconds=3600.0,
            tidy_seconds=3600.0,
        )
        self.controller.start()
        self.watch = self.new_watch()

    def new_watch(self) -> CheckpointWatch:
        return CheckpointWatch(controller=self.controller, checkpoints=self.checkpoints, clock=self.clock)

    def running(self, name: str, **values: Any) -> str:
        (record,) = self.controller.execute(submit, ANN, [draft(name, **values)]).result(10)
        job_id: str = record.job.id
        eventually(lambda: f"{job_id}.1" in [order.attempt_id for order in self.engine.launched])
        self.engine.report(status(f"{job_id}.1", AttemptPhase.RUNNING, self.clock.time))
        eventually(lambda: self.job(job_id).state is JobState.RUNNING)
        return job_id

    def save(self, job_id: str, step: int, at: float) -> float:
        """Saves like a program, at a time of the test's choosing."""
        directory = self.workspace.checkpoint_dir(job_id)
        path = directory / f"own-{step}"
        path.write_text("weights")
        os.utime(path, (at, at))
        os.utime(directory, (at, at))
        return at

    def look(self) -> list[str]:
        """One round; which directories were read."""
        before = len(self.checkpoints.reads)
        self.watch.look()
        self.controller.execute(lambda work: None).result(10)
        return self.checkpoints.reads[before:]

    def job(self, job_id: str) -> Job:
        with self.store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None
        return record.job


@pytest.fixture
def watched(store: Store, tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(store, tmp_path)
    yield watched
    watched.controller.stop()


def test_a_directory_is_read_only_when_it_has_changed(watched: Watched) -> None:
    one, two = watched.running("one-one"), watched.running("two-two")
    assert sorted(watched.look()) == [one, two]
    assert watched.look() == []
    at = watched.save(one, 1, 5000.0)
    assert watched.look() == [one]
    assert watched.look() == []
    assert (watched.job(one).checkpointed_at, watched.job(two).checkpointed_at) == (at, None)


def test_recently_changed_checkpoints_are_read_again(watched: Watched) -> None:
    """Two changes within one tick of the file system's clock look like one."""
    job_id = watched.running("training")
    watched.save(job_id, 1, 5000.0)
    a_moment_ago = watched.clock.time - 1.0
    os.utime(watched.workspace.checkpoint_dir(job_id), (a_moment_ago, a_moment_ago))
    assert [watched.look(), watched.look()] == [[job_id], [job_id]]
    watched.clock.time += 10.0
    assert [watched.look(), watched.look()] == [[job_id], []]


def test_a_program_that_saves_all_the_time_is_noted_now_and_then(watched: Watched) -> None:
    job_id = watched.running("training")
    for second in range(60):
        watched.save(job_id, second, 5000.0 + second)
        watched.look()
    with watched.store.read() as tx:
        events = [event for event in tx.events.after(0, 500) if event.action == "job.checkpointed"]
    assert [event.detail["at"] for event in events] == [5000.0, 5015.0, 5030.0, 5045.0]
    watched.engine.report(
        status(f"{job_id}.1", AttemptPhase.ENDED, watched.clock.time, reason=EndReason.EXIT_CODE, exit_code=0)
    )
    eventually(lambda: watched.job(job_id).state is JobState.COMPLETED)
    assert watched.look() == [job_id], "one last look, for what was saved at the end"
    assert watched.job(job_id).checkpointed_at == 5059.0
    assert watched.look() == []


def test_checkpoints_saved_without_a_server_are_found(watched: Watched) -> None:
    job_id = watched.running("training", max_retries=3)
    watched.look()
    at = watched.save(job_id, 1, 5000.0)
    watched.engine.report(
        status(f"{job_id}.1", AttemptPhase.ENDED, watched.clock.time, reason=EndReason.NODE_LOST, message="gone")
    )
    eventually(lambda: watched.job(job_id).state is JobState.QUEUED)
    watched.watch = watched.new_watch()
    watched.look()
    assert watched.job(job_id).checkpointed_at == at


def test_checkpoints_of_the_helper_are_noted_with_their_own_time(watched: Watched) -> None:
    job_id = watched.running("training")
    Keeper(Surroundings(directory=watched.workspace.checkpoint_dir(job_id))).save({"step": 7}, step=7)
    watched.look()
    (saved,) = watched.checkpoints.list(job_id)
    assert watched.job(job_id).checkpointed_at == saved.at
    os.truncate(Path(saved.path) / "state", 3)
    os.utime(Path(saved.path).parent, (6000.0, 6000.0))
    watched.look()
    assert watched.job(job_id).checkpointed_at is None, "what was lost is not counted as saved"


def test_a_directory_that_cannot_be_read_harms_no_other(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = watched.running("broken"), watched.running("sound")
    watched.look()
    at = watched.save(sound, 1, 5000.0)
    mark = watched.checkpoints.mark
    watched.checkpoints.mark = lambda job_id: _fail() if job_id == broken else mark(job_id)  # type: ignore[method-assign]
    watched.look()
    watched.look()
    assert watched.job(sound).checkpointed_at == at
    assert [record.message for record in caplog.records if "cannot be read" in record.message] == [
        f"the checkpoints of {broken} cannot be read: [Errno 116] Stale file handle"
    ]


def _fail() -> int | None:
    raise OSError(116, "Stale file handle")


def loss_of(watched: Watched, job_id: str) -> tuple[bool | None, float]:
    with watched.store.read() as tx:
        (receipt,) = tx.receipts.of_job(job_id, 10)
    return receipt.saved, receipt.lost_gpu_seconds


def preempted(watched: Watched, job_id: str, other: str) -> None:
    preemption = Preemption(
        job_id=job_id, for_job=other, rule=PreemptionRule.ORDER, lost_gpu_seconds=100.0, detail="it is before"
    )
    watched.controller.execute(preempt, [preemption]).result(10)


def over(watched: Watched, job_id: str) -> None:
    watched.engine.report(
        status(f"{job_id}.1", AttemptPhase.ENDED, watched.clock.time, reason=EndReason.EXIT_CODE, exit_code=0)
    )
    eventually(lambda: watched.job(job_id).attempt != 1 or watched.job(job_id).state is JobState.QUEUED)


def test_whether_preempted_jobs_have_saved_is_always_found_out(watched: Watched) -> None:
    """Also when it had saved moments before, and the last one would not be noted for a while."""
    now = watched.clock.time = time.time() - 60.0
    job_id, other = watched.running("training"), watched.running("urgent")
    watched.save(job_id, 1, now - 5.0)
    watched.look()
    preempted(watched, job_id, other)
    watched.look()
    assert loss_of(watched, job_id) == (None, 100.0), "it has not ended yet"
    watched.save(job_id, 2, now + 1.0)  # too soon after the last one to be noted as a save
    watched.clock.time = now + 2.0
    over(watched, job_id)
    watched.look()
    assert loss_of(watched, job_id) == (True, 1.0)
    assert watched.controller.inspect(undecided).result(10) == []


def test_the_next_server_records_that_a_preempted_job_did_not_save(watched: Watched) -> None:
    job_id, other = watched.running("training"), watched.running("urgent")
    preempted(watched, job_id, other)
    watched.clock.time += 3.0
    over(watched, job_id)
    watched.watch = watched.new_watch()  # the one before died without a look
    watched.look()
    assert loss_of(watched, job_id) == (False, 3.0)


def test_only_what_was_saved_before_the_end_counts(watched: Watched) -> None:
    """In the helper's own format each checkpoint has its time: the next attempt's checkpoint does not count for this
    one.
    """
    job_id, other = watched.running("training"), watched.running("urgent")
    preempted(watched, job_id, other)
    watched.clock.time -= 7200.0  # its end is long before what the keeper is about to save
    over(watched, job_id)
    directory = watched.workspace.checkpoint_dir(job_id)
    Keeper(Surroundings(directory=directory)).save({"weights": 1}, step=5)
    assert watched.checkpoints.list(job_id)
    watched.look()
    assert loss_of(watched, job_id)[0] is False


def test_slow_directories_of_one_user_do_not_delay_those_of_others(watched: Watched) -> None:
    slow = [watched.running(f"slow-{number}") for number in range(3)]
    (record,) = watched.controller.execute(submit, BOB, [draft("quick")]).result(10)
    quick = record.job.id
    eventually(lambda: f"{quick}.1" in [order.attempt_id for order in watched.engine.launched])
    watched.engine.report(status(f"{quick}.1", AttemptPhase.RUNNING, watched.clock.time))
    eventually(lambda: watched.job(quick).state is JobState.RUNNING)

    def wait(job_id: str) -> None:
        watched.clock.time += 5.0 if job_id in slow else 0.0

    watched.checkpoints.on_read = wait
    assert watched.look() == [slow[0], quick], "one of the slow ones, and no more for a while"
    for job_id in slow:
        watched.engine.report(
            status(f"{job_id}.1", AttemptPhase.ENDED, watched.clock.time, reason=EndReason.EXIT_CODE, exit_code=0)
        )
    eventually(lambda: all(watched.job(job_id).state.is_ended for job_id in slow))
    assert watched.look() == []
    saved = watched.save(slow[2], 1, 5000.0)
    for job_id in slow:
        watched.clock.time += 200.0
        assert watched.look() == [job_id], "the last looks are made later, also at jobs that were never looked at"
    assert watched.job(slow[2]).checkpointed_at == saved


def test_a_look_at_many_jobs_that_takes_long_is_followed_by_a_longer_pause(watched: Watched) -> None:
    watched.running("slow-one")
    assert watched.watch.look() == LOOK_SECONDS

    def slow(_: str) -> None:
        watched.clock.time += 0.5

    watched.checkpoints.on_read = slow
    watched.watch = watched.new_watch()  # reads every directory
    assert watched.watch.look() == pytest.approx(10.0)
