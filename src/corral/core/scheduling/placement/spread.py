"""`spread`: the emptiest node first, so that jobs disturb each other least."""

from __future__ import annotations

from collections.abc import Iterator

from corral.core.model import Request
from corral.core.snapshot.node_index import DomainIndex, Fleet, places


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    least = 1 if request.gpu_milli else request.gpus
    for bits in reversed(index.whole[least:]):
        yield from index.places(bits & among, least)
    if request.gpu_milli:
        for left in sorted(index.partial, reverse=True):
            if left >= request.gpu_milli:
                yield from places(index.partial[left] & among)
