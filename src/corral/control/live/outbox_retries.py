"""Retries of what an engine could not take: each subject has its own back-off, so that one that always fails does not
delay others.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

#: Pauses are counted in rounds; after the last of these they grow no more.
PAUSES = (1, 2, 4, 8, 16, 30)

Thing = TypeVar("Thing")


@dataclass(slots=True)
class _Waiting(Generic[Thing]):
    thing: Thing
    tries: int
    rounds_left: int


class PutBack(Generic[Thing]):
    """One thing for each subject. It stays known while it is tried again, until it is dropped."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, _Waiting[Thing]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def get(self, subject: Hashable) -> Thing | None:
        found = self._waiting.get(subject)
        return None if found is None else found.thing

    def put(self, subject: Hashable, thing: Thing) -> None:
        """Records a failed try. A new value for the subject starts with a short pause again."""
        found = self._waiting.get(subject)
        tries = found.tries + 1 if found is not None and found.thing is thing else 1
        rounds = PAUSES[min(tries, len(PAUSES)) - 1]
        self._waiting[subject] = _Waiting(thing=thing, tries=tries, rounds_left=rounds)

    def drop(self, subject: Hashable) -> Thing | None:
        """Removes and returns the value that waited for the subject, if any."""
        found = self._waiting.pop(subject, None)
        return None if found is None else found.thing

    def next_round(self) -> list[Hashable]:
        """A round has passed: the subjects whose pause is over now."""
        for waiting in self._waiting.values():
            waiting.rounds_left -= 1
        return [subject for subject, waiting in self._waiting.items() if waiting.rounds_left <= 0]

    def hurry(self) -> list[Hashable]:
        """The cause may be gone: end all pauses; the next pause is short again."""
        for waiting in self._waiting.values():
            waiting.tries, waiting.rounds_left = 0, 0
        return list(self._waiting)
