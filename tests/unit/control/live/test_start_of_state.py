"""The cost of a start for the database and the processor, counted: it must not grow with the number of waiting jobs by
more than the rows themselves.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from corral.control.live.journal import replay
from corral.control.live.state import State, load_state
from corral.core.snapshot import codec, journal
from tests.unit.control.world import Desk, draft


def _loaded(desk: Desk) -> tuple[State, int]:
    """The state as a starting server has it, and how many statements that took."""
    reader: Any = desk.store._database.reader  # type: ignore[attr-defined]
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(reader, "before_cursor_execute", note)
    try:
        with desk.store.read() as tx:
            state = load_state(tx, desk.state.policies)
    finally:
        event.remove(reader, "before_cursor_execute", note)
    return state, len(statements)


def test_the_statements_of_a_start_do_not_grow_with_the_queue(desk: Desk) -> None:
    desk.submit(*(draft(f"first-{index}", gpus=1) for index in range(3)))
    _, few = _loaded(desk)
    desk.submit(*(draft(f"later-{index}", gpus=1) for index in range(300)))
    state, many = _loaded(desk)
    assert len(state.snapshot.jobs) == 303
    assert many == few


def test_no_job_is_written_as_text_before_the_first_entry_of_the_journal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def counted(value: Any) -> str:
        written.append(type(value).__name__)
        return codec.dumps(value)

    monkeypatch.setattr(journal, "dumps", counted)
    desk.submit(*(draft(f"waits-{index}", gpus=1) for index in range(50)))
    state, _ = _loaded(desk)
    assert written.count("Job") == 0
    assert (state.digest, state.digest_text()) == (None, "")
    started = desk.cycle()
    assert started
    with desk.store.read() as tx:
        (entry,) = tx.cycles.since_base()
    assert entry.is_base
    assert written.count("Job") == 50 + len(started), "each job once, and from then on what changes"
    assert [one.decided == one.recorded for one in replay([entry])] == [True]
