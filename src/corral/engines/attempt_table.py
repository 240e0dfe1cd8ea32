"""The attempts that an engine of a cluster knows, by id, until they are forgotten."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


A = TypeVar("A", bound=_Identified)


class AttemptTable(Generic[A]):
    """Safe for several threads. `lock` also guards the fields of the attempts."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._attempts: dict[str, A] = {}

    def __contains__(self, attempt_id: str) -> bool:
        return self.get(attempt_id) is not None

    def get(self, attempt_id: str) -> A | None:
        with self.lock:
            return self._attempts.get(attempt_id)

    def all(self) -> list[A]:
        with self.lock:
            return list(self._attempts.values())

    def add(self, attempt: A) -> None:
        with self.lock:
            self._attempts[attempt.id] = attempt

    def remove(self, attempt_id: str) -> None:
        with self.lock:
            del self._attempts[attempt_id]
