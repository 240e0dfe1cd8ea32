"""Answers questions about the past from the journal, one at a time, beside the live system.

A short part of the journal is replayed at once. A long one is replayed by a process with a low priority, so that it
delays no other request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corral.control.errors import Missing, Refusal
from corral.control.live.controller import Controller
from corral.control.live.journal import JournalBroken
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Store, Transaction
from corral.control.records import CycleRecord, JobRecord
from corral.control.whatif import time_travel
from corral.control.whatif.time_travel import PastAnswer, Tail, clock
from corral.core.model import Job
from corral.files.memory_limit import limit_memory
from corral.server.events.visibility import JobIdFilter
from corral.server.schemas.base import rfc3339
from corral.server.schemas.scheduling.explain import CycleView, WhyView, why_view

log = logging.getLogger("corral.server.whatif.time_travel")

#: Stored size of the journal up to which a replay takes a few hundredths of a second.
SHORT_BYTES = 100_000
LONGEST_SECONDS = 120.0
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    run: Sequence[CycleRecord]
    at: float
    tail: Tail
    job: Job


class TimeTravel:
    def __init__(self, store: Store, controller: Controller, *, short_bytes: int = SHORT_BYTES) -> None:
        self._store = store
        self._controller = controller
        self._short_bytes = short_bytes
        self._turn = threading.Lock()

    async def why(self, caller: Caller, at: float, now: float, find: Callable[[Transaction], JobRecord]) -> WhyView:
        """`find(tables)` returns the job in question, if the caller may see it."""
        return await asyncio.to_thread(self._why, caller, at, now, find)

    def _why(self, caller: Caller, at: float, now: float, find: Callable[[Transaction], JobRecord]) -> WhyView:
        # Taken before the entries are read, so that an entry that is written in between is detected.
        tail = self._controller.inspect(time_travel.tail_of).result(_ANSWER_SECONDS)
        with self._turn:
            with self._store.read() as tables:
                job = find(tables).job
                run = time_travel.read_run(tables, at, now)
            question = Question(run=run, at=at, tail=tail, job=job)
            is_short = sum(len(cycle.changes) for cycle in run) <= self._short_bytes
            try:
                found = answer(question) if is_short else _answered_elsewhere(question)
            except JournalBroken as error:
                log.warning("the journal cannot be read back: %s", error)
                raise Missing(f"the journal cannot be read back to that moment: {error}", field="at") from error
        id_filter = JobIdFilter(caller=caller, jobs=found.mentioned)
        shown = why_view(found.job, id_filter.over(found.explanation), id_filter)
        return shown.model_copy(update={"at": rfc3339(at), "cycle": cycle_view(found)})


def answer(question: Question) -> PastAnswer:
    """Raises Refusal or JournalBroken."""
    snapshot = time_travel.snapshot_at(question.run, question.at, question.tail)
    return time_travel.why_then(snapshot, question.at, question.job)


def cycle_view(found: PastAnswer) -> CycleView:
    text = f"as of cycle {found.cycle_id} at {clock(found.cycle_at)}"
    if found.known_until > found.cycle_at:
        text += f", with what happened up to {clock(found.known_until)}"
    if found.uncertain:
        text += f"; {found.uncertain} later changes may have been made by then and are not in it"
    return CycleView(
        id=found.cycle_id,
        at=rfc3339(found.cycle_at),
        exact=not found.uncertain,
        known_until=rfc3339(found.known_until),
        words=text,
    )


# ------------------------------------------------------------------------------------------------ the other process


def _answered_elsewhere(question: Question) -> PastAnswer:
    """The same answer or error from a separate process; the format is private to both sides."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "corral.server.whatif.time_travel"],
            input=pickle.dumps(question),
            capture_output=True,
            timeout=LONGEST_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"reading the journal back took longer than {LONGEST_SECONDS:.0f} seconds", field="at") from error
    found = pickle.loads(done.stdout)
    if isinstance(found, PastAnswer):
        return found
    if isinstance(found, JournalBroken):
        raise found
    kind, detail, field, numbers = found
    raise kind(detail, field=field, **numbers)


def main() -> None:
    os.nice(19)
    limit_memory()
    question = pickle.load(sys.stdin.buffer)
    found: object
    try:
        found = answer(question)
    except JournalBroken as error:
        found = error
    except Refusal as refusal:
        found = (type(refusal), refusal.detail, refusal.field, dict(refusal.numbers))
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    main()
