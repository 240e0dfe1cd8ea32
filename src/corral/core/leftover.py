"""How much idle GPU of a node is expected to stay unusable, given the mix of requests.

Suppose that requests of the mix keep coming to the node and that each one which fits is taken, until nothing fits or
a fair time has passed. What is idle then is the leftover. The expectation is worked out by recursion over what is
free: GPU by GPU - one that is shared already is filled up first, with what it is expected to cost in host resources
on average, then the whole ones. Done once for CPUs and once for memory; the scarcer of the two decides.

Compared with counting which kinds of requests still fit now, this sees ahead: that a hole of 190 thousandths will
hardly be filled, that two CPUs more per GPU let the last GPU be used, that an empty node is worth keeping whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from corral.core.mix import Mix
from corral.core.model import WHOLE, Request

#: Steps in which a GPU, CPUs and memory are counted here: finer ones cost time and decide alike.
GPU_STEP = 10
CPU_STEP = 1000
MEMORY_STEP = 4 * 2**30
_GPU_CELLS = WHOLE // GPU_STEP
#: Requests that pass a node before what they left is called unusable; measured, flat between 24 and 64.
HORIZON = 32.0
#: How much more a request counts for its GPUs, as a power: in between counting jobs (0) and counting GPUs (1).
SIZE_POWER = 0.5


class _Want(NamedTuple):
    """A kind of request in steps: its part of the mix, its GPUs (whole ones, or cells of one), its host resource."""

    part: float
    gpu: int
    host: int


class _Course:
    """How a node fills up when one host resource is limited."""

    def __init__(self, shares: list[_Want], wholes: list[_Want]) -> None:
        self._shares = shares
        self._wholes = wholes
        self._holes: dict[tuple[int, int], tuple[float, float]] = {}
        self._rests: dict[tuple[int, int], float] = {}

    def left(self, holes: Iterable[int], whole: int, host: float) -> float:
        """Thousandths expected to stay idle, with these GPUs in part use (cells left), and `whole` free ones."""
        total = 0.0
        for hole in holes:
            left, used = self._hole(hole, int(host + 0.5))
            total += left
            host -= used
        return total + (self._whole(whole, int(host + 0.5)) if whole else 0.0)

    def _hole(self, size: int, host: int) -> tuple[float, float]:
        """What stays idle of a GPU in part use, and what filling the rest takes of the host."""
        key = (size, host)
        known = self._holes.get(key)
        if known is not None:
            return known
        chance = left = used = 0.0
        for part, gpu, need in self._shares:
            if gpu > size:
                break
            if need <= host:
                then_left, then_used = self._hole(size - gpu, host - need)
                chance += part
                left += part * then_left
                used += part * (need + then_used)
        if chance:
            filled = 1.0 - math.exp(-chance * HORIZON)
            found = (filled * left / chance + (1.0 - filled) * size * GPU_STEP, filled * used / chance)
        else:
            found = (float(size * GPU_STEP), 0.0)
        self._holes[key] = found
        return found

    def _whole(self, gpus: int, host: int) -> float:
        key = (gpus, host)
        known = self._rests.get(key)
        if known is not None:
            return known
        chance = left = 0.0
        for part, gpu, need in self._wholes:
            if gpu > gpus:
                break
            if need <= host:
                chance += part
                if gpu < gpus:
                    left += part * self._whole(gpus - gpu, host - need)
        for part, gpu, need in self._shares:
            if need <= host:
                then_left, used = self._hole(_GPU_CELLS - gpu, host - need)
                chance += part
                left += part * then_left
                if gpus > 1:
                    left += part * self._whole(gpus - 1, int(host - need - used + 0.5))
        if chance:
            filled = 1.0 - math.exp(-chance * HORIZON)
            found = filled * left / chance + (1.0 - filled) * gpus * WHOLE
        else:
            found = float(gpus * WHOLE)
        self._rests[key] = found
        return found


class Leftover:
    """The expected leftover of nodes with one GPU model, for one mix."""

    def __init__(self, mix: Mix, model: str) -> None:
        self._by_cpu = _course(mix, model, lambda request: -(-request.cpu_milli // CPU_STEP))
        self._by_memory = _course(mix, model, lambda request: -(-request.memory_bytes // MEMORY_STEP))
        self._known: dict[tuple[tuple[int, ...], int, int], float] = {}

    def __call__(self, free: tuple[int, ...], cpu_milli: int, memory_bytes: int) -> float:
        """Of a node with these thousandths left on its GPUs (ascending, none zero), CPUs and memory."""
        if not free:
            return 0.0
        cpu, memory = max(0, cpu_milli // CPU_STEP), max(0, memory_bytes // MEMORY_STEP)
        key = (free, cpu, memory)
        left = self._known.get(key)
        if left is None:
            holes = [left // GPU_STEP for left in free if left < WHOLE]
            whole = len(free) - len(holes)
            left = max(self._by_cpu.left(holes, whole, cpu), self._by_memory.left(holes, whole, memory))
            self._known[key] = left
        return left


def _course(mix: Mix, model: str, host: Callable[[Request], int]) -> _Course:
    """The wants of the mix, those that look alike in steps taken together."""
    weights = [portion.count * (portion.request.total_gpu_milli / WHOLE) ** SIZE_POWER for portion in mix.portions]
    total = math.fsum(weights)
    shares: dict[tuple[int, int], float] = {}
    wholes: dict[tuple[int, int], float] = {}
    for portion, weight in zip(mix.portions, weights, strict=True):
        request = portion.request
        if request.models and model not in request.models:
            continue  # it counts for how rare the others are, and never comes here
        if request.gpu_milli:
            kinds, gpu = shares, -(-request.gpu_milli // GPU_STEP)
        else:
            kinds, gpu = wholes, request.gpus
        key = (gpu, host(request))
        kinds[key] = kinds.get(key, 0.0) + weight / total
    return _Course(_sorted(shares), _sorted(wholes))


def _sorted(kinds: dict[tuple[int, int], float]) -> list[_Want]:
    return [_Want(part, gpu, need) for (gpu, need), part in sorted(kinds.items())]
