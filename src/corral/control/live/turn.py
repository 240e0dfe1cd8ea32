"""One turn: several requests in one transaction, followed by a scheduling cycle if one is due.

Requests of one turn share a commit, because a commit waits for the disk. Still each request is atomic: either all its
changes are committed, or none. A use case may refuse a request at any point, also after it has changed something. A
refusal that changed nothing is answered after the commit, like a result. After any other refusal, and after any other
exception, the whole turn is rolled back: `run` raises RequestFailed, and the controller loads the state from the store
and runs the turn again without that request. So a refused request leaves the store and the state as they were, and a
request that succeeds needs no savepoint in the database.

A turn changes the state in memory as it runs. If `run` raises, nothing was committed, or the outcome of the commit is
unknown, and the state must be loaded again. `was_committed` finds out the outcome later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from corral.control.errors import Refusal
from corral.control.live.planner import Planner
from corral.control.live.state import State, Unstored, as_committed
from corral.control.live.unit_of_work import Work
from corral.control.ports import Store, StoreUnavailable, Transaction
from corral.control.records import EventRecord


@dataclass(slots=True, eq=False)
class Request:
    run: Callable[[Work], Any]
    answer: Future[Any] = field(default_factory=Future)
    result: Any = None
    refusal: Refusal | None = None
    #: no caller waits for the answer
    is_patient: bool = False

    def attend(self, work: Work) -> None:
        """Run the request. Raises RequestFailed if its changes must be undone."""
        changes, self.result, self.refusal = work.changes, None, None
        try:
            self.result = self.run(work)
        except Refusal as refusal:
            if work.changes != changes:
                raise RequestFailed(self, refusal) from refusal
            self.refusal = refusal
        except StoreUnavailable:
            raise
        except Exception as error:
            raise RequestFailed(self, error) from error

    def committed(self, state: State) -> None:
        with suppress(InvalidStateError):
            if self.refusal is not None:
                self.answer.set_exception(self.refusal)
            else:
                self.answer.set_result(as_committed(state, self.result))

    def fail(self, error: BaseException) -> None:
        """Answer with an error, unless the request has an answer already."""
        with suppress(InvalidStateError):
            self.answer.set_exception(error)


class RequestFailed(Exception):
    """One request of a turn raised an exception, or was refused after it had changed something."""

    def __init__(self, request: Request, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.request = request
        self.cause = cause


@dataclass(slots=True, kw_only=True)
class Turn:
    requests: Sequence[Request]
    work: Work | None = None
    events: list[EventRecord] = field(default_factory=list)
    #: digest of the snapshot that the cycle planned from; None if no cycle was run
    digest: str | None = None
    #: the parts of the state that the store does not have, from before the turn
    unstored: Unstored | None = None
    #: everything was written, and only the commit is missing
    is_written: bool = False

    def run(self, store: Store, state: State, now: float, planner: Planner | None) -> None:
        """Run the requests, and a cycle if `planner` is given and says that one is due. Returns after the commit."""
        self.unstored = state.unstored()
        with store.write() as tx:
            work = self.work = Work(tx, state, now)
            for request in self.requests:
                request.attend(work)
            if planner is not None and planner.is_due(state):
                self.digest = state.digest_text()
                planner.run(work)
            self.events = work.flush()
            self.is_written = True

    def was_committed(self, tx: Transaction) -> bool:
        """Whether a commit with an unknown outcome has succeeded: its last audit event is in the store. Every request
        of a user and every plan adds an audit event, and no other server writes one with the same number. A turn
        without an audit event wrote only data that is measured or decided again."""
        if not self.events:
            return False
        stored = tx.events.after(self.events[-1].id - 1, 1)
        return [_line(event) for event in stored] == [_line(self.events[-1])]

    def fail(self, error: BaseException) -> None:
        for request in self.requests:
            request.fail(error)


def _line(event: EventRecord) -> tuple[Any, ...]:
    return (event.id, event.at, event.actor, event.action, event.subject)
