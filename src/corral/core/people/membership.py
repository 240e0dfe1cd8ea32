"""The group and the pool that a user belongs to, and the queues that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.model import Queue


@dataclass(frozen=True, kw_only=True, slots=True)
class Membership:
    """Where a user belongs: a group, and the pool that the group has."""

    group: str | None = None
    pool: str | None = None

    def may_use(self, queue: Queue) -> bool:
        return queue.pool == self.pool or (self.group is not None and self.group in queue.groups)
