"""Reads the sources of a report: one read of the store, one of the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.control.ports import CLUSTER, History, HistoryUnavailable, Metric, Point, Transaction
from corral.control.records import AlertFilter, EventFilter, EventRecord, UsageRecord
from corral.control.reports.report_data import DAY, HOUR, Span
from corral.control.reports.report_numbers import MISHAPS
from corral.core.alerts.model import Alert

_PAGE = 500
#: An alert fires long after it was pending only if its rule wants to see something for days.
_PENDING_SECONDS = 7 * DAY
#: Steps in which the first reading is looked for.
_FIRST_STEP_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """The stored data of a span and of the one before it."""

    usage: Sequence[UsageRecord]
    submitted: int
    submitted_before: int
    alerts: Sequence[Alert]
    events: Sequence[EventRecord]


def read_stored(tx: Transaction, span: Span) -> Stored:
    before = span.before()
    return Stored(
        # A second more at the front: what ended in the very moment of the border must not fall between two spans.
        usage=tx.usage.between(before.since - 1.0, span.until),
        submitted=_submitted(tx, span),
        submitted_before=_submitted(tx, before),
        alerts=list(_alerts(tx, before.since)),
        events=[event for action in MISHAPS for event in _events(tx, action, span)],
    )


def gpu_counts(history: History, span: Span) -> list[Point]:
    """How many GPUs there were, from the span before on; nothing when the history cannot be asked.

    The first point is at the first reading, not at the beginning of its step: a server that is ten minutes old had no
    capacity in the fifty minutes before."""
    step = 60.0 if span.seconds <= 3 * DAY else HOUR
    try:
        found = history.series(Metric.CLUSTER_GPUS, [CLUSTER], span.before().since, span.until, step).get(CLUSTER, [])
        if not found:
            return []
        begin = found[0].at
        first = history.series(Metric.CLUSTER_GPUS, [CLUSTER], begin, begin + step, _FIRST_STEP_SECONDS)
    except HistoryUnavailable:
        return []
    return [*first.get(CLUSTER, found[:1]), *found[1:]]


def _submitted(tx: Transaction, span: Span) -> int:
    return tx.events.count(EventFilter(action="job.submitted", since=span.since, until=span.until))


def _events(tx: Transaction, action: str, span: Span) -> Iterator[EventRecord]:
    where, cursor = EventFilter(action=action, since=span.since, until=span.until), None
    while True:
        page = tx.events.page(where, cursor=cursor, limit=_PAGE)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def _alerts(tx: Transaction, since: float) -> Iterator[Alert]:
    cursor = None
    while True:
        page = tx.alerts.page(AlertFilter(), cursor=cursor, limit=_PAGE)
        for alert in page.items:
            if alert.pending_since < since - _PENDING_SECONDS:
                return
            yield alert
        cursor = page.next_cursor
        if cursor is None:
            return
