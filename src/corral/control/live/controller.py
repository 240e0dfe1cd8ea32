"""The controller: the only writer of the live system. One thread owns the state and runs all requests in turns.

A request is a use case to run (submit a job, cordon a node) or a report of an engine (an attempt has ended). Requests
arrive from other threads through the inbox. One turn takes all requests that have arrived, runs them in one database
transaction, plans which jobs start if something changed, writes everything, and commits. After the commit the callers
get their answers, the engines get their orders through the outboxes, and the new events are announced. Requests that
arrive together share one commit.

No request, plan, row or engine ends this thread:

- If a turn fails, nothing of it is committed: the state is loaded from the store again, and the turn runs again without
  the request or the cycle that failed. One bad request, or one queue that cannot be planned, harms no other.
- If the store is unavailable, requests are refused until it is back. Then the state is loaded, a commit with an unknown
  outcome is looked up in the store, and the engines are observed again.
- Only another server that has taken over the store ends the thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Concatenate, ParamSpec, TypeVar

from corral.control.errors import Refusal
from corral.control.fleet.cluster_health import ClusterHealth
from corral.control.launch.directories import JobDirectories
from corral.control.launch.dispatch import Dispatch
from corral.control.launch.steps import LaunchStage, LaunchStep, LaunchSteps
from corral.control.live.cluster_watch import EngineReports, Watch
from corral.control.live.inbox import Inbox, Read
from corral.control.live.outage import Outage
from corral.control.live.outbox import Backlog, lanes_of
from corral.control.live.planner import CycleFailed, Planner
from corral.control.live.reconcile import reconcile
from corral.control.live.state import State, load_state
from corral.control.live.turn import Request, RequestFailed, Turn
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker, WorkerStopped, log_failure
from corral.control.ports import (
    Checkpoints,
    Clock,
    Engine,
    EngineUnavailable,
    Fenced,
    FollowsNodes,
    LaunchOrder,
    Store,
    StoreSuperseded,
    StoreUnavailable,
    Transaction,
    Workspace,
)
from corral.control.records import EventRecord
from corral.control.scheduling.queues import follow_settings
from corral.control.system.housekeeping import EVERY_SECONDS, tidy
from corral.control.system.policies import Policies

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
        `checkpoints`, the order of a later attempt says which checkpoint to resume from.
        """
        self.engines = dict(engines)
        self.health: dict[str, ClusterHealth] = {}
        self.failure: BaseException | None = None
        self._store = store
        self._clock = clock
        self._policies = policies
        self._workspace = workspace
        self._launch_steps = LaunchSteps({})
        self._announce = announce
        self._planner = Planner(clock, tidy_seconds, observe_cycle)
        self._state = State(policies)
        #: whether the state is what the store has; a turn that failed leaves it half changed
        self._is_loaded = False
        self._term = 0
        #: set while the store is away
        self._outage: Outage | None = None
        self._inbox = Inbox(clock)
        self._reports = EngineReports(clock, self._inbox.put, self.observe_soon, _log_failure)
        self._tidied_at = clock.monotonic() - EVERY_SECONDS
        self._outboxes = {
            name: lanes_of(
                name,
                engine,
                workspace,
                self._reports.launch_refused,
                checkpoints,
                partial(self._prepare_launch, name),
                self._reports.launch_not_taken,
                self._reports.launch_failed,
            )
            for name, engine in self.engines.items()
        }
        self._dispatch = Dispatch(store, policies, workspace, self._outboxes)
        self._watches = {
            name: Watch(name, partial(self._observe, name), observe_seconds, clock) for name in self.engines
        }
        self._worker = Worker("controller", self._beat, every_seconds=0.0, interrupt=self._refuse_requests)

    # ---------------------------------------------------------------- outside

    def start(self, launch_steps: Mapping[LaunchStage, LaunchStep] = MappingProxyType({})) -> None:
        """Load the state, reconcile it with what the engines observe, and start all threads. `launch_steps` prepare
        each launch, after the job's directories are made. Raises StoreUnavailable."""
        self._launch_steps = LaunchSteps({LaunchStage.DIRECTORIES: JobDirectories(self._workspace), **launch_steps})
        fenced = [engine for engine in self.engines.values() if isinstance(engine, Fenced)]
        leadership = self._store.take_over(above=max((engine.term_seen() for engine in fenced), default=0))
        self._term = leadership.term
        for led in fenced:
            led.lead(leadership)
        with self._store.read() as tx:
            self._load(tx)
        self.execute(follow_settings).add_done_callback(_log_failure)
        for name, engine in self.engines.items():
            engine.subscribe(self._reports.status_changed)
            if isinstance(engine, FollowsNodes):
                engine.follow_nodes(self._watches[name].observe_soon)
        self._observe_all()
        self._turn(self._inbox.take_all())
        for outbox in self._outboxes.values():
            outbox.start()
        self._worker.start()
        for watch in self._watches.values():
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
        """Observe the engines now, before the next regular time."""
        for watch in self._watches.values():
            watch.observe_soon()

    @property
    def is_alive(self) -> bool:
        return self.failure is None and not self._worker.is_stopping and self._worker.is_alive

    @property
    def outage(self) -> str:
        """Why the store cannot be used now; empty while it can."""
        outage = self._outage
        return "" if outage is None else outage.message

    @property
    def term(self) -> int:
        """The term of this server; 0 before the start."""
        return self._term

    def backlogs(self) -> dict[str, Backlog]:
        """Effects that wait for the engines, by cluster."""
        return {name: outbox.backlog() for name, outbox in self._outboxes.items()}

    def stop(self) -> None:
        """End all threads. Attempts keep running; missing effects are found again at the next start."""
        for watch in self._watches.values():
            watch.ask_to_stop()
        self._worker.stop()
        for watch in self._watches.values():
            watch.stop()
        for outbox in self._outboxes.values():
            outbox.close()

    def _refuse_requests(self) -> None:
        self._inbox.close(lambda: ControllerStopped("the server is stopping"))

    # ---------------------------------------------------------------- the controller's thread

    def _beat(self) -> None:
        """One round: run the requests that have arrived, or try to recover from an outage of the store."""
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
            self._refuse_requests()
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
        """Run requests, and a cycle if one is due. If the turn fails, run it again without the part that failed."""
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
                # 2. The request that failed, or was refused after it had changed something, is left out.
                if not isinstance(failure.cause, Refusal):
                    log.error("a request failed: %s", failure, exc_info=failure.cause)
                failure.request.fail(failure.cause)
                requests = [request for request in requests if request is not failure.request]
            except Exception as error:
                # 3. The cause is unknown: run the turn again without a cycle, and then each request alone.
                log.warning("a turn of %d requests failed: %s", len(requests), error, exc_info=error)
                if turn.digest is None:
                    self._one_by_one(turn, error)
                    return
                planner, cycle_failure = None, CycleFailed(turn.digest, error)
            if not self._reload(turn):
                return
        self._after_commit(turn)
        if cycle_failure is not None:
            self._planner.failed(self._state, cycle_failure)

    def _one_by_one(self, turn: Turn, error: Exception) -> None:
        """Runs the requests of a failed turn one by one, without a cycle."""
        if not self._reload(turn):
            return
        if len(turn.requests) == 1:
            turn.requests[0].fail(error)
            return
        for request in turn.requests:
            self._turn([request])

    def _after_commit(self, turn: Turn) -> None:
        assert turn.work is not None
        self._dispatch.send(self._state, turn.work.effects)
        for request in turn.requests:
            request.committed(self._state)
        if turn.events:
            try:
                self._announce(turn.events)
            except Exception:
                # The events are committed: readers of the event stream find them in the store.
                log.exception("committed events could not be announced")

    # ---------------------------------------------------------------- recovery

    def _load(self, tx: Transaction) -> None:
        state = load_state(tx, self._policies)
        self._planner.note(state)
        self._state, self._is_loaded = state, True

    def _reload(self, turn: Turn) -> bool:
        """Undo the changes of a failed turn to the state. False if the store is unavailable; then the requests of the
        turn are refused."""
        try:
            with self._store.read() as tx:
                self._load(tx)
            if turn.unstored is not None:
                self._state.restore(turn.unstored)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no state to work with
            self._lose(error, turn)
            return False
        return True

    def _lose(self, error: Exception, turn: Turn | None = None) -> None:
        """The store is unavailable, or the state is lost: refuse everything until the state is loaded again."""
        self._is_loaded = False
        # A turn that was written and perhaps committed is looked up in the store before its callers get an answer.
        is_uncertain = turn is not None and turn.is_written and isinstance(error, StoreUnavailable)
        before = self._outage.uncertain if self._outage is not None else None
        outage = self._outage = Outage(
            message=str(error) or type(error).__name__,
            since=self._clock.monotonic(),
            uncertain=turn if is_uncertain else before,
        )
        log.error("the store cannot be used, requests are refused until it can: %s", error)
        if turn is not None and not is_uncertain:
            turn.fail(StoreUnavailable(outage.message))
        self._inbox.refuse(lambda: StoreUnavailable(outage.message), reads=True)

    def _recover(self, outage: Outage) -> None:
        """Wait, then try once to load the state from the store and to continue."""
        self._wait_in(outage)
        if self._worker.is_stopping:
            return
        happened = False
        try:
            # A write, because it waits until the database has finished an earlier write of this server.
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
            turn.fail(StoreUnavailable(outage.message))
        self.observe_soon()

    def _load_to_read(self, outage: Outage) -> None:
        """Serve reads while the store can be read but not written, because it is locked or full."""
        if not self._is_loaded:
            try:
                with self._store.read() as tx:
                    self._load(tx)
            except Exception as error:  # noqa: BLE001 - it is tried again
                log.debug("the store cannot be read: %r", error)
                return
        self._inbox.refuse(lambda: StoreUnavailable(outage.message), reads=False)

    def _wait_in(self, outage: Outage) -> None:
        """Wait until the next try, and answer requests that only read meanwhile."""
        until = self._clock.monotonic() + outage.pause_seconds
        while not self._worker.is_stopping and (rest := until - self._clock.monotonic()) > 0:
            reads = self._inbox.take_reads(min(rest, outage.pause_seconds))
            for read in reads:
                read.attend(self._state)
            outage.give_up_waiting(self._clock.monotonic())
            if not reads:
                return

    # ---------------------------------------------------------------- engines

    def _prepare_launch(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        return self._launch_steps.prepare(cluster, order)

    def _observe_all(self) -> None:
        """At the start, all at once: the one that answers last decides how long it takes."""
        with ThreadPoolExecutor(max(1, len(self.engines)), thread_name_prefix="first-look") as looks:
            list(looks.map(self._observe, self.engines))

    def _observe(self, name: str) -> bool:
        """Whether the cluster answered. A failure of one cluster does not affect the others."""
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
        self._found(name, observed_at, f"its report cannot be processed: {error}" if error is not None else "")

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
