"""The expected leftover: how much idle GPU of a node is expected to stay stranded, given the mix of requests.

The model: requests of the mix arrive at the node, and each one that fits is placed, until nothing fits or a number of
requests (`HORIZON`) has passed. The GPU that is idle then is the leftover. Its expectation is computed by recursion
over the free resources, GPU by GPU: shared GPUs are filled first, with their average need of host resources, then whole
GPUs. Requests that leave less are more likely, because the placement sends a request to a node that it fills well. The
leftover is computed once for CPUs and once for memory; the larger value counts.

Counting which kinds of requests still fit now would not look ahead. This model does: a hole of 190 thousandths will
hardly be filled, two more CPUs per GPU let the last GPU be used, an empty node is worth keeping whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from corral.core.model import WHOLE, Request
from corral.core.snapshot.request_mix import Mix, Portion

#: The resolution of GPUs, CPUs and memory here: finer steps cost time and lead to the same decisions.
GPU_STEP = 10
CPU_STEP = 1000
MEMORY_STEP = 4 * 2**30
#: The size of the cache of node states.
MOST_KNOWN = 50_000
_GPU_CELLS = WHOLE // GPU_STEP
#: How many requests pass a node before idle GPU counts as stranded; measured: the result is flat between 24 and 64.
HORIZON = 32.0
#: The weight of a request is its GPUs to this power: between counting jobs (0) and counting GPUs (1).
SIZE_POWER = 0.5
#: How choosy the placement is: with so many thousandths more left after a request, e times fewer such requests are
#: placed there. For requests that are placed on a GPU in part use, and on nodes with whole free GPUs.
CHOICE_IN_PART, CHOICE_IN_WHOLE = 200.0, 1000.0


class _RequestKind(NamedTuple):
    """A kind of request in steps: its part of the mix, its GPUs (whole GPUs, or cells of one), its host resource."""

    part: float
    gpu: int
    host: int
    #: the change of the key of the free resources
    key: int


#: Free GPU and free host resource are combined in one number, because these keys are looked up very often.
_HOSTS = 4096


class _Filling:
    """How a node fills up when one host resource is limited."""

    def __init__(self, shares: list[_RequestKind], wholes: list[_RequestKind]) -> None:
        self._shares = shares
        self._wholes = wholes
        self._holes: dict[int, tuple[float, float]] = {}
        self._rests: dict[int, float] = {}

    def left(self, holes: Iterable[int], whole: int, host: float) -> float:
        """Thousandths expected to stay idle, with these GPUs in part use (cells left), and `whole` free ones."""
        total = 0.0
        for hole in holes:
            key = hole * _HOSTS + int(host + 0.5)
            left, used = self._holes.get(key) or self._hole(key)
            total += left
            host -= used
        return total + (self._whole(whole * _HOSTS + int(host + 0.5)) if whole else 0.0)

    def _hole(self, key: int) -> tuple[float, float]:
        """The idle rest of a GPU in part use, and the host resource that filling the GPU takes."""
        size, host = divmod(key, _HOSTS)
        known = self._holes
        chance = chosen = left = used = 0.0
        for part, gpu, need, taken in self._shares:
            if gpu > size:
                break
            if need <= host:
                then_left, then_used = known.get(key - taken) or self._hole(key - taken)
                chance += part
                part *= math.exp(-then_left / CHOICE_IN_PART)
                chosen += part
                left += part * then_left
                used += part * (need + then_used)
        if chance:
            filled = 1.0 - math.exp(-chance * HORIZON)
            found = (filled * left / chosen + (1.0 - filled) * size * GPU_STEP, filled * used / chosen)
        else:
            found = (float(size * GPU_STEP), 0.0)
        known[key] = found
        return found

    def _whole(self, key: int) -> float:
        """The idle rest of whole free GPUs."""
        known = self._rests.get(key)
        if known is not None:
            return known
        gpus, host = divmod(key, _HOSTS)
        chance = chosen = left = 0.0
        for part, gpu, need, taken in self._wholes:
            if gpu > gpus:
                break
            if need <= host:
                then_left = self._whole(key - taken) if gpu < gpus else 0.0
                chance += part
                part *= math.exp(-then_left / CHOICE_IN_WHOLE)
                chosen += part
                left += part * then_left
        opened = _GPU_CELLS * _HOSTS + host
        for part, _, need, taken in self._shares:
            if need <= host:
                then_left, used = self._holes.get(opened - taken) or self._hole(opened - taken)
                if gpus > 1:
                    then_left += self._whole((gpus - 1) * _HOSTS + int(host - need - used + 0.5))
                chance += part
                part *= math.exp(-then_left / CHOICE_IN_WHOLE)
                chosen += part
                left += part * then_left
        if chance:
            filled = 1.0 - math.exp(-chance * HORIZON)
            found = filled * left / chosen + (1.0 - filled) * gpus * WHOLE
        else:
            found = float(gpus * WHOLE)
        self._rests[key] = found
        return found


class Leftover:
    """The expected leftover of nodes that take these kinds of requests, which are a part of the mix."""

    def __init__(self, portions: tuple[Portion, ...], total_weight: float) -> None:
        self._by_cpu = _filling(portions, total_weight, lambda request: -(-request.cpu_milli // CPU_STEP))
        self._by_memory = _filling(portions, total_weight, lambda request: -(-request.memory_bytes // MEMORY_STEP))
        self._known: dict[tuple[tuple[int, ...], int, int], float] = {}

    def __call__(self, free: tuple[int, ...], cpu_milli: int, memory_bytes: int) -> float:
        """The leftover of a node with these thousandths free on its GPUs (ascending, none zero), CPUs and memory."""
        if not free:
            return 0.0
        key = (free, _cells(cpu_milli, CPU_STEP), _cells(memory_bytes, MEMORY_STEP))
        left = self._known.get(key)
        if left is None:
            _, cpu, memory = key
            holes = [left // GPU_STEP for left in free if left < WHOLE]
            whole = len(free) - len(holes)
            left = max(self._by_cpu.left(holes, whole, cpu), self._by_memory.left(holes, whole, memory))
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = left
        return left


def leftover_of(mix: Mix, model: str) -> Leftover:
    """For nodes with this GPU model. Models with the same requests share the cache."""
    taken = tuple(p for p in mix.portions if not p.request.models or model in p.request.models)
    return _leftover(taken, math.fsum(map(_weight, mix.portions)))


@lru_cache(maxsize=16)
def _leftover(portions: tuple[Portion, ...], total_weight: float) -> Leftover:
    return Leftover(portions, total_weight)


def _weight(portion: Portion) -> float:
    return portion.count * math.pow(portion.request.total_gpu_milli / WHOLE, SIZE_POWER)


def _cells(amount: int, step: int) -> int:
    return min(max(0, amount // step), _HOSTS - 1)


def _filling(portions: Iterable[Portion], total_weight: float, host: Callable[[Request], int]) -> _Filling:
    """The kinds of the mix; kinds that are equal in steps are combined."""
    shares: dict[tuple[int, int], float] = {}
    wholes: dict[tuple[int, int], float] = {}
    for portion in portions:
        request = portion.request
        need = host(request)
        if request.gpu_milli:
            kinds, gpu = shares, -(-request.gpu_milli // GPU_STEP)
        else:
            kinds, gpu = wholes, request.gpus
        kinds[gpu, need] = kinds.get((gpu, need), 0.0) + _weight(portion) / total_weight
    return _Filling(_request_kinds(shares), _request_kinds(wholes))


def _request_kinds(kinds: dict[tuple[int, int], float]) -> list[_RequestKind]:
    return [_RequestKind(part, gpu, need, gpu * _HOSTS + need) for (gpu, need), part in sorted(kinds.items())]
