"""The one place where the live system changes: a thread that owns the state, takes requests and events in turns, and
acts.

A turn is: take everything that has arrived, run it in one transaction, plan, write, commit; then answer, tell the
engines and announce what changed. Many requests that arrive together share one commit. If a turn fails, nothing of it
happened: the state is loaded from the store again and each request gets a turn of its own, so that one bad request
harms no other.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from corral.control.checkpoints import told_at_launch
from corral.control.cluster_health import ClusterHealth
from corral.control.cycle import run_cycle
from corral.control.errors import Refusal
from corral.control.housekeeping import EVERY_SECONDS, tidy
from corral.control.journal import JournalWriter
from corral.control.orders import launch_order
from corral.control.outbox import DeleteEffect, ForgetEffect, Lanes, LaunchEffect, Outbox, StopEffect, lane_names
from corral.control.policies import Policies
from corral.control.ports import (
    AttemptPhase,
    AttemptStatus,
    Checkpoints,
    Clock,
    Engine,
    EngineUnavailable,
    Fenced,
    LaunchOrder,
    Store,
    StoreSuperseded,
    Workspace,
)
from corral.control.queues import follow_settings
from corral.control.reconcile import not_taken, reconcile, report
from corral.control.records import EventRecord, JobSpec
from corral.control.state import State, as_committed, load_state
from corral.control.watching import Watch
from corral.control.work import Work
from corral.core.lifecycle import Instruction, Launch, Stop
from corral.core.model import EndReason, Job, attempt_id, job_of_attempt

log = logging.getLogger("corral.control")

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: Requests that share one transaction at most; more would make the first ones wait.
TURN_SIZE = 500
#: How long engines' reports wait for company. Nobody waits for their answer, and a durable commit costs a disk's turn.
GATHER_SECONDS = 0.004


class ControllerStopped(RuntimeError):
    """The controller takes nothing any more: the server stops, or another one has taken over."""


@dataclass(slots=True)
class _Request:
    run: Callable[[Work], Any]
    answer: Future[Any] = field(default_factory=Future)
    result: Any = None
    refusal: Refusal | None = None
    #: nobody waits for the answer
    is_patient: bool = False


class Controller:
    def __init__(
        self,
        *,
        store: Store,
        engines: Mapping[str, Engine],
        clock: Clock,
        policies: Policies,
        workspace: Workspace,
        checkpoints: Checkpoints | None = None,
        announce: Callable[[Sequence[EventRecord]], None] = lambda events: None,
        observe_seconds: float = 5.0,
        tidy_seconds: float = 30.0,
    ) -> None:
        """`announce` is called from the controller's thread with events that were just committed; it must be quick.

        `tidy_seconds` is the safety net: a cycle runs that often even if nothing seems to have happened. With
        `checkpoints`, attempts are told what to resume from.
        """
        self.engines = dict(engines)
        self.health: dict[str, ClusterHealth] = {}
        self.cycle_seconds: Callable[[float], None] = lambda seconds: None
        #: called with the cluster before an attempt is launched there, on a thread that may wait; what it raises ends
        #: the attempt
        self.prepare: Callable[[str, LaunchOrder], None] = lambda cluster, order: None
        #: the same, for what is only known or secret then: the address of an image, the login to pull it
        self.complete: Callable[[LaunchOrder], LaunchOrder] = lambda order: order
        self._store = store
        self._clock = clock
        self._policies = policies
        self._workspace = workspace
        self._announce = announce
        self._tidy_seconds = tidy_seconds
        self._state = State(policies)
        self._journal = JournalWriter()
        self._last_cycle_at = 0.0
        self._arrived = threading.Condition()
        self._requests: deque[_Request] = deque()
        self._reads: deque[tuple[Callable[[State], Any], Future[Any]]] = deque()
        self._stopping = threading.Event()
        self._tidied_at = 0.0
        self._outboxes = {
            name: Lanes(
                [
                    Outbox(
                        lane,
                        engine,
                        workspace,
                        self._launch_refused,
                        checkpoints,
                        partial(self._prepare, name),
                        self._complete,
                        self._launch_not_taken,
                        self._launch_failed,
                    )
                    for lane in lane_names(name, engine)
                ]
            )
            for name, engine in self.engines.items()
        }
        self._watches = [Watch(name, partial(self._observe, name), observe_seconds, clock) for name in self.engines]
        self._thread = threading.Thread(target=self._serve, name="controller", daemon=True)
        self.failure: BaseException | None = None

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        """Load the state, bring it together with what the engines see, and begin."""
        fenced = [engine for engine in self.engines.values() if isinstance(engine, Fenced)]
        leadership = self._store.take_over(above=max((engine.term_seen() for engine in fenced), default=0))
        for led in fenced:
            led.lead(leadership)
        with self._store.read() as tx:
            self._state = load_state(tx, self._policies)
        self.execute(follow_settings).add_done_callback(_log_failure)
        for name, engine in self.engines.items():
            engine.subscribe(self._heard)
            self._observe(name)
        with self._arrived:
            requests = list(self._requests)
            self._requests.clear()
        self._turn(requests)
        for outbox in self._outboxes.values():
            outbox.start()
        self._thread.start()
        for watch in self._watches:
            watch.start()

    def execute(
        self, use_case: Callable[Concatenate[Work, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Answer]:
        """Run a use case in the next transaction. The future has its answer once that is committed, or its refusal."""
        request = _Request(run=lambda work: use_case(work, *args, **kwargs))
        self._enqueue(request)
        return request.answer

    def inspect(
        self, read: Callable[Concatenate[State, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Answer]:
        """Run a function that only reads the state, between two turns."""
        answer: Future[Answer] = Future()
        with self._arrived:
            if self._stopping.is_set() or self.failure is not None:
                answer.set_exception(ControllerStopped("the server is stopping"))
                return answer
            self._reads.append((lambda state: read(state, *args, **kwargs), answer))
            self._arrived.notify()
        return answer

    def _enqueue(self, request: _Request) -> None:
        with self._arrived:
            if self._stopping.is_set() or self.failure is not None:
                request.answer.set_exception(ControllerStopped("the server is stopping"))
                return
            self._requests.append(request)
            self._arrived.notify()

    def observe_soon(self) -> None:
        """Look at the engines now rather than at the next regular time."""
        for watch in self._watches:
            watch.look_soon()

    @property
    def is_alive(self) -> bool:
        return self.failure is None and not self._stopping.is_set() and self._thread.is_alive()

    def stop(self) -> None:
        """End all threads. Attempts go on running; what was not carried out is found again at the next start."""
        self._stopping.set()
        with self._arrived:
            self._arrived.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=30.0)
        for watch in self._watches:
            watch.stop()
        for outbox in self._outboxes.values():
            outbox.close()
        self._give_up([])

    # ---------------------------------------------------------------- the controller's thread

    def _serve(self) -> None:
        requests: list[_Request] = []
        try:
            while not self._stopping.is_set():
                self._tidy_if_due()
                requests, reads = self._take()
                for read, answer in reads:
                    self._read(read, answer)
                if requests or self._cycle_is_due():
                    self._turn(requests)
        except BaseException as failure:
            # Nobody above this thread could hear it: whoever asks the controller does.
            self.failure = failure
            log.critical("the controller has failed: %s", failure, exc_info=not isinstance(failure, StoreSuperseded))
            self._give_up(requests)

    def _tidy_if_due(self) -> None:
        if self._clock.now() >= self._tidied_at + EVERY_SECONDS:
            self._tidied_at = self._clock.now()
            self.execute(tidy).add_done_callback(_log_failure)

    def _give_up(self, taken: Sequence[_Request]) -> None:
        """Nobody shall wait for an answer that never comes."""
        with self._arrived:
            answers = [request.answer for request in (*taken, *self._requests)]
            answers += [answer for _, answer in self._reads]
            self._requests.clear()
            self._reads.clear()
        for answer in answers:
            if not answer.done():
                answer.set_exception(ControllerStopped("the server is stopping"))

    def _take(self) -> tuple[list[_Request], list[tuple[Callable[[State], Any], Future[Any]]]]:
        with self._arrived:
            if not self._requests and not self._reads and not self._cycle_is_due() and not self._stopping.is_set():
                self._arrived.wait(timeout=self._rest_seconds())
            if self._requests and all(request.is_patient for request in self._requests):
                self._arrived.wait_for(self._somebody_waits, timeout=GATHER_SECONDS)
            requests = [self._requests.popleft() for _ in range(min(TURN_SIZE, len(self._requests)))]
            reads = list(self._reads)
            self._reads.clear()
        return requests, reads

    def _somebody_waits(self) -> bool:
        return bool(self._reads) or self._stopping.is_set() or any(not item.is_patient for item in self._requests)

    def _cycle_is_due(self) -> bool:
        now, wake_at = self._clock.now(), self._state.plan.wake_at
        return (
            self._state.needs_cycle
            or (wake_at is not None and now >= wake_at)
            or now >= self._last_cycle_at + self._tidy_seconds
        )

    def _rest_seconds(self) -> float:
        now, wake_at = self._clock.now(), self._state.plan.wake_at
        until = min(self._last_cycle_at + self._tidy_seconds, wake_at or float("inf"))
        return max(0.001, until - now)

    def _turn(self, requests: list[_Request]) -> None:
        try:
            work, events = self._run(requests)
        except StoreSuperseded:
            for request in requests:
                request.answer.set_exception(ControllerStopped("another server has taken over the store"))
            raise
        except Exception as error:
            with self._store.read() as tx:
                self._state = load_state(tx, self._policies)
            if len(requests) > 1:
                log.warning("a turn of %d requests failed, running each alone: %s", len(requests), error)
                for request in requests:
                    self._turn([_Request(run=request.run, answer=request.answer, is_patient=request.is_patient)])
                return
            for request in requests:
                if not request.answer.done():
                    request.answer.set_exception(error)
            if not requests:
                log.exception("a cycle failed")
                # Tried again with the next change, or when the safety net comes round.
                self._state.needs_cycle = False
                self._last_cycle_at = self._clock.now()
            return
        self._after_commit(work, events, requests)

    def _run(self, requests: list[_Request]) -> tuple[Work, list[EventRecord]]:
        now = self._clock.now()
        with self._store.write() as tx:
            work = Work(tx, self._state, now)
            for request in requests:
                self._attend(work, request)
            if self._cycle_is_due():
                run_cycle(work, self._journal)
                self._last_cycle_at = now
                self.cycle_seconds(self._clock.now() - now)
            events = work.flush()
        return work, events

    def _attend(self, work: Work, request: _Request) -> None:
        steps = work.steps
        try:
            request.result = request.run(work)
        except Refusal as refusal:
            if work.steps != steps:
                raise RuntimeError(f"refused half way: {refusal}") from refusal
            request.refusal = refusal

    def _after_commit(self, work: Work, events: list[EventRecord], requests: list[_Request]) -> None:
        self._send(work)
        for request in requests:
            if request.refusal is not None:
                request.answer.set_exception(request.refusal)
            else:
                request.answer.set_result(as_committed(self._state, request.result))
        if events:
            self._announce(events)

    def _send(self, work: Work) -> None:
        """Hand what was decided to the engines."""
        for instruction in work.instructions:
            job = self._state.snapshot.jobs.get(job_of_attempt(instruction.attempt_id)[0])
            outbox = self._outbox_of(job, instruction)
            if isinstance(instruction, Launch):
                if job is not None and job.allocation is not None and job.attempt_id == instruction.attempt_id:
                    self._order_launch(job, outbox)
            else:
                outbox.put(StopEffect(attempt_id=instruction.attempt_id, grace_seconds=instruction.grace_seconds))
        for cluster, effect in work.node_effects:
            if cluster in self._outboxes:
                self._outboxes[cluster].put(effect)
        if work.recorded_ends:
            for outbox in self._outboxes.values():
                outbox.put(ForgetEffect(attempt_ids=tuple(work.recorded_ends)))
        if work.deleted:
            for outbox in self._outboxes.values():
                outbox.put(DeleteEffect(attempts={job.id: _attempts(job) for job in work.deleted}))

    def _order_launch(self, job: Job, outbox: Lanes) -> None:
        """Touches no file of the job: the outbox's thread prepares its directories. What cannot be ordered ends that
        attempt, and nothing else."""
        try:
            spec = self._state.specs.get(job.id) or self._read_spec(job.id)
        except Exception:
            log.exception("the launch of %s waits: what it runs cannot be read", job.attempt_id)
            return  # reconciling finds it missing, and orders it again
        try:
            env = {**self._workspace.env(job.id), **told_at_launch(self._policies.checkpoints, spec)}
            picture = self._state.snapshot
            order = launch_order(job, spec, picture.nodes, env, picture.volumes)
        except Exception as error:
            log.exception("%s cannot be launched", job.attempt_id)
            self._launch_refused(job.attempt_id, f"it cannot be ordered: {type(error).__name__}: {error}")
            return
        outbox.put(LaunchEffect(order=order))

    def _read_spec(self, job_id: str) -> JobSpec:
        with self._store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None, job_id
        self._state.keep_spec(job_id, record.spec)
        return record.spec

    def _outbox_of(self, job: Job | None, instruction: Instruction) -> Lanes:
        if isinstance(instruction, Stop) and instruction.cluster in self._outboxes:
            return self._outboxes[instruction.cluster]
        if job is not None and job.allocation is not None:
            node = self._state.snapshot.nodes.get(job.allocation.grants[0].node)
            if node is not None and node.cluster in self._outboxes:
                return self._outboxes[node.cluster]
        return next(iter(self._outboxes.values()))

    def _read(self, read: Callable[[State], Any], answer: Future[Any]) -> None:
        try:
            answer.set_result(read(self._state))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            answer.set_exception(error)

    # ---------------------------------------------------------------- engines

    def _take_in(self, run: Callable[[Work], None]) -> None:
        """What an engine says: nobody waits for the answer."""
        request = _Request(run=run, is_patient=True)
        request.answer.add_done_callback(_log_failure)
        self._enqueue(request)

    def _heard(self, status: AttemptStatus) -> None:
        self._take_in(lambda work: report(work, status))
        if status.reason in (EndReason.NODE_LOST, EndReason.PREEMPTED):
            # Before the next regular look, others would be sent to a node that is not there, or that others have.
            self.observe_soon()

    def _prepare(self, cluster: str, order: LaunchOrder) -> None:
        self.prepare(cluster, order)

    def _complete(self, order: LaunchOrder) -> LaunchOrder:
        return self.complete(order)

    def _launch_failed(self, failed: str, message: str) -> None:
        self._launch_refused(failed, message, EndReason.LOST)

    def _launch_refused(self, refused: str, message: str, reason: EndReason = EndReason.LAUNCH_ERROR) -> None:
        self._heard(
            AttemptStatus(
                attempt_id=refused,
                phase=AttemptPhase.ENDED,
                at=self._clock.now(),
                reason=reason,
                message=message,
            )
        )

    def _launch_not_taken(self, attempt_id: str, words: str) -> None:
        self._take_in(lambda work: not_taken(work, attempt_id, words))

    def _observe(self, name: str) -> bool:
        """Whether the cluster answered. Whatever goes wrong with one keeps nobody from the others."""
        observed_at = self._clock.now()
        try:
            observation = self.engines[name].observe()
        except EngineUnavailable as error:
            log.warning("cluster %s cannot be observed: %s", name, error)
            self._found(name, observed_at, str(error))
            return False
        except Exception as error:
            log.exception("cluster %s cannot be observed", name)
            self._found(name, observed_at, f"{type(error).__name__}: {error}")
            return False
        self.execute(reconcile, name, observation, observed_at).add_done_callback(
            partial(self._reconciled, name, observed_at)
        )
        return True

    def _reconciled(self, name: str, observed_at: float, answer: Future[None]) -> None:
        error = answer.exception()
        if isinstance(error, ControllerStopped):
            return
        _log_failure(answer)
        self._found(name, observed_at, f"what it reports cannot be taken: {error}" if error is not None else "")

    def _found(self, name: str, at: float, trouble: str) -> None:
        before = self.health.get(name)
        self.health[name] = ClusterHealth.seen(before, not trouble, trouble, at)
        if before is not None and not before.healthy and not trouble:
            self._outboxes[name].hurry()


def _log_failure(answer: Future[Any]) -> None:
    error = answer.exception()
    if error is not None and not isinstance(error, ControllerStopped):
        log.error("an engine's report could not be taken: %s", error, exc_info=error)


def _attempts(job: Job) -> tuple[str, ...]:
    return tuple(attempt_id(job.id, number) for number in range(1, job.attempt + 1))
