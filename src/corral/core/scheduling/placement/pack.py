"""`pack`: the fullest node that still has room, so that whole nodes stay free for large jobs."""

from __future__ import annotations

from collections.abc import Iterator

from corral.core.model import Request
from corral.core.snapshot.node_index import DomainIndex, Fleet, places


def candidates(fleet: Fleet, index: DomainIndex, request: Request, among: int) -> Iterator[int]:
    if request.gpu_milli:
        # A GPU that is shared already, with the least left, before an unused one.
        for left in sorted(index.partial):
            if left >= request.gpu_milli:
                yield from places(index.partial[left] & among)
    least = 1 if request.gpu_milli else request.gpus
    for bits in index.whole[least:]:
        yield from index.places(bits & among, least)
