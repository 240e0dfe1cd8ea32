"""The controller of a server that stands by: it answers reads from a state that follows the store, and changes nothing.

The event log says what changed. Jobs that an event names are read again at once. Every other event asks for the whole
state, which is loaded on another thread and at most a tenth of the time; the same happens every half minute, in case a
change was recorded without an event. So a read costs nothing, and a change of a job costs the reading of that job.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.inbox import Read
from corral.control.live.state import State, load_state
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker
from corral.control.ports import Clock, Store, StoreUnavailable, Transaction, Workspace
from corral.control.records import AttemptRecord, EventRecord
from corral.control.system.policies import Policies
from corral.core.model import Job
from corral.core.snapshot.changes import Change, DropJob, PutJob

log = logging.getLogger("corral.control")

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: Without a notice of a commit the event log is read that often.
LOOK_SECONDS = 0.5
#: The whole state is loaded that often even if nothing seems to have happened …
NET_SECONDS = 30.0
#: … and never more often than this, nor for more than a tenth of the time.
MIN_LOAD_SECONDS = 0.2
REST_FACTOR = 9.0
_BATCH_EVENTS = 1000
_JOB = re.compile(r"j-\d+")


class NotLeading(StoreUnavailable):
    """This server is a standby: only the leader makes changes."""


class Follower(Controller):
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        policies: Policies,
        workspace: Workspace,
        announce: Callable[[Sequence[EventRecord]], None],
    ) -> None:
        """`announce` is called with the events that were followed, in order and each once."""
        super().__init__(store=store, engines={}, clock=clock, policies=policies, workspace=workspace)
        self._announce_followed = announce
        #: the last event that the state has, and the last one that was announced
        self._place = 0
        self._announced = 0
        self._follows_now = True
        self._looked_at = clock.monotonic() - LOOK_SECONDS
        #: when the store was last followed successfully
        self._followed_at = clock.monotonic()
        self._trouble = ""
        #: the controller that answers since this server leads
        self._successor: Controller | None = None
        self._worker = Worker("follower", self._beat, every_seconds=0.0, interrupt=self._refuse_requests)
        self._loader = Worker("follower-state", self._load_whole, every_seconds=NET_SECONDS, first_after=NET_SECONDS)

    def follow(self) -> None:
        """Load the state and begin to follow. Raises StoreUnavailable."""
        self._state, self._place = self._loaded()
        self._announced = self._place
        self._worker.start()
        self._loader.start()

    def stop(self) -> None:
        self._loader.ask_to_stop()
        self._worker.stop()
        self._loader.stop()

    def execute(
        self, use_case: Callable[Concatenate[Work, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Answer]:
        if self._successor is not None:
            return self._successor.execute(use_case, *args, **kwargs)
        answer: Future[Answer] = Future()
        answer.set_exception(NotLeading("this server stands by, and there is no leader that could make changes"))
        return answer

    def inspect(
        self, read: Callable[Concatenate[State, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Answer]:
        """A read that was not answered when this server became the leader is answered by the leader's controller."""
        if self._successor is not None:
            return self._successor.inspect(read, *args, **kwargs)
        answer: Future[Answer] = Future()

        def pass_on(done: Future[Answer]) -> None:
            if isinstance(done.exception(), ControllerStopped) and self._successor is not None:
                self._successor.inspect(read, *args, **kwargs).add_done_callback(lambda later: _copy(later, answer))
            else:
                _copy(done, answer)

        super().inspect(read, *args, **kwargs).add_done_callback(pass_on)
        return answer

    def hand_over(self, controller: Controller) -> None:
        """Hands over to the controller when this server becomes the leader: open answers, such as streams, continue
        with it.
        """
        last = self.caught_up()
        self._successor = controller
        last.result()
        self.stop()

    def committed(self) -> None:
        """The leader has committed something: follow it soon. From any thread."""
        self._follows_now = True
        self._inbox.put_read(Read(run=lambda state: None))

    def caught_up(self) -> Future[Any]:
        """Done when everything is followed that was committed before this call."""
        self._follows_now = True
        return self.inspect(lambda state: None)

    @property
    def outage(self) -> str:
        return self._trouble

    @property
    def place(self) -> int:
        """The last event that was followed."""
        return self._place

    def behind_seconds(self) -> float:
        """The seconds since the store was last followed."""
        return self._clock.monotonic() - self._followed_at

    # ---------------------------------------------------------------- the follower's thread

    def _beat(self) -> None:
        due = self._looked_at + LOOK_SECONDS - self._clock.monotonic()
        reads = self._inbox.take_reads(max(0.001, due)) if due > 0 and not self._follows_now else []
        if self._follows_now or self._clock.monotonic() >= self._looked_at + LOOK_SECONDS:
            # Reads that arrived before are answered after it: they may wait for a commit that they know of.
            reads += self._inbox.take_reads(0.0)
            self._follows_now = False
            self._looked_at = self._clock.monotonic()
            self._follow_events()
        for read in reads:
            read.attend(self._state)

    def _follow_events(self) -> None:
        try:
            with self._store.read() as tx:
                events, jobs, attempts = _news(tx, self._place)
            self._followed_at, self._trouble = self._clock.monotonic(), ""
        except StoreUnavailable as error:
            if not self._trouble:
                log.warning("the store cannot be followed: %s", error)
            self._trouble = str(error) or "the store cannot be read"
            return
        if not events:
            return
        self._apply(events, jobs, attempts)
        self._place = events[-1].id
        fresh = [event for event in events if event.id > self._announced]
        if fresh:
            self._announced = fresh[-1].id
            self._announce_followed(fresh)

    def _apply(
        self, events: Sequence[EventRecord], jobs: dict[str, Job | None], attempts: dict[str, AttemptRecord]
    ) -> None:
        if any(not _JOB.fullmatch(event.subject) for event in events):
            self._loader.wake()
        try:
            apply_jobs(self._state, jobs, attempts)
        except (KeyError, ValueError, AssertionError) as error:
            # A change that had no event came before, such as of a node: the whole state has both.
            log.info("the state of this standby is loaded again: %r", error)
            self._loader.wake()

    # ---------------------------------------------------------------- the whole state

    def _loaded(self) -> tuple[State, int]:
        with self._store.read() as tx:
            place = tx.events.last_id()
            state = load_state(tx, self._policies)
        # The state of a job that has ended before is not known here when it is deleted: the store counts the jobs.
        state.job_counts = None
        return state, place

    def _load_whole(self) -> float:
        begun = self._clock.monotonic()
        try:
            state, place = self._loaded()
        except StoreUnavailable as error:
            log.debug("the state cannot be loaded: %s", error)
            return LOOK_SECONDS
        self.inspect(lambda _: self._replace(state, place)).result()
        took = self._clock.monotonic() - begun
        self._loader.pause(max(MIN_LOAD_SECONDS, REST_FACTOR * took))
        return NET_SECONDS

    def _replace(self, state: State, place: int) -> None:
        """Continue with a state that was loaded; events since then are applied to it."""
        self._state = state
        if place != self._place:
            self._place, self._follows_now = min(place, self._place), True


