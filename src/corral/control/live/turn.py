"""One turn: requests in one transaction, with a cycle if one is due; and whether a commit that was cut short happened.

A turn changes the state in memory as it goes. If it raises, nothing was committed, or it is not known, and the state
must be loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from corral.control.errors import Refusal
from corral.control.live.planner import Planner
from corral.control.live.state import State, as_committed
from corral.control.live.unit_of_work import Work
from corral.control.ports import Store, StoreUnavailable, Transaction
from corral.control.records import EventRecord


@dataclass(slots=True, eq=False)
class Request:
    run: Callable[[Work], Any]
    answer: Future[Any] = field(default_factory=Future)
    result: Any = None
    refusal: Refusal | None = None
    #: nobody waits for the answer
    is_patient: bool = False

    def attend(self, work: Work) -> None:
        """Raises RequestFailed if it is neither done nor properly refused."""
        steps, self.result, self.refusal = work.steps, None, None
        try:
            self.result = self.run(work)
        except Refusal as refusal:
            if work.steps != steps:
                raise RequestFailed(self, RuntimeError(f"refused half way: {refusal}")) from refusal
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
        """Unless it has its answer already."""
        with suppress(InvalidStateError):
            self.answer.set_exception(error)


class RequestFailed(Exception):
    """One request of a turn has a bug; the others do not."""

    def __init__(self, request: Request, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.request = request
        self.cause = cause


@dataclass(slots=True, kw_only=True)
class Turn:
    requests: Sequence[Request]
    work: Work | None = None
    events: list[EventRecord] = field(default_factory=list)
    #: of the picture that was planned from, if a cycle was run
    digest: str | None = None
    #: everything was written, and nothing but the commit is left
    is_written: bool = False

    def run(self, store: Store, state: State, now: float, planner: Planner | None) -> None:
        """Without a planner, no cycle is run. Returns when it is committed."""
        with store.write() as tx:
            work = self.work = Work(tx, state, now)
            for request in self.requests:
                request.attend(work)
            if planner is not None and planner.is_due(state):
                self.digest = state.digest.hex()
                planner.run(work)
            self.events = work.flush()
            self.is_written = True

    def was_committed(self, tx: Transaction) -> bool:
        """Whether a commit that was cut short happened: what people ask for, and what is planned, leaves a line in the
        audit log, and no other server writes one under the same number. A turn without such a line wrote nothing that
        is not measured or decided again."""
        if not self.events:
            return False
        stored = tx.events.after(self.events[-1].id - 1, 1)
        return [_line(event) for event in stored] == [_line(self.events[-1])]

    def fail(self, error: BaseException) -> None:
        for request in self.requests:
            request.fail(error)


def _line(event: EventRecord) -> tuple[Any, ...]:
    return (event.id, event.at, event.actor, event.action, event.subject)
