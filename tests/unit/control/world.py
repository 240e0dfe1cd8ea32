"""A small world for use cases: a clock that stands still, an engine that records its calls, and a desk that
runs one use case per transaction as the controller does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from corral.control.fleet.node_effects import NodeEffect
from corral.control.jobs import jobs
from corral.control.live.cycle import run_cycle
from corral.control.live.journal import JournalWriter
from corral.control.live.reconcile import reconcile, report
from corral.control.live.state import State, load_state
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import (
    AttemptPhase,
    AttemptStatus,
    Engine,
    EngineUnavailable,
    LaunchOrder,
    LaunchRefused,
    LogChunk,
    Observation,
    Store,
    Transaction,
    Withholding,
    Workspace,
)
from corral.control.ports.store.holder import Leadership
from corral.control.records import EventFilter, EventRecord, JobRecord, JobSpec
from corral.control.system.policies import Policies
from corral.core.jobs.job_fields import JOB_FIELDS
from corral.core.jobs.lifecycle import Instruction
from corral.core.model import EndReason, Job, Node, Request
from tests.unit.core.builders import node

P = ParamSpec("P")
T = TypeVar("T")

ANN = Caller(name="ann")
BOB = Caller(name="bob")
ROOT = Caller(name="root", is_operator=True)
SPEC = JobSpec(command=("python", "train.py"))
TWO_NODES = (node("n1", gpus=4), node("n2", gpus=4))


def changed(**values: Any) -> jobs.JobChange:
    """A change of these values of a draft."""
    names = {field.attribute: name for name, field in JOB_FIELDS.items()}
    draft = jobs.JobDraft(spec=JobSpec(command=()), **values)
    return jobs.JobChange(given=frozenset(names[attribute] for attribute in values), draft=draft)


def draft(name: str | None = None, gpus: int = 1, nodes: int = 1, **values: Any) -> jobs.JobDraft:
    return jobs.JobDraft(**{"spec": SPEC, "name": name, "request": Request(gpus=gpus, nodes=nodes), **values})


class StillClock:
    def __init__(self, now: float = 1000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.now()


class Desk:
    """Use cases one by one, each in its own transaction; the state is thrown away when one fails.

    It is loaded again when a test reads it: after a refusal most tests do not.
    """

    def __init__(self, store: Store, policies: Policies | None = None, nodes: Sequence[Node] = TWO_NODES) -> None:
        self.store = store
        self.policies = policies or Policies()
        self.now = 1000.0
        self.instructions: list[Instruction] = []
        self.forgotten: list[str] = []
        self.node_effects: list[NodeEffect] = []
        self.journal = JournalWriter()
        self._state: State | None = None
        self.observe(*nodes)

    @property
    def state(self) -> State:
        if self._state is None:
            self._state = self.loaded()
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state

    def loaded(self) -> State:
        with self.store.read() as tx:
            return load_state(tx, self.policies)

    def do(self, use_case: Callable[Concatenate[Work, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            state = self.state
            with self.store.write() as tx:
                work = Work(tx, state, self.now)
                result = use_case(work, *args, **kwargs)
                work.flush()
        except BaseException:
            self._state = None
            raise
        self.instructions = work.effects.instructions
        self.forgotten = work.effects.recorded_ends
        self.node_effects = [effect for _, effect in work.effects.nodes]
        return result

    def submit(self, *drafts: jobs.JobDraft, caller: Caller = ANN) -> list[Job]:
        return [record.job for record in self.do(jobs.submit, caller, list(drafts))]

    def cycle(self) -> list[str]:
        """Plan once; the jobs that started."""
        return [start.job_id for start in self.do(run_cycle, self.journal).starts]

    def started(self, *drafts: jobs.JobDraft, caller: Caller = ANN) -> list[Job]:
        """Submitted, planned, and up."""
        submitted = self.submit(*drafts, caller=caller)
        self.cycle()
        for job in submitted:
            self.hear(self.job(job.id), AttemptPhase.RUNNING)
        return [self.job(job.id) for job in submitted]

    def hear(self, job: Job, phase: AttemptPhase, reason: EndReason | None = None, **values: Any) -> None:
        """The engine reports on the job's present attempt."""
        values = {"attempt_id": job.attempt_id, "at": self.now, **values}
        self.do(report, AttemptStatus(phase=phase, reason=reason, **values))

    def observe(
        self,
        *nodes: Node,
        attempts: Sequence[AttemptStatus] = (),
        at: float | None = None,
        withheld: Mapping[str, Withholding] | None = None,
    ) -> None:
        seen_at = self.now if at is None else at
        observation = Observation(nodes=nodes, attempts=tuple(attempts), withheld=withheld)
        self.do(reconcile, "local", observation, seen_at)

    def record(self, job_id: str) -> JobRecord:
        with self.store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None
        return record

    def job(self, job_id: str) -> Job:
        """The job in the store."""
        return self.record(job_id).job

    def events(self) -> list[EventRecord]:
        with self.store.read() as tx:
            return list(tx.events.page(EventFilter(), cursor=None, limit=500).items)[::-1]

    def actions(self, subject: str) -> list[str]:
        return [event.action for event in self.events() if event.subject == subject]


