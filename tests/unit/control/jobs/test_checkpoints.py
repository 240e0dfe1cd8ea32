"""Checkpoints in a job's life: the variables of programs, when they saved, what the next attempt resumes from, and
that no work ends without a warning."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import NotFound, WrongState
from corral.control.jobs import jobs
from corral.control.jobs.checkpoints import Saved, ask_to_save, checkpoint_env, job_to_save, note_request, note_saved
from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import Caller, Work
from corral.control.monitoring import gpu_health, idle_jobs
from corral.control.monitoring.gpu_health import HealthChange
from corral.control.monitoring.idle_jobs import Sighting
from corral.control.ports import AttemptPhase, SavedWork, StepReport, Store
from corral.control.records import JobSpec
from corral.control.system.policies import CheckpointPolicy, Policies
from corral.core.jobs.lifecycle import ResizeRequested, Stop, StopRequested
from corral.core.model import Allocation, EndReason, GpuHealth, Grant, Job, JobState, NodeState
from corral.core.monitoring.health.judgement import put
from corral.core.monitoring.health.model import Evidence, Sign
from corral.core.monitoring.idleness import Activity, IdleRules
from tests.unit.control.world import (
    ANN,
    BOB,
    ROOT,
    SPEC,
    TWO_NODES,
    Desk,
    NoWorkspace,
    RecordingEngine,
    StillClock,
    draft,
    eventually,
    status,
)

RUNNING, ENDED = AttemptPhase.RUNNING, AttemptPhase.ENDED
LIBRARY = CheckpointPolicy(library="/home/helper")


# -------------------------------------------------------------------------------------------- variables at the launch


@pytest.mark.parametrize(
    ("policy", "spec", "variables"),
    [
        (CheckpointPolicy(), {}, {"INTERVAL_SECONDS": "600", "KEEP": "3"}),
        (CheckpointPolicy(interval_seconds=90.0, keep=5), {}, {"INTERVAL_SECONDS": "90", "KEEP": "5"}),
        (LIBRARY, {}, {"INTERVAL_SECONDS": "600", "KEEP": "3", "PYTHONPATH": "/home/helper"}),
        (
            LIBRARY,
            {"env": {"PYTHONPATH": "/mine:/ours"}},
            {"INTERVAL_SECONDS": "600", "KEEP": "3", "PYTHONPATH": "/home/helper:/mine:/ours"},
        ),
        (
            LIBRARY,
            {"env": {"PYTHONPATH": "/mine:/home/helper"}},
            {"INTERVAL_SECONDS": "600", "KEEP": "3", "PYTHONPATH": "/home/helper:/mine"},
        ),
        (CheckpointPolicy(), {"checkpoint_interval_seconds": 0.5}, {"INTERVAL_SECONDS": "0.5", "KEEP": "3"}),
        (
            CheckpointPolicy(),
            {"env": {"CORRAL_CHECKPOINT_KEEP": "9", "CORRAL_CHECKPOINT_INTERVAL_SECONDS": "7"}},
            {"INTERVAL_SECONDS": "7", "KEEP": "9"},
        ),
        (CheckpointPolicy(enabled=False, library="/home/helper"), {"checkpoint_interval_seconds": 5.0}, {}),
    ],
)
def test_the_checkpoint_variables_of_a_program(
    policy: CheckpointPolicy, spec: dict[str, object], variables: dict[str, str]
) -> None:
    names = {name if name == "PYTHONPATH" else f"CORRAL_CHECKPOINT_{name}": value for name, value in variables.items()}
    assert checkpoint_env(policy, JobSpec(**{"command": ("train",), **spec})) == names  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------- when they saved


def test_when_a_program_saved_is_kept_and_changes_no_plan(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.cycle()
    desk.do(note_saved, [Saved(job_id=job.id, at=990.0)])
    assert desk.job(job.id).checkpointed_at == 990.0
    assert not desk.state.needs_cycle
    desk.do(note_saved, [Saved(job_id=job.id, at=990.0)])
    assert desk.actions(job.id).count("job.checkpointed") == 1
    assert desk.events()[-1].detail == {"attempt": 1, "at": 990.0}
    assert desk.loaded().snapshot.jobs[job.id] == desk.state.snapshot.jobs[job.id]


def test_a_damaged_newest_one_takes_the_time_back_and_is_no_news(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    for at in (990.0, 980.0, None):
        desk.do(note_saved, [Saved(job_id=job.id, at=at)])
        assert desk.job(job.id).checkpointed_at == at
    assert desk.actions(job.id).count("job.checkpointed") == 1


def test_a_save_at_the_very_end_counts_too(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.hear(job, ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(note_saved, [Saved(job_id=job.id, at=999.0), Saved(job_id="j-77", at=999.0)])
    assert desk.job(job.id).checkpointed_at == 999.0
    assert desk.job(job.id).state is JobState.COMPLETED


def test_the_time_stays_over_attempts(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.do(note_saved, [Saved(job_id=job.id, at=990.0)])
    desk.hear(desk.job(job.id), ENDED, EndReason.NODE_LOST)
    assert desk.job(job.id).state is JobState.QUEUED
    assert desk.job(job.id).checkpointed_at == 990.0


def test_the_last_save_of_a_stopped_job_counts_when_it_is_started_again(desk: Desk) -> None:
    (stopped, completed) = desk.started(draft("training"), draft("evaluation"))
    desk.now += 60
    desk.do(jobs.stop, ANN, stopped.id)
    for job in (stopped, completed):
        desk.hear(desk.job(job.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
        desk.do(note_saved, [Saved(job_id=job.id, at=desk.now - 5)])
    assert [desk.job(job.id).saved_seconds for job in (stopped, completed)] == [55.0, 0.0]


# -------------------------------------------------------------------------------------------- asking


class Looking:
    """Implements `Lookup`."""

    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Shelf:
    """Implements `Checkpoints` without a disk."""

    def __init__(self, *saved: SavedWork) -> None:
        self.saved = list(saved)
        self.requests: list[str] = []
        self.looks: list[str] = []
        self.may_read = threading.Event()
        self.may_read.set()
        self.error: OSError | None = None

    def mark(self, job_id: str) -> int | None:
        return len(self.saved)

    def has_any(self, job_id: str) -> bool:
        return bool(self.saved)

    def list(self, job_id: str) -> Sequence[SavedWork]:
        return self.saved

    def last_saved_at(self, job_id: str) -> float | None:
        return next((work.at for work in self.saved if work.is_good), None)

    def progress(self, job_id: str) -> StepReport | None:
        return None

    def look_up(self, job_id: str, user: str, found: Callable[[SavedWork | None], None]) -> Looking:
        self.looks.append(job_id)
        looking = Looking()

        def look() -> None:
            assert self.may_read.wait(10)
            if not looking.is_cancelled:
                good = next((work for work in self.saved if work.is_good), None)
                found(good if self.error is None else None)

        threading.Thread(target=look, daemon=True).start()
        return looking

    def request(self, job_id: str) -> None:
        if self.error is not None:
            raise self.error
        self.requests.append(job_id)


def saved(step: int, problem: str | None = None) -> SavedWork:
    return SavedWork(
        name=f"save-{step}", path=f"/saves/{step}", step=step, at=990.0, size_bytes=1, attempt=1, problem=problem
    )


def ask(desk: Desk, caller: Caller, ref: str, shelf: Shelf) -> Job:
    """Requests a save like the API: looked up and recorded by the controller, written outside of its thread."""
    job = desk.do(job_to_save, caller, ref)
    ask_to_save(job, shelf)
    return desk.do(note_request, caller, job)


def test_a_running_job_is_asked_to_save(desk: Desk) -> None:
    shelf = Shelf()
    (job,) = desk.started(draft("training"))
    assert ask(desk, ANN, "training", shelf) == job
    assert ask(desk, ROOT, job.id, shelf) == job
    assert shelf.requests == [job.id, job.id]
    assert [event.actor for event in desk.events() if event.action == "job.checkpoint-requested"] == ["ann", "root"]


def test_a_job_that_cannot_save_is_not_asked(desk: Desk) -> None:
    shelf = Shelf()
    (job,) = desk.submit(draft("training"))
    with pytest.raises(WrongState, match="queued: only a running one"):
        ask(desk, ANN, job.id, shelf)
    with pytest.raises(NotFound):
        ask(desk, BOB, job.id, shelf)
    (running,) = desk.started(draft("running"))
    shelf.error = OSError(30, "Read-only file system")
    with pytest.raises(WrongState, match="Read-only file system"):
        ask(desk, ANN, running.id, shelf)
    assert shelf.requests == []
    assert "job.checkpoint-requested" not in desk.actions(running.id)


# -------------------------------------------------------------------------------------------- never without a warning


def stop(desk: Desk, job: Job) -> None:
    desk.do(jobs.stop, ANN, job.id)


def stop_as_operator(desk: Desk, job: Job) -> None:
    desk.do(jobs.stop, ROOT, job.id)


def preempt(desk: Desk, job: Job) -> None:
    desk.do(lambda work: work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.PREEMPTED)))


def resize(desk: Desk, job: Job) -> None:
    assert job.allocation is not None
    (grant,) = job.allocation.grants
    smaller = Allocation(model=job.allocation.model, grants=(Grant(node=grant.node, gpus=grant.gpus[:1]),))
    desk.do(lambda work: work.jobs.advance(job, ResizeRequested(at=work.now, allocation=smaller)))


def fail_gpu(desk: Desk, job: Job) -> None:
    assert job.allocation is not None
    before = gpu_health.condition_of(desk.state, job.allocation.gpus[0])
    hot = Evidence(sign=Sign.HOT, at=desk.now, text="91 °C", advice="", value=91.0)
    desk.do(gpu_health.apply, [HealthChange(before=before, after=put(before, GpuHealth.FAILED, [hot], desk.now))])


def lose_node(desk: Desk, job: Job) -> None:
    assert job.allocation is not None
    down = [
        replace(node, state=NodeState.DOWN) if node.id == job.allocation.grants[0].node else node for node in TWO_NODES
    ]
    desk.observe(*down, attempts=[status(job.attempt_id, RUNNING, desk.now)])


def reclaim_idle(desk: Desk, job: Job) -> None:
    rules = IdleRules(enabled=True, window_seconds=60.0, warning_seconds=0.0)
    idle = Sighting(job_id=job.id, attempt=job.attempt, activity=Activity.IDLE, utilization=0.0)
    desk.do(idle_jobs.review, [idle], rules)
    desk.do(idle_jobs.review, [idle], rules)


@pytest.mark.parametrize(
    "end", [stop, stop_as_operator, preempt, resize, fail_gpu, lose_node, reclaim_idle], ids=lambda end: end.__name__
)
def test_every_end_that_corral_causes_gives_the_grace_time(desk: Desk, end: Callable[[Desk, Job], None]) -> None:
    """A time limit is not among them: it is the engine's to keep, and the contract of engines has its grace."""
    (job,) = desk.started(draft("training", gpus=2, grace_seconds=47.0))
    end(desk, job)
    assert desk.instructions == [Stop(attempt_id=job.attempt_id, grace_seconds=47.0)]
    assert desk.job(job.id).state is JobState.STOPPING


