"""The one place where the live system changes: a thread that owns the state, takes requests and events in turns, and
acts.

A turn is: take everything that has arrived, run it in one transaction, plan, write, commit; then answer, tell the
engines and announce what changed. Many requests that arrive together share one commit.

Nothing that a request, a plan, a row or an engine does ends this thread:

- If a turn fails, nothing of it happened: the state is loaded from the store again, and the turn is run without what
  made it fail, so that one bad request, or a queue that cannot be planned, harms no other.
- If the store is away, requests are refused until it is back. Then the state is loaded, a commit of which nobody knows
  whether it happened is looked up, and the engines are observed anew.
- Only another server that has taken over the store ends it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from corral.control.fleet.cluster_health import ClusterHealth
from corral.control.jobs.checkpoints import told_at_launch
from corral.control.launch.orders import launch_order
from corral.control.live.cluster_watch import Watch
from corral.control.live.inbox import Inbox, Read
from corral.control.live.outage import Outage
from corral.control.live.outbox import (
    DeleteEffect,
    ForgetEffect,
    Lanes,
    LaunchEffect,
    Outbox,
    RefuseEffect,
    StopEffect,
    lane_names,
)
from corral.control.live.planner import CycleFailed, Planner
from corral.control.live.reconcile import not_taken, reconcile, report
from corral.control.live.state import State, load_state
from corral.control.live.turn import Request, RequestFailed, Turn
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker, WorkerStopped, log_failure
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
    StoreUnavailable,
    Transaction,
    Workspace,
)
from corral.control.records import EventRecord, JobSpec
from corral.control.scheduling.queues import follow_settings
from corral.control.system.housekeeping import EVERY_SECONDS, tidy
from corral.control.system.policies import Policies
from corral.core.jobs.lifecycle import Instruction, Launch, Stop
from corral.core.model import EndReason, Job, attempt_id, job_of_attempt

log = logging.getLogger("corral.control")

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: After a store that was away: proves that it can be written.
PROOF = "store.recovered_at"


class ControllerStopped(WorkerStopped, RuntimeError):
    """The controller takes nothing any more: the server stops, or another one has taken over."""


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
        observe_cycle: Callable[[float], None] = lambda seconds: None,
        observe_seconds: float = 5.0,
        tidy_seconds: float = 30.0,
    ) -> None:
        """`announce` is called from the controller's thread with events that were just committed; it must be quick.
        `observe_cycle` is called with the seconds that each cycle took.

        `tidy_seconds` is the safety net: a cycle runs that often even if nothing seems to have happened. With
        `checkpoints`, attempts are told what to resume from.
        """
        self.engines = dict(engines)
        self.health: dict[str, ClusterHealth] = {}
        #: called with the cluster before an attempt is launched there, on a thread that may wait; what it raises ends
        #: the attempt
        self.prepare: Callable[[str, LaunchOrder], None] = lambda cluster, order: None
        #: the same, for what is only known or secret then: the address of an image, the login to pull it
        self.complete: Callable[[LaunchOrder], LaunchOrder] = lambda order: order
        self.failure: BaseException | None = None
        self._store = store
        self._clock = clock
        self._policies = policies
        self._workspace = workspace
        self._announce = announce
        self._planner = Planner(clock, tidy_seconds, observe_cycle)
        self._state = State(policies)
        #: whether the state is what the store has; a turn that failed leaves it half changed
        self._is_loaded = False
        #: set while the store is away
        self._outage: Outage | None = None
        self._inbox = Inbox()
        self._tidied_at = clock.monotonic() - EVERY_SECONDS
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
        self._worker = Worker("controller", self._beat, every_seconds=0.0, interrupt=self._refuse_for_good)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        """Load the state, bring it together with what the engines see, and begin. Raises StoreUnavailable."""
        fenced = [engine for engine in self.engines.values() if isinstance(engine, Fenced)]
        leadership = self._store.take_over(above=max((engine.term_seen() for engine in fenced), default=0))
        for led in fenced:
            led.lead(leadership)
        with self._store.read() as tx:
            self._load(tx)
        self.execute(follow_settings).add_done_callback(_log_failure)
        for name, engine in self.engines.items():
            engine.subscribe(self._heard)
            self._observe(name)
        self._turn(self._inbox.take_all())
        for outbox in self._outboxes.values():
            outbox.start()
        self._worker.start()
        for watch in self._watches:
            watch.start()

    def execute(
        self, use_case: Callable[Concatenate[Work, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Answer]:
        """Run a use case in the next transaction. The future has its answer once that is committed, or its refusal; or
        StoreUnavailable while the store is away."""
        request = Request(run=lambda work: use_case(work, *args, **kwargs))
        self._inbox.put(request)
        return request.answer

    def inspect(
        self, read: Callable[Concatenate[State, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Answer]:
        """Run a function that only reads the state, between two turns."""
        asked = Read(run=lambda state: read(state, *args, **kwargs))
        self._inbox.put_read(asked)
        return asked.answer

    def observe_soon(self) -> None:
        """Look at the engines now rather than at the next regular time."""
        for watch in self._watches:
            watch.look_soon()

    @property
    def is_alive(self) -> bool:
        return self.failure is None and not self._worker.is_stopping and self._worker.is_alive

    @property
    def outage(self) -> str:
        """Why the store cannot be used now; empty while it can."""
        outage = self._outage
        return "" if outage is None else outage.words

    def stop(self) -> None:
        """End all threads. Attempts go on running; what was not carried out is found again at the next start."""
        for watch in self._watches:
            watch.ask_to_stop()
        self._worker.stop()
        for watch in self._watches:
            watch.stop()
        for outbox in self._outboxes.values():
            outbox.close()

    def _refuse_for_good(self) -> None:
        self._inbox.close(lambda: ControllerStopped("the server is stopping"))

    # ---------------------------------------------------------------- the controller's thread

    def _beat(self) -> None:
        """One round: what has arrived, or the way back after the store was away."""
        taken: list[Request] = []
        try:
            if self._outage is not None:
                self._recover(self._outage)
                return
            self._tidy_if_due()
            taken, reads = self._inbox.take(lambda: self._planner.rest_seconds(self._state))
            for read in reads:
                read.attend(self._state)
            if taken or self._planner.is_due(self._state):
                self._turn(taken)
        except StoreSuperseded as failure:
            self.failure = failure
            log.critical("the controller ends: %s", failure)
            stopped = ControllerStopped("another server has taken over the store")
            Turn(requests=taken).fail(stopped)
            self._refuse_for_good()
            raise stopped from failure
        except Exception as error:
            log.critical("the controller failed, and goes on with what the store has", exc_info=error)
            Turn(requests=taken).fail(error)
            self._lose(StoreUnavailable(f"the server is recovering from an error: {error}"))

    def _tidy_if_due(self) -> None:
        if self._clock.monotonic() >= self._tidied_at + EVERY_SECONDS:
            self._tidied_at = self._clock.monotonic()
            self.execute(tidy).add_done_callback(_log_failure)

    # ---------------------------------------------------------------- turns

    def _turn(self, requests: Sequence[Request]) -> None:
        """Run requests and a cycle, if one is due. What makes the turn fail is left out, and the rest runs again."""
        planner: Planner | None = self._planner
        cycle_failure: CycleFailed | None = None
        while True:
            turn = Turn(requests=requests)
            try:
                turn.run(self._store, self._state, self._clock.now(), planner)
                break
            except StoreSuperseded:
                raise
            except StoreUnavailable as error:
                self._lose(error, turn)
                return
            except CycleFailed as failure:
                # 1. Requests and reports are committed without the cycle.
                planner, cycle_failure = None, failure
            except RequestFailed as failure:
                # 2. The request that has a bug fails alone.
                log.error("a request failed: %s", failure, exc_info=failure.cause)
                failure.request.fail(failure.cause)
                requests = [request for request in requests if request is not failure.request]
            except Exception as error:
                # 3. Who is to blame is not known: the cycle, if it goes well without one; else each request is tried
                #    alone.
                log.warning("a turn of %d requests failed: %s", len(requests), error, exc_info=error)
                if turn.digest is None:
                    self._one_by_one(requests, error)
                    return
                planner, cycle_failure = None, CycleFailed(turn.digest, error)
            if not self._reload(turn):
                return
        self._after_commit(turn)
        if cycle_failure is not None:
            self._planner.failed(self._state, cycle_failure)

    def _one_by_one(self, requests: Sequence[Request], error: Exception) -> None:
        """After a turn that failed even without a cycle."""
        if not self._reload(Turn(requests=requests)):
            return
        if len(requests) == 1:
            requests[0].fail(error)
            return
        for request in requests:
            self._turn([request])

    def _after_commit(self, turn: Turn) -> None:
        assert turn.work is not None
        self._send(turn.work)
        for request in turn.requests:
            request.committed(self._state)
        if turn.events:
            try:
                self._announce(turn.events)
            except Exception:
                # It is committed: whoever follows finds it in the store.
                log.exception("what happened could not be announced")

    # ---------------------------------------------------------------- the way back

    def _load(self, tx: Transaction) -> None:
        state = load_state(tx, self._policies)
        self._planner.note(state)
        self._state, self._is_loaded = state, True

    def _reload(self, turn: Turn) -> bool:
        """Forget what a failed turn did to the state. False if the store is away; then its requests are refused."""
        try:
            with self._store.read() as tx:
                self._load(tx)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no state to work with
            self._lose(error, turn)
            return False
        return True

    def _lose(self, error: Exception, turn: Turn | None = None) -> None:
        """The store is away, or the state is lost: refuse everything until it is back."""
        self._is_loaded = False
        # What was written and perhaps committed is looked up before anybody has an answer.
        is_uncertain = turn is not None and turn.is_written and isinstance(error, StoreUnavailable)
        before = self._outage.uncertain if self._outage is not None else None
        outage = self._outage = Outage(
            words=str(error) or type(error).__name__,
            since=self._clock.monotonic(),
            uncertain=turn if is_uncertain else before,
        )
        log.error("the store cannot be used, requests are refused until it can: %s", error)
        if turn is not None and not is_uncertain:
            turn.fail(StoreUnavailable(outage.words))
        self._inbox.refuse(lambda: StoreUnavailable(outage.words), reads=True)

    def _recover(self, outage: Outage) -> None:
        """One try to go on with what the store has, after a pause."""
        self._wait_in(outage)
        if self._worker.is_stopping:
            return
        happened = False
        try:
            # A write, because it waits behind whatever the database is still doing of the last one.
            with self._store.write() as tx:
                self._load(tx)
                happened = outage.uncertain is not None and outage.uncertain.was_committed(tx)
                tx.meta.put(PROOF, repr(self._clock.now()))
        except StoreSuperseded:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
            outage.failed(error, is_known=isinstance(error, StoreUnavailable))
            self._load_to_read(outage)
            return
        turn, self._outage = outage.uncertain, None
        self._inbox.accept()
        log.warning("the store can be used again after %.1f s", self._clock.monotonic() - outage.since)
        if turn is not None and happened:
            self._after_commit(turn)
        elif turn is not None:
            turn.fail(StoreUnavailable(outage.words))
        self.observe_soon()

    def _load_to_read(self, outage: Outage) -> None:
        """A store that cannot be written, because it is locked or full, can still be shown."""
        if not self._is_loaded:
            try:
                with self._store.read() as tx:
                    self._load(tx)
            except Exception as error:  # noqa: BLE001 - it is tried again
                log.debug("the store cannot be read: %r", error)
                return
        self._inbox.refuse(lambda: StoreUnavailable(outage.words), reads=False)

    def _wait_in(self, outage: Outage) -> None:
        """Until it is time for the next try. Those who only read are answered meanwhile."""
        until = self._clock.monotonic() + outage.pause_seconds
        while not self._worker.is_stopping and (rest := until - self._clock.monotonic()) > 0:
            reads = self._inbox.take_reads(min(rest, outage.pause_seconds))
            for read in reads:
                read.attend(self._state)
            outage.give_up_waiting(self._clock.monotonic())
            if not reads:
                return

    # ---------------------------------------------------------------- after a commit

    def _send(self, work: Work) -> None:
        """Hand what was decided to the engines. What cannot be handed over now is found again by reconciling."""
        for instruction in work.instructions:
            try:
                self._instruct(instruction)
            except StoreUnavailable as error:
                log.warning("%s is instructed at the next observation: %s", instruction.attempt_id, error)
            except Exception as error:
                log.exception("%s cannot be instructed", instruction.attempt_id)
                if isinstance(instruction, Launch):
                    words = f"it cannot be prepared: {error}"
                    refusal = RefuseEffect(attempt_id=instruction.attempt_id, message=words)
                    self._outbox_of(instruction).put(refusal)
        for cluster, effect in work.node_effects:
            if cluster in self._outboxes:
                self._outboxes[cluster].put(effect)
        if work.recorded_ends:
            for outbox in self._outboxes.values():
                outbox.put(ForgetEffect(attempt_ids=tuple(work.recorded_ends)))
        if work.deleted:
            for outbox in self._outboxes.values():
                outbox.put(DeleteEffect(attempts={job.id: _attempts(job) for job in work.deleted}))

    def _instruct(self, instruction: Instruction) -> None:
        """Touches no file of the job: the outbox's thread prepares its directories."""
        job, outbox = self._job_of(instruction), self._outbox_of(instruction)
        if isinstance(instruction, Launch):
            if job is not None and job.allocation is not None and job.attempt_id == instruction.attempt_id:
                spec = self._state.specs.get(job.id) or self._read_spec(job.id)
                env = {**self._workspace.env(job.id), **told_at_launch(self._policies.checkpoints, spec)}
                picture = self._state.snapshot
                outbox.put(LaunchEffect(order=launch_order(job, spec, picture.nodes, env, picture.volumes)))
        else:
            outbox.put(StopEffect(attempt_id=instruction.attempt_id, grace_seconds=instruction.grace_seconds))

    def _read_spec(self, job_id: str) -> JobSpec:
        with self._store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None, job_id
        self._state.keep_spec(job_id, record.spec)
        return record.spec

    def _job_of(self, instruction: Instruction) -> Job | None:
        return self._state.snapshot.jobs.get(job_of_attempt(instruction.attempt_id)[0])

    def _outbox_of(self, instruction: Instruction) -> Lanes:
        job = self._job_of(instruction)
        if isinstance(instruction, Stop) and instruction.cluster in self._outboxes:
            return self._outboxes[instruction.cluster]
        if job is not None and job.allocation is not None:
            node = self._state.snapshot.nodes.get(job.allocation.grants[0].node)
            if node is not None and node.cluster in self._outboxes:
                return self._outboxes[node.cluster]
        return next(iter(self._outboxes.values()))

    # ---------------------------------------------------------------- engines

    def _take_in(self, run: Callable[[Work], None]) -> None:
        """What an engine says: nobody waits for the answer."""
        request = Request(run=run, is_patient=True)
        request.answer.add_done_callback(_log_failure)
        self._inbox.put(request)

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
        if isinstance(error, StoreUnavailable):
            error = None  # that says nothing about the cluster
        _log_failure(answer)
        self._found(name, observed_at, f"what it reports cannot be taken: {error}" if error is not None else "")

    def _found(self, name: str, at: float, trouble: str) -> None:
        before = self.health.get(name)
        self.health[name] = ClusterHealth.seen(before, not trouble, trouble, at)
        if before is not None and not before.healthy and not trouble:
            self._outboxes[name].hurry()


# While the store is unavailable reports are dropped: the engines are observed again when it is back.
_log_failure = log_failure(
    log,
    "an engine's report could not be processed",
    ignored=(ControllerStopped, StoreUnavailable),
    with_traceback=True,
)


def _attempts(job: Job) -> tuple[str, ...]:
    return tuple(attempt_id(job.id, number) for number in range(1, job.attempt + 1))
