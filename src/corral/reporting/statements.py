"""Statements of accounts as CSV, and as a document that is drawn as a PDF."""

from __future__ import annotations

import csv as csv_module
import io
from collections import defaultdict
from datetime import UTC, datetime

from corral.control.people.budgets import Statement, StatementLine, lines_of
from corral.control.records import EntryKind
from corral.control.reports import report_texts as texts
from corral.control.reports.report_data import Span
from corral.core.model import WHOLE
from corral.core.people.budgets import MICRO, Unit, amount_text
from corral.reporting.csv import harmless
from corral.reporting.document import Document, Row, Section, Table, Tile

COLUMNS = ("kind", "since", "until", "attempt", "job_name", "user", "gpu_model", "gpus", "amount", "unit", "note")

ABOUT = (
    "Each attempt of a job is charged for the time that it held GPUs, at the price of their model at that time. Work "
    "that was lost because a node or GPU failed, or because the job was preempted, is not charged, or refunded. Times "
    "are in UTC."
)


def csv(statement: Statement, currency: str) -> bytes:
    """One line per attempt and kind of entry. Amounts are exact decimal numbers; charges are negative."""
    text = io.StringIO(newline="")
    writer = csv_module.writer(text)
    writer.writerow(COLUMNS)
    unit = _unit(statement.unit, currency)
    for line in lines_of(statement.entries):
        writer.writerow(
            [
                line.kind,
                _moment(line.at),
                "" if line.until is None else _moment(line.until),
                line.attempt_id or "",
                harmless(line.job_name),
                harmless(line.user),
                harmless(line.model),
                f"{line.gpu_milli / WHOLE:g}",
                exact(line.amount_micro),
                harmless(unit),
                harmless(line.note or (f"by {line.actor}" if line.actor else "")),
            ]
        )
    return text.getvalue().encode("utf-8", "replace")


def exact(amount_micro: int) -> str:
    """All six decimal places."""
    sign, amount = ("-", -amount_micro) if amount_micro < 0 else ("", amount_micro)
    return f"{sign}{amount // MICRO}.{amount % MICRO:06d}"


def document(statement: Statement, currency: str, *, cluster: str, now: float) -> Document:
    unit = _unit(statement.unit, currency)
    lines = lines_of(statement.entries)
    sums = {kind: sum(line.amount_micro for line in lines if line.kind is kind) for kind in EntryKind}
    return Document(
        title=f"Statement of {statement.account} in {unit}",
        cluster=cluster,
        span=texts.span_text(Span(since=statement.since, until=statement.until)),
        made=texts.moment(now),
        tiles=(
            Tile(label="Balance before", value=amount_text(statement.opening_micro)),
            Tile(label="Charged", value=amount_text(-sums[EntryKind.CHARGE])),
            Tile(label="Refunded", value=amount_text(sums[EntryKind.REFUND])),
            Tile(label="Granted", value=amount_text(sums[EntryKind.GRANT])),
            Tile(label="Balance after", value=amount_text(statement.closing_micro)),
        ),
        findings=(),
        sections=(
            Section(title="By user", text="", blocks=(_by_user(lines, unit),)),
            Section(title="Entries", text="", blocks=(_entries(lines, unit),)),
            Section(title="How to read this statement", text=ABOUT),
        ),
    )


def _by_user(lines: list[StatementLine], unit: str) -> Table:
    amounts: dict[str, int] = defaultdict(int)
    for line in lines:
        if line.kind is not EntryKind.GRANT:
            amounts[line.user] -= line.amount_micro
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    rows = [Row(cells=(user, amount_text(amount))) for user, amount in ranked]
    rows.append(Row(cells=("all", amount_text(sum(amounts.values()))), is_total=True))
    return Table(title="Charges less refunds", columns=("user", unit), rows=tuple(rows))


def _entries(lines: list[StatementLine], unit: str) -> Table:
    rows = tuple(
        Row(
            cells=(
                texts.moment(line.at),
                line.kind,
                line.attempt_id or line.actor,
                line.job_name or line.note,
                line.user,
                line.model,
                amount_text(line.amount_micro),
            )
        )
        for line in lines
    )
    columns = ("time", "entry", "attempt", "job or note", "user", "GPU model", unit)
    return Table(title="One line per attempt", columns=columns, rows=rows, text_columns=6)


def _unit(unit: Unit, currency: str) -> str:
    return "GPU-hours" if unit is Unit.GPU_HOURS else currency or "money"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