# -------------------------------------------------------------------------------------------- resuming


class House:
    """A controller that knows what was saved."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = StillClock()
        self.engine = RecordingEngine()
        self.shelf = Shelf()
        self.controller = Controller(
            store=store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(checkpoints=LIBRARY),
            workspace=NoWorkspace(),
            checkpoints=self.shelf,
            observe_seconds=3600.0,
        )
        self.controller.start()

    def submit(self, name: str, **values: Any) -> str:
        (record,) = self.controller.execute(jobs.submit, ANN, [draft(name, **values)]).result(10)
        return record.job.id

    def env(self, attempt: str) -> dict[str, str]:
        """The environment of the attempt, once it is launched."""
        found = eventually(lambda: [order for order in self.engine.launched if order.attempt_id == attempt])
        return dict(found[0].env)

    def launches(self, job_id: str) -> int:
        return sum(order.job_id == job_id for order in self.engine.launched)

    def requeue(self, job_id: str, attempt: int) -> None:
        """Preempts the job; its next attempt is launched."""
        self.engine.report(status(f"{job_id}.{attempt}", RUNNING, self.clock.time))
        self.wait_for(job_id, JobState.RUNNING)
        self.controller.execute(_preempted, job_id).result(10)
        self.engine.report(status(f"{job_id}.{attempt}", ENDED, self.clock.time, reason=EndReason.EXIT_CODE))

    def wait_for(self, job_id: str, state: JobState) -> Job:
        def found() -> Job | None:
            with self.store.read() as tx:
                record = tx.jobs.get(job_id)
            return record.job if record is not None and record.job.state is state else None

        job: Job = eventually(found)
        return job


def _preempted(work: Work, job_id: str) -> None:
    work.jobs.advance(work.state.snapshot.jobs[job_id], StopRequested(at=work.now, reason=EndReason.PREEMPTED))


@pytest.fixture
def house(store: Store) -> Iterator[House]:
    house = House(store)
    yield house
    house.shelf.may_read.set()
    house.controller.stop()


def test_the_next_attempt_resumes_from_the_latest_good_one(house: House) -> None:
    house.shelf.saved = [saved(3, problem="state has 7 bytes instead of 9"), saved(2), saved(1)]
    job_id = house.submit("training", spec=replace(SPEC, env={"CORRAL_RESUME_FROM": "/elsewhere"}))
    first = house.env(f"{job_id}.1")
    assert first["CORRAL_RESUME_FROM"] == "/elsewhere", "what its owner named, as long as it has nothing of its own"
    assert first["PYTHONPATH"] == "/home/helper"
    assert house.shelf.looks == [], "a first attempt has nothing to resume from"
    house.requeue(job_id, 1)
    assert house.env(f"{job_id}.2")["CORRAL_RESUME_FROM"] == "/saves/2"


def test_with_nothing_good_it_begins_anew(house: House) -> None:
    house.shelf.saved = [saved(3, problem="torn")]
    job_id = house.submit("training")
    house.requeue(job_id, 1)
    assert "CORRAL_RESUME_FROM" not in house.env(f"{job_id}.2")
    house.shelf.saved = []
    house.requeue(job_id, 2)
    assert "CORRAL_RESUME_FROM" not in house.env(f"{job_id}.3")
    assert house.shelf.looks == [job_id], "where nothing lies, nothing is read"


def test_a_disk_that_fails_keeps_no_job_from_running(house: House) -> None:
    house.shelf.saved = [saved(3)]
    house.shelf.error = OSError(5, "Input/output error")
    job_id = house.submit("training")
    house.requeue(job_id, 1)
    assert "CORRAL_RESUME_FROM" not in house.env(f"{job_id}.2")


def test_reading_a_large_checkpoint_delays_no_other_job(house: House) -> None:
    house.shelf.saved = [saved(3)]
    slow, other = house.submit("slow-one"), house.submit("other")
    house.env(f"{other}.1")
    house.shelf.may_read.clear()
    house.requeue(slow, 1)
    eventually(lambda: house.shelf.looks == [slow])
    house.engine.report(status(f"{other}.1", RUNNING, house.clock.time))
    house.wait_for(other, JobState.RUNNING)
    house.controller.execute(jobs.stop, ANN, other).result(10)
    eventually(lambda: (f"{other}.1", 30.0) in house.engine.stopped)
    third = house.submit("third")
    house.env(f"{third}.1")
    # Reconciling misses both attempts and launches them again: the slow one is read once all the same.
    house.clock.time += 60.0
    house.controller.observe_soon()
    eventually(lambda: house.launches(third) == 2)
    house.env(f"{house.submit('fourth')}.1")
    house.shelf.may_read.set()
    assert house.env(f"{slow}.2")["CORRAL_RESUME_FROM"] == "/saves/3"
    assert house.shelf.looks == [slow]
    assert house.launches(slow) == 2, "each of its attempts once"


def test_a_stop_while_it_is_read_is_the_end(house: House) -> None:
    house.shelf.saved = [saved(3)]
    job_id = house.submit("training")
    house.env(f"{job_id}.1")
    house.shelf.may_read.clear()
    house.requeue(job_id, 1)
    eventually(lambda: house.shelf.looks == [job_id])
    house.controller.execute(jobs.stop, ANN, job_id).result(10)
    job = house.wait_for(job_id, JobState.STOPPED)
    assert job.end_reason is EndReason.STOPPED_BY_USER
    house.shelf.may_read.set()
    house.env(f"{house.submit('another')}.1")
    assert f"{job_id}.2" not in [order.attempt_id for order in house.engine.launched]
