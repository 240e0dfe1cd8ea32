"""The mix: the kinds of requests that a pool has seen lately, and how often.

The mix is part of the snapshot, like a queue or a score, so that decisions that depend on it can be replayed. It does
not change with every job: submissions are counted (`MixCounter`), and a new mix is put into the snapshot when enough
requests were added to matter. Both are bounded, whatever users ask for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corral.core.model import Request

#: When so many instances were counted, all counts are halved, so that old requests count less and less.
WINDOW = 8192
#: The most kinds of requests in a mix; the rarest are left out.
MOST_KINDS = 256
#: A new mix is made when the count has grown by this part.
RENEWED_PART = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Portion:
    """One kind of request, as one instance on one node, and how often it was seen."""

    request: Request
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Mix:
    #: the most frequent first, then by the request: equal mixes are stored alike
    portions: tuple[Portion, ...] = ()
    #: how many instances ended while these requests were counted
    ended: int = 0

    @property
    def total(self) -> int:
        return sum(portion.count for portion in self.portions)

    @property
    def ended_part(self) -> float:
        """How many instances ended for each one that was asked for: 0 while nothing ends, 1 where as many end as
        come."""
        return min(1.0, self.ended / self.total) if self.portions else 0.0


def mix_of(counts: Iterable[tuple[Request, int]], ended: int = 0) -> Mix:
    """The mix of these counts, limited to `MOST_KINDS`."""
    ordered = sorted(counts, key=lambda item: (-item[1], _sort_key(item[0])))
    portions = tuple(Portion(request=request, count=count) for request, count in ordered[:MOST_KINDS])
    return Mix(portions=portions, ended=ended)


def kind_of(request: Request) -> Request:
    """The part of a request that a mix keeps: one instance, without labels."""
    return replace(request, nodes=1, labels=())


class MixCounter:
    """Counts the requests for one pool. `mix` is the last mix that `count` returned."""

    def __init__(self, mix: Mix = Mix()) -> None:  # noqa: B008 - an immutable value
        self.mix = mix
        self._counts = {portion.request: portion.count for portion in mix.portions}
        self._total = self._reported = mix.total
        self._ended = mix.ended

    def count_ended(self, request: Request) -> None:
        """Count a job that has given its resources back. The next mix has it."""
        if request.wants_gpu:
            self._ended += request.nodes

    def count(self, request: Request) -> Mix | None:
        """Count a submitted request. Returns the new mix, if enough requests were added."""
        if not request.wants_gpu:
            return None  # a request without GPUs strands no GPU by its size
        kind = kind_of(request)
        self._counts[kind] = self._counts.get(kind, 0) + request.nodes
        self._total += request.nodes
        if self._total - self._reported < max(1.0, RENEWED_PART * self._reported):
            return None
        if self._total >= WINDOW:
            self._counts = {request: count // 2 for request, count in self._counts.items() if count > 1}
            self._ended //= 2
        self.mix = mix_of(self._counts.items(), self._ended)
        self._counts = {portion.request: portion.count for portion in self.mix.portions}
        self._total = self._reported = self.mix.total
        return self.mix


def _sort_key(request: Request) -> tuple[int, int, int, int, tuple[str, ...]]:
    return (request.gpus, request.gpu_milli, request.cpu_milli, request.memory_bytes, request.models)
