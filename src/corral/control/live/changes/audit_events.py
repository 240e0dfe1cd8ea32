"""The lines that a unit of work adds to the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.control.live.changes.callers import Caller
from corral.control.ports import Transaction
from corral.control.records import EventRecord


class AuditEvents:
    def __init__(self, tx: Transaction, now: float) -> None:
        self._tx = tx
        self._now = now
        self._events: list[EventRecord] = []

    @property
    def changes(self) -> int:
        return len(self._events)

    def add(
        self, caller: Caller, action: str, subject: str, *, owner: str = "", detail: Mapping[str, Any] | None = None
    ) -> None:
        self._events.append(
            EventRecord(
                at=self._now,
                actor=caller.name,
                action=action,
                subject=subject,
                owner=owner,
                detail=detail or {},
                source=caller.source,
            )
        )

    def flush(self) -> list[EventRecord]:
        """Write the events; returns them with their ids."""
        return self._tx.events.append(self._events) if self._events else []
