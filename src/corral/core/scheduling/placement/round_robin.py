"""`round-robin`: each node in turn, starting after the one that was used last."""

from __future__ import annotations

from collections.abc import Iterator

from corral.core.model import Request
from corral.core.snapshot.node_index import DomainIndex, Fleet, places


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    fitting = index.with_room(request) & among
    up_to_last = (1 << (fleet.last_place + 1)) - 1
    yield from places(fitting & ~up_to_last)
    yield from places(fitting & up_to_last)
