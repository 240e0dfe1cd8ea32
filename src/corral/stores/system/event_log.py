"""The audit log of events, and the scheduler's journal of cycles.

Ids come from counters. Writers take turns, so a larger id was also committed later, and a reader that continues after
its last id misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, bindparam, delete, func, insert, or_, select

from corral.control.records import CycleRecord, EventFilter, EventRecord, Page
from corral.core.copies import replace
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.statements import BatchStatement, count_up
from corral.stores.schema.tables import cycle_rows, event_rows

_NEWEST_FIRST = Sort(field="event", descending=True, type=int)


def _build_insert(_: str) -> Insert:
    return insert(event_rows)


_APPEND = BatchStatement(_build_insert, ["id", "at", "actor", "action", "subject", "owner", "detail", "source"])
_AFTER = (
    select(event_rows)
    .where(event_rows.c.id > bindparam("last"))
    .order_by(event_rows.c.id)
    .limit(bindparam("row_limit", literal_execute=False))
)
_LAST = select(func.coalesce(func.max(event_rows.c.id), 0))


class SqlEventTable:
    """Implements `corral.control.ports.EventTable`. `since` is included in a filter's span, `until` is not."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, events: Sequence[EventRecord]) -> list[EventRecord]:
        if not events:
            return []
        first = count_up(self._connection, "event", len(events)) - len(events) + 1
        numbered = [replace(event, id=number) for number, event in enumerate(events, first)]
        _APPEND.run(self._connection, [_event_row(event) for event in numbered])
        return numbered

    def after(self, event_id: int, limit: int) -> list[EventRecord]:
        last = min(event_id, row_codec.MAX_INTEGER)
        rows = self._connection.execute(_AFTER, {"last": last, "row_limit": check_limit(limit)})
        return [_event_of(row) for row in rows]

    def last_id(self) -> int:
        last: int = self._connection.execute(_LAST).scalar_one()
        return last

    def page(self, where: EventFilter, *, cursor: str | None, limit: int) -> Page[EventRecord]:
        statement = select(event_rows).where(*_conditions(where)).order_by(event_rows.c.id.desc())
        if cursor is not None:
            statement = statement.where(event_rows.c.id < decode_cursor(cursor, _NEWEST_FIRST).id)
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        next_cursor = None
        if len(rows) > limit:
            last = rows[limit - 1].id
            next_cursor = encode_cursor(_NEWEST_FIRST, Position(key=last, id=last))
        return Page(items=tuple(_event_of(row) for row in rows[:limit]), next_cursor=next_cursor)

    def count(self, where: EventFilter) -> int:
        statement = select(func.count()).select_from(event_rows).where(*_conditions(where))
        found: int = self._connection.execute(statement).scalar_one()
        return found

    def prune(self, before: float, limit: int) -> int:
        # Ids grow with time, so the oldest are found along the key.
        oldest = select(event_rows.c.id, event_rows.c.at).order_by(event_rows.c.id).limit(limit)
        last = 0
        for event_id, at in self._connection.execute(oldest):
            if at >= before:
                break
            last = event_id
        if not last:
            return 0
        return self._connection.execute(delete(event_rows).where(event_rows.c.id <= last)).rowcount


