"""Simulations with their results, and differences of the shadow policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, literal_column, select, update

from corral.control.records import (
    DifferenceRecord,
    Page,
    SimulationRecord,
    SimulationSource,
    SimulationState,
)
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.statements import count_up, insert_into, replace_rows
from corral.stores.schema.whatif_tables import NOT_FINISHED, shadow_difference_rows, simulation_rows

PREFIX = "s-"
_NEWEST_FIRST = Sort(field="id", descending=True, type=int, id_type=int)
_SHORT = (simulation_rows.c.id, simulation_rows.c.state, simulation_rows.c.body)


class SqlSimulationTable:
    """Implements `corral.control.ports.SimulationTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def next_id(self) -> str:
        return f"{PREFIX}{count_up(self._connection, 'simulation', 1)}"

    def get(self, simulation_id: str) -> SimulationRecord | None:
        number = _number(simulation_id)
        row = self._connection.execute(select(*_SHORT).where(simulation_rows.c.id == number)).one_or_none()
        return None if row is None else _record_of(row)

    def result(self, simulation_id: str) -> Mapping[str, Any] | None:
        statement = select(simulation_rows.c.result).where(simulation_rows.c.id == _number(simulation_id))
        text = self._connection.execute(statement).scalar_one_or_none()
        return None if text is None else row_codec.from_json(text)

    def page(self, *, cursor: str | None, limit: int) -> Page[SimulationRecord]:
        table = simulation_rows.c
        statement = select(*_SHORT).order_by(table.id.desc())
        if cursor is not None:
            statement = statement.where(table.id < decode_cursor(cursor, _NEWEST_FIRST).id)
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        next_cursor = None
        if len(rows) > limit:
            last = rows[limit - 1].id
            next_cursor = encode_cursor(_NEWEST_FIRST, Position(key=last, id=last))
        return Page(items=tuple(_record_of(row) for row in rows[:limit]), next_cursor=next_cursor)

    def save(self, record: SimulationRecord) -> None:
        statement = insert_into(self._connection.dialect.name, simulation_rows)
        changed = {"state": statement.excluded.state, "body": statement.excluded.body}
        row = {"id": _number(record.id), "state": record.state.value, "body": row_codec.to_json(_body(record))}
        self._connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=changed), [row])

    def save_result(self, simulation_id: str, result: Mapping[str, Any]) -> None:
        self._connection.execute(
            update(simulation_rows)
            .where(simulation_rows.c.id == _number(simulation_id))
            .values(result=row_codec.to_json(dict(result)))
        )

    def delete(self, simulation_ids: Sequence[str]) -> None:
        numbers = [_number(simulation_id) for simulation_id in simulation_ids]
        self._connection.execute(delete(simulation_rows).where(simulation_rows.c.id.in_(numbers)))

    def unfinished(self) -> list[SimulationRecord]:
        statement = select(*_SHORT).where(literal_column(NOT_FINISHED)).order_by(simulation_rows.c.id)
        return [_record_of(row) for row in self._connection.execute(statement)]

    def ids(self) -> list[str]:
        numbers = self._connection.execute(select(simulation_rows.c.id).order_by(simulation_rows.c.id.desc())).scalars()
        return [f"{PREFIX}{number}" for number in numbers]


class SqlShadowTable:
    """Implements `corral.control.ports.ShadowTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, differences: Sequence[DifferenceRecord]) -> None:
        rows = [
            {
                "cycle": item.cycle,
                "at": item.at,
                "body": row_codec.to_json({"words": item.texts, "live": item.live, "shadow": item.shadow}),
            }
            for item in differences
        ]
        replace_rows(self._connection, shadow_difference_rows, rows)

    def newest(self, limit: int) -> list[DifferenceRecord]:
        table = shadow_difference_rows
        rows = self._connection.execute(select(table).order_by(table.c.cycle.desc()).limit(limit))
        return [_difference_of(row) for row in rows]

    def clear(self) -> None:
        self._connection.execute(delete(shadow_difference_rows))

    def keep(self, most: int) -> int:
        table = shadow_difference_rows
        oldest = select(table.c.cycle).order_by(table.c.cycle.desc()).limit(1).offset(most)
        cycle = self._connection.execute(oldest).scalar_one_or_none()
        if cycle is None:
            return 0
        return self._connection.execute(delete(table).where(table.c.cycle <= cycle)).rowcount


def _number(simulation_id: str) -> int:
    """The number of an id; -1, which no row has, if the text is no id."""
    digits = simulation_id.removeprefix(PREFIX)
    is_id = simulation_id.startswith(PREFIX) and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_id and not digits.startswith("0") else -1


def _body(record: SimulationRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "source": record.source.value,
        "since": record.since,
        "until": record.until,
        "history_since": record.history_since,
        "base": dict(record.base),
        "candidate": dict(record.candidate),
        "created_by": record.created_by,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "error": record.error,
        "jobs": record.jobs,
        "starts": record.starts,
        "headline": None if record.headline is None else dict(record.headline),
    }


def _record_of(row: Any) -> SimulationRecord:
    body = row_codec.from_json(row.body)
    return SimulationRecord(
        **{**body, "source": SimulationSource(body["source"])},
        id=f"{PREFIX}{row.id}",
        state=SimulationState(row.state),
    )


def _difference_of(row: Any) -> DifferenceRecord:
    body = row_codec.from_json(row.body)
    return DifferenceRecord(
        cycle=row.cycle,
        at=row.at,
        texts=tuple(body["words"]),
        live=tuple(body["live"]),
        shadow=tuple(body["shadow"]),
    )
