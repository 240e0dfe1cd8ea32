"""The mix: what kinds of requests a pool has seen lately, and how often.

The mix is content of the picture, like a queue or a score, so that decisions that depend on it can be replayed. It is
not renewed with every job: whoever watches the submissions counts them (`MixCounter`) and puts a new mix into the
picture when enough has been added to matter. Both are bounded, whatever people ask for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corral.core.model import Request

#: Instances that are remembered; when so many were counted, all counts are halved, so that the past fades.
WINDOW = 8192
#: Kinds of requests that a mix can tell apart; the rarest are left out.
MOST_KINDS = 256
#: A new mix is worth having when this part of what it counts has been added.
RENEWED_PART = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Portion:
    """One kind of request, as one instance on one node, and how many of them were seen."""

    request: Request
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Mix:
    #: the most frequent first, then by what is asked for: equal mixes are written alike
    portions: tuple[Portion, ...] = ()

    @property
    def total(self) -> int:
        return sum(portion.count for portion in self.portions)


def mix_of(counts: Iterable[tuple[Request, int]]) -> Mix:
    """A mix of what was counted, within its bounds."""
    ordered = sorted(counts, key=lambda item: (-item[1], _sort_key(item[0])))
    return Mix(portions=tuple(Portion(request=request, count=count) for request, count in ordered[:MOST_KINDS]))


def kind_of(request: Request) -> Request:
    """What a mix keeps of a request: one instance, wherever its labels allow it."""
    return replace(request, nodes=1, labels=())


class MixCounter:
    """Counts the requests for one pool. `mix` is what was last worth telling."""

    def __init__(self, mix: Mix = Mix()) -> None:  # noqa: B008 - an immutable value
        self.mix = mix
        self._counts = {portion.request: portion.count for portion in mix.portions}
        self._total = self._told = mix.total

    def count(self, request: Request) -> Mix | None:
        """Note a submitted request. The new mix, if it is time for one."""
        if not request.wants_gpu:
            return None  # what takes no GPU leaves none unusable by its size
        kind = kind_of(request)
        self._counts[kind] = self._counts.get(kind, 0) + request.nodes
        self._total += request.nodes
        if self._total - self._told < max(1.0, RENEWED_PART * self._told):
            return None
        if self._total >= WINDOW:
            self._counts = {request: count // 2 for request, count in self._counts.items() if count > 1}
        self.mix = mix_of(self._counts.items())
        self._counts = {portion.request: portion.count for portion in self.mix.portions}
        self._total = self._told = self.mix.total
        return self.mix


def _sort_key(request: Request) -> tuple[int, int, int, int, tuple[str, ...]]:
    return (request.gpus, request.gpu_milli, request.cpu_milli, request.memory_bytes, request.models)