def _conditions(where: EventFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for name in ("actor", "action", "subject", "owner"):
        wanted = getattr(where, name)
        if wanted is not None:
            conditions.append(event_rows.c[name] == wanted)
    if where.actions:
        conditions.append(event_rows.c.action.in_(where.actions))
    if where.not_by is not None:
        conditions.append(event_rows.c.actor != where.not_by)
    if where.after_id:
        conditions.append(event_rows.c.id > min(where.after_id, row_codec.MAX_INTEGER))
    if where.since is not None:
        conditions.append(event_rows.c.at >= where.since)
    if where.until is not None:
        conditions.append(event_rows.c.at < where.until)
    if where.text is not None:
        # The detail is JSON, where quotes and non-ASCII characters are escaped.
        sought = dict.fromkeys(("actor", "action", "subject"), where.text)
        sought["detail"] = row_codec.to_json(where.text)[1:-1]
        conditions.append(or_(*(event_rows.c[name].icontains(text, autoescape=True) for name, text in sought.items())))
    return conditions


def _event_row(event: EventRecord) -> tuple[Any, ...]:
    # A failed sign-in is an event, too, so these texts may contain any input.
    return (
        event.id,
        event.at,
        row_codec.storable(event.actor),
        row_codec.storable(event.action),
        row_codec.storable(event.subject),
        row_codec.storable(event.owner),
        row_codec.to_json(dict(event.detail)),
        row_codec.storable(event.source),
    )


def _event_of(row: Any) -> EventRecord:
    event_id, at, actor, action, subject, owner, detail, source = row
    return EventRecord(
        id=event_id,
        at=at,
        actor=actor,
        action=action,
        subject=subject,
        owner=owner,
        detail=row_codec.from_json(detail),
        source=source,
    )


# ------------------------------------------------------------------------------------------------ cycles

_APPEND_CYCLE = BatchStatement(lambda _: insert(cycle_rows), ["id", "at", "is_base", "digest", "changes", "plan"])
_NEWEST_BASE = select(func.max(cycle_rows.c.id)).where(cycle_rows.c.is_base)


class SqlCycleTable:
    """Implements `corral.control.ports.CycleTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, cycle: CycleRecord) -> int:
        cycle_id = count_up(self._connection, "cycle", 1)
        row = (cycle_id, cycle.at, cycle.is_base, cycle.digest, cycle.changes, cycle.plan)
        _APPEND_CYCLE.run(self._connection, [row])
        return cycle_id

    def since_base(self) -> list[CycleRecord]:
        base = self._connection.execute(_NEWEST_BASE).scalar_one()
        if base is None:
            return []
        rows = self._connection.execute(select(cycle_rows).where(cycle_rows.c.id >= base).order_by(cycle_rows.c.id))
        return [_cycle_of(row) for row in rows]

    def since(self, cycle_id: int, limit: int) -> list[CycleRecord]:
        statement = select(cycle_rows).where(cycle_rows.c.id > cycle_id).order_by(cycle_rows.c.id).limit(limit)
        return [_cycle_of(row) for row in self._connection.execute(statement)]

    def count_since(self, cycle_id: int) -> int:
        counted = select(func.count()).select_from(cycle_rows).where(cycle_rows.c.id > cycle_id)
        return self._connection.execute(counted).scalar_one()

    def first_base_at(self) -> float | None:
        table = cycle_rows.c
        first = select(table.at).where(table.is_base).order_by(table.id).limit(1)
        return self._connection.execute(first).scalar_one_or_none()

    def run_until(self, at: float) -> list[CycleRecord]:
        table = cycle_rows.c
        # Uses the index of times; entries of the same moment are distinguished by their ids.
        last = self._connection.execute(
            select(table.id).where(table.at <= at).order_by(table.at.desc(), table.id.desc()).limit(1)
        ).scalar_one_or_none()
        if last is None:
            return []
        base = self._connection.execute(_NEWEST_BASE.where(table.id <= last)).scalar_one()
        if base is None:
            return []
        run = select(cycle_rows).where(table.id.between(base, last)).order_by(table.id)
        return [*map(_cycle_of, self._connection.execute(run)), *self.since(last, 1)]

    def prune(self, before: float) -> int:
        """Deletes old cycles. The newest run has not ended, so it is always kept."""
        keep_from = self._connection.execute(_NEWEST_BASE).scalar_one()
        if keep_from is None:
            return 0
        still_wanted = self._connection.execute(
            select(func.min(cycle_rows.c.id)).where(cycle_rows.c.at >= before)
        ).scalar_one()
        if still_wanted is not None and still_wanted < keep_from:
            # None for entries before the first base: they belong to no complete run.
            base = self._connection.execute(_NEWEST_BASE.where(cycle_rows.c.id <= still_wanted)).scalar_one()
            keep_from = still_wanted if base is None else base
        return self._connection.execute(delete(cycle_rows).where(cycle_rows.c.id < keep_from)).rowcount


def _cycle_of(row: Any) -> CycleRecord:
    return CycleRecord(id=row.id, at=row.at, is_base=row.is_base, digest=row.digest, changes=row.changes, plan=row.plan)