def _copy(done: Future[Answer], answer: Future[Answer]) -> None:
    """A caller that has left has cancelled its answer."""
    with suppress(InvalidStateError):
        if (error := done.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(done.result())


def _news(tx: Transaction, place: int) -> tuple[list[EventRecord], dict[str, Job | None], dict[str, AttemptRecord]]:
    """The events after a place, and the jobs that they name as they are now: None for those that are gone."""
    events: list[EventRecord] = []
    while batch := tx.events.after(events[-1].id if events else place, _BATCH_EVENTS):
        events += batch
        if len(batch) < _BATCH_EVENTS:
            break
    named = list(dict.fromkeys(event.subject for event in events if _JOB.fullmatch(event.subject)))
    found = tx.jobs.some(named) if named else {}
    held = [job.attempt_id for job in found.values() if job.state.holds_resources]
    return events, {job_id: found.get(job_id) for job_id in named}, tx.attempts.get(held) if held else {}


def apply_jobs(state: State, jobs: dict[str, Job | None], attempts: dict[str, AttemptRecord]) -> None:
    """Put jobs as they are now into the state. Resources are released before they are given to others."""
    drops: list[Change] = []
    puts: list[PutJob] = []
    for job_id, job in jobs.items():
        before = state.snapshot.jobs.get(job_id)
        if before is not None and before.attempt_id in state.attempts:
            del state.attempts[before.attempt_id]
        state.dependents.follow(before, job)
        if job is not None and job.state.is_active:
            puts.append(PutJob(job=job))
            if job.attempt_id in attempts:
                state.attempts[job.attempt_id] = attempts[job.attempt_id]
        elif before is not None:
            drops.append(DropJob(id=job_id))
    # A job whose allocation changes is dropped first, so that no GPU is held twice on the way.
    moved = [
        DropJob(id=put.job.id)
        for put in puts
        if (known := state.snapshot.jobs.get(put.job.id)) is not None and known.allocation != put.job.allocation
    ]
    state.apply([*drops, *moved, *puts])
