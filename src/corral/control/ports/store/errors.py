"""Errors of the store."""

from __future__ import annotations


class StoreConflict(Exception):
    """Another writer changed the same row first. Nothing was written: load the row and decide again."""


class NameTaken(Exception):
    """A thing with this name exists already. Nothing was written."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} name {name!r} is taken")
        self.kind = kind
        self.name = name


class StoreUnavailable(Exception):
    """The store cannot be used now: the connection is lost, it stays locked, or the disk is full. Try again later.

    Raised while a `write` block is open, nothing was written. Raised when the block ends, it is open whether the change
    was committed: load again and compare.
    """


class OutcomeUnknown(StoreUnavailable):
    """The store went away while the change was being committed. Whether it happened is found out when it is back."""


class StoreSuperseded(Exception):
    """Another server has taken over this store. Nothing was written, and this server must stop."""