class NoWorkspace(Workspace):
    def env(self, job_id: str) -> dict[str, str]:
        return {"CORRAL_JOB_DIR": f"/jobs/{job_id}"}

    def prepare(self, job_id: str) -> None:
        pass

    def put_once(self, job_id: str, name: str, value: Any) -> bool:
        return True

    def remove(self, job_ids: Sequence[str]) -> None:
        pass


class WrappedStore(Store):
    """Passes every call to another store. Fakes override the calls that fail."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take_over(self, above: int = 0) -> Leadership:
        return self._store.take_over(above)

    def write(self) -> AbstractContextManager[Transaction]:
        return self._store.write()

    def read(self) -> AbstractContextManager[Transaction]:
        return self._store.read()

    def describe(self) -> Mapping[str, str]:
        return self._store.describe()

    def close(self) -> None:
        """The wrapped store is closed by its owner."""


class RecordingEngine(Engine):
    """Records its calls, and reports only what a test passes to `report`."""

    def __init__(self, nodes: Sequence[Node] = TWO_NODES) -> None:
        self.nodes = tuple(nodes)
        self.attempts: dict[str, AttemptStatus] = {}
        self.launched: list[LaunchOrder] = []
        self.stopped: list[tuple[str, float]] = []
        self.forgotten: list[str] = []
        self.refusal: str | None = None
        self.withheld: dict[str, str] = {}
        self.is_away = False
        #: what every observation ends with
        self.failure: Exception | None = None
        self._sink: Callable[[AttemptStatus], None] = lambda status: None
        self._lock = threading.Lock()

    def observe(self) -> Observation:
        self._check()
        if self.failure is not None:
            raise self.failure
        with self._lock:
            return Observation(nodes=self.nodes, attempts=tuple(self.attempts.values()))

    def launch(self, order: LaunchOrder) -> None:
        self._check()
        if self.refusal:
            raise LaunchRefused(self.refusal)
        self.launched.append(order)

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._check()
        self.stopped.append((attempt_id, grace_seconds))

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        return LogChunk(data=b"", next_offset=0, at_end=True)

    def has(self, attempt_id: str) -> bool:
        with self._lock:
            return attempt_id in self.attempts

    def withhold(self, node: str, reason: str) -> None:
        self.withheld[node] = reason

    def release(self, node: str, *, force: bool) -> None:
        self.withheld.pop(node, None)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        self.forgotten.extend(attempt_ids)
        with self._lock:
            for attempt_id in attempt_ids:
                self.attempts.pop(attempt_id, None)

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._sink = sink

    def close(self) -> None:
        pass

    def report(self, status: AttemptStatus) -> None:
        with self._lock:
            self.attempts[status.attempt_id] = status
        self._sink(status)

    def _check(self) -> None:
        if self.is_away:
            raise EngineUnavailable("it is away")


def status(attempt_id: str, phase: AttemptPhase, at: float, **values: Any) -> AttemptStatus:
    return AttemptStatus(attempt_id=attempt_id, phase=phase, at=at, **values)


def eventually(happened: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Waits until `happened` returns a true value, and returns it."""
    deadline = time.monotonic() + seconds
    while not (answer := happened()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
    return answer


def with_gpus(job_draft: jobs.JobDraft, gpus: int) -> jobs.JobDraft:
    return replace(job_draft, request=Request(gpus=gpus))
