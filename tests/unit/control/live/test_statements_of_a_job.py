"""The cost of a job for the database, counted: statements of each of its transactions, and pages that they write.

Times depend on the machine; these numbers do not. Jobs that share a transaction share its statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from corral.control.jobs import jobs
from corral.control.live.cycle import run_cycle
from corral.control.live.reconcile import report
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.people import budgets
from corral.control.people.user_accounts import create_user, for_present_user
from corral.control.ports import AttemptPhase, AttemptStatus
from corral.core.model import EndReason, Job
from corral.core.people.budgets import Price
from tests.unit.control.world import ANN, ROOT, Desk, draft

#: With BEGIN and the check of the term; the counters of ids, and one statement per kind of row.
SUBMIT_AND_PLAN = 13
UP = 7
END = 9
#: Pages of 4 KiB that each transaction of one job writes, with those of the indexes.
PAGES = {"submit and plan": 31, "up": 12, "end": 17}
_FRAME_BYTES = 24 + 4096
_LOG_HEAD_BYTES = 32


@contextmanager
def counted(desk: Desk) -> Iterator[list[str]]:
    """The statements that the store's writer executes within the block."""
    writer: Any = desk.store._database.writer  # type: ignore[attr-defined]
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(writer, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(writer, "before_cursor_execute", note)


def submit_and_plan(desk: Desk, count: int) -> list[Job]:
    """Submits jobs and plans in one turn of the controller: requests, then a cycle."""

    def turn(work: Work) -> list[str]:
        records = jobs.submit(work, ANN, [draft() for _ in range(count)])
        run_cycle(work, desk.journal)
        return [record.job.id for record in records]

    return [desk.job(job_id) for job_id in desk.do(turn)]


def reported(desk: Desk, started: list[Job], phase: AttemptPhase, reason: EndReason | None = None) -> None:
    """Reports all these jobs like an engine, in one turn."""

    def turn(work: Work) -> None:
        for job in started:
            exit_code = 0 if phase is AttemptPhase.ENDED else None
            status = AttemptStatus(
                attempt_id=job.attempt_id, phase=phase, at=desk.now, reason=reason, exit_code=exit_code
            )
            report(work, status)

    desk.do(turn)


@pytest.mark.parametrize("count", [1, 7])
def test_each_transaction_of_a_job_takes_few_statements_however_many_jobs_share_it(desk: Desk, count: int) -> None:
    submit_and_plan(desk, 1)  # the first entry of the journal is a whole snapshot
    desk.now += 1.0
    with counted(desk) as planned:
        started = submit_and_plan(desk, count)
    desk.now += 1.0
    with counted(desk) as up:
        reported(desk, started, AttemptPhase.RUNNING)
    desk.now += 1.0
    with counted(desk) as ended:
        reported(desk, started, AttemptPhase.ENDED, EndReason.EXIT_CODE)
    assert {desk.job(job.id).state.value for job in started} == {"completed"}
    for limit, statements in ((SUBMIT_AND_PLAN, planned), (UP, up), (END, ended)):
        assert len(statements) <= limit, "\n".join(statements)


def test_a_job_needs_no_statement_that_is_built_by_sqlalchemy(desk: Desk) -> None:
    """A context and a result for each statement take ten times as long as the statement itself."""
    desk.do(create_user, ROOT, "ann")
    writer: Any = desk.store._database.writer  # type: ignore[attr-defined]
    built: list[str] = []

    def note(_connection: Any, statement: Any, *_: Any) -> None:
        built.append(str(statement))

    def turn(work: Work) -> list[str]:
        records = for_present_user(work, ANN, jobs.submit, ANN, [draft()])
        run_cycle(work, desk.journal)
        return [record.job.id for record in records]

    submit_and_plan(desk, 1)
    event.listen(writer, "before_execute", note)
    try:
        started = [desk.job(job_id) for job_id in desk.do(turn)]
        reported(desk, started, AttemptPhase.RUNNING)
        reported(desk, started, AttemptPhase.ENDED, EndReason.EXIT_CODE)
    finally:
        event.remove(writer, "before_execute", note)
    assert {desk.job(job.id).state.value for job in started} == {"completed"}
    assert not built, "\n".join(built)


def written_pages(desk: Desk) -> int:
    """The pages in SQLite's log since its beginning: those with the salt of its head."""
    log = Path(f"{desk.store._database.place}-wal").read_bytes()  # type: ignore[attr-defined]
    frames = range(_LOG_HEAD_BYTES, len(log), _FRAME_BYTES)
    return sum(1 for _ in takewhile(lambda at: log[at + 8 : at + 16] == log[16:24], frames))


def test_a_job_that_starts_and_ends_writes_no_index_of_what_stays_the_same(desk: Desk) -> None:
    for _ in range(3):
        (job,) = submit_and_plan(desk, 1)  # the first entry of the journal is a whole snapshot
        reported(desk, [job], AttemptPhase.RUNNING)
        reported(desk, [job], AttemptPhase.ENDED, EndReason.EXIT_CODE)
    before, pages = written_pages(desk), {}
    desk.now += 1.0
    (job,) = submit_and_plan(desk, 1)
    pages["submit and plan"] = written_pages(desk) - before
    reported(desk, [job], AttemptPhase.RUNNING)
    pages["up"] = written_pages(desk) - before - sum(pages.values())
    reported(desk, [job], AttemptPhase.ENDED, EndReason.EXIT_CODE)
    pages["end"] = written_pages(desk) - before - sum(pages.values())
    assert all(pages[step] <= limit for step, limit in PAGES.items()), pages


def test_without_prices_and_budgets_accounting_costs_no_statement(desk: Desk) -> None:
    (job,) = submit_and_plan(desk, 1)
    with counted(desk) as statements:
        reported(desk, [job], AttemptPhase.RUNNING)
        reported(desk, [job], AttemptPhase.ENDED, EndReason.EXIT_CODE)
        desk.do(budgets.settle)
    assert [text for text in statements if "ledger" in text or "budgets" in text or "gpu_prices" in text] == []
    desk.do(budgets.set_price, SYSTEM, "A10", Price())
    (job,) = submit_and_plan(desk, 1)
    desk.now += 1.0
    reported(desk, [job], AttemptPhase.RUNNING)
    desk.now += 1.0
    with counted(desk) as statements:
        reported(desk, [job], AttemptPhase.ENDED, EndReason.EXIT_CODE)
    assert len([text for text in statements if "ledger" in text]) == 1, "all entries of a turn in one statement"
    assert len(statements) <= END + 1


@pytest.mark.parametrize("read", [lambda desk: desk.state, lambda desk: desk.job("j-1")])
def test_a_turn_without_changes_writes_nothing(desk: Desk, read: Callable[[Desk], object]) -> None:
    submit_and_plan(desk, 1)
    read(desk)
    with counted(desk) as statements:
        desk.do(lambda work: None)
    assert [text for text in statements if not text.startswith(("BEGIN", "SELECT"))] == []
