"""Alert rules, alerts and silences. What lists are filtered by is a column; the rest is one JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, select, text

from corral.control.records import AlertFilter, Page
from corral.core.alerts.model import Alert, AlertAction, AlertRule, AlertState, Comparison, Severity, Silence
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.statements import CHUNK, count_up, replace_rows
from corral.stores.schema.monitoring_tables import NOT_RESOLVED, alert_rows, alert_rule_rows, silence_rows

_NEWEST_FIRST = Sort(field="alert", descending=True, type=int)
#: In the JSON text, because no query filters alerts by them.
_BODY = (
    "scope",
    "value",
    "worst",
    "text",
    "fired_at",
    "clear_since",
    "acknowledged_at",
    "acknowledged_by",
    "note",
    "silenced",
    "folded_into",
)
_LIVE = select(alert_rows).where(text(NOT_RESOLVED)).order_by(alert_rows.c.id)
_BY_ID = select(alert_rows).where(alert_rows.c.id == bindparam("wanted"))


class SqlAlertTable:
    """Implements `corral.control.ports.AlertTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ---------------------------------------------------------------- rules

    def rules(self) -> list[AlertRule]:
        rows = self._connection.execute(select(alert_rule_rows).order_by(alert_rule_rows.c.name))
        return [_rule_of(row.name, row_codec.from_json(row.body)) for row in rows]

    def save_rule(self, rule: AlertRule) -> None:
        replace_rows(
            self._connection, alert_rule_rows, [{"name": rule.name, "body": row_codec.to_json(_rule_body(rule))}]
        )

    def delete_rule(self, name: str) -> None:
        self._connection.execute(delete(alert_rule_rows).where(alert_rule_rows.c.name == name))

    # ---------------------------------------------------------------- alerts

    def add(self, alerts: Sequence[Alert]) -> list[Alert]:
        if not alerts:
            return []
        first = count_up(self._connection, "alert", len(alerts)) - len(alerts) + 1
        numbered = [replace(alert, id=number) for number, alert in enumerate(alerts, first)]
        self._connection.execute(insert(alert_rows), [_alert_row(alert) for alert in numbered])
        return numbered

    def save(self, alerts: Sequence[Alert]) -> None:
        replace_rows(self._connection, alert_rows, [_alert_row(alert) for alert in alerts])

    def delete(self, alert_ids: Sequence[int]) -> None:
        for start in range(0, len(alert_ids), CHUNK):
            chunk = alert_ids[start : start + CHUNK]
            self._connection.execute(delete(alert_rows).where(alert_rows.c.id.in_(chunk)))

    def get(self, alert_id: int) -> Alert | None:
        if not 0 < alert_id <= row_codec.MAX_INTEGER:
            return None
        row = self._connection.execute(_BY_ID, {"wanted": alert_id}).one_or_none()
        return None if row is None else _alert_of(row)

    def live(self) -> list[Alert]:
        return [_alert_of(row) for row in self._connection.execute(_LIVE)]

    def page(self, where: AlertFilter, *, cursor: str | None, limit: int) -> Page[Alert]:
        statement = select(alert_rows).where(*_conditions(where)).order_by(alert_rows.c.id.desc())
        if cursor is not None:
            statement = statement.where(alert_rows.c.id < decode_cursor(cursor, _NEWEST_FIRST).id)
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        next_cursor = None
        if len(rows) > limit:
            last = rows[limit - 1].id
            next_cursor = encode_cursor(_NEWEST_FIRST, Position(key=last, id=last))
        return Page(items=tuple(_alert_of(row) for row in rows[:limit]), next_cursor=next_cursor)

    # ---------------------------------------------------------------- silences

    def silences(self) -> list[Silence]:
        rows = self._connection.execute(select(silence_rows).order_by(silence_rows.c.ends_at, silence_rows.c.id))
        return [Silence(id=row.id, ends_at=row.ends_at, **row_codec.from_json(row.body)) for row in rows]

    def save_silence(self, silence: Silence) -> None:
        body = {
            "rule": silence.rule,
            "subject": silence.subject,
            "starts_at": silence.starts_at,
            "reason": silence.reason,
            "created_by": silence.created_by,
        }
        row = {"id": silence.id, "ends_at": silence.ends_at, "body": row_codec.to_json(body)}
        replace_rows(self._connection, silence_rows, [row])

    def delete_silence(self, silence_id: str) -> None:
        self._connection.execute(delete(silence_rows).where(silence_rows.c.id == silence_id))

    def prune(self, before: float) -> int:
        alerts = self._connection.execute(delete(alert_rows).where(alert_rows.c.resolved_at < before)).rowcount
        silences = self._connection.execute(delete(silence_rows).where(silence_rows.c.ends_at < before)).rowcount
        return alerts + silences


def _conditions(where: AlertFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if where.states:
        conditions.append(alert_rows.c.state.in_([state.value for state in where.states]))
        if AlertState.RESOLVED not in where.states:
            # The exact condition of the partial index, so that the index is used.
            conditions.append(text(NOT_RESOLVED))  # type: ignore[arg-type]
    if where.severities:
        conditions.append(alert_rows.c.severity.in_([severity.value for severity in where.severities]))
    for name in ("rule", "subject", "owner"):
        wanted = getattr(where, name)
        if wanted is not None:
            conditions.append(alert_rows.c[name] == wanted)
    if where.since is not None:
        conditions.append(alert_rows.c.pending_since >= where.since)
    if where.until is not None:
        conditions.append(alert_rows.c.pending_since < where.until)
    return conditions


def _alert_row(alert: Alert) -> dict[str, Any]:
    return {
        "id": alert.id,
        "rule": alert.rule,
        "subject": alert.subject,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "owner": alert.owner,
        "pending_since": alert.pending_since,
        "resolved_at": alert.resolved_at,
        "body": row_codec.to_json({name: getattr(alert, name) for name in _BODY}),
    }


def _alert_of(row: Any) -> Alert:
    return Alert(
        id=row.id,
        rule=row.rule,
        subject=row.subject,
        severity=Severity(row.severity),
        state=AlertState(row.state),
        owner=row.owner,
        pending_since=row.pending_since,
        resolved_at=row.resolved_at,
        **row_codec.from_json(row.body),
    )


def _rule_body(rule: AlertRule) -> dict[str, Any]:
    return {
        "signal": rule.signal,
        "comparison": rule.comparison.value,
        "threshold": rule.threshold,
        "for_seconds": rule.for_seconds,
        "clear_seconds": rule.clear_seconds,
        "severity": rule.severity.value,
        "enabled": rule.enabled,
        "subjects": list(rule.subjects),
        "channels": list(rule.channels),
        "actions": [action.value for action in rule.actions],
        "notify_resolved": rule.notify_resolved,
        "description": rule.description,
        "builtin": rule.builtin,
    }


def _rule_of(name: str, body: dict[str, Any]) -> AlertRule:
    return AlertRule(
        **{
            **body,
            "name": name,
            "comparison": Comparison(body["comparison"]),
            "severity": Severity(body["severity"]),
            "subjects": tuple(body["subjects"]),
            "channels": tuple(body["channels"]),
            "actions": tuple(AlertAction(action) for action in body["actions"]),
        }
    )
