"""The verdict about an active check of a GPU: wrong results, values below limits, and stragglers. Pure.

A straggler is found by comparing the same measurement of GPUs of one model: its value is far below the median of all,
both in itself and by the usual spread. All measurements are rates, so that more is better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from corral.core.counts import counted

#: With fewer GPUs of a model nothing is compared.
LEAST_PEERS = 4
#: How far below the median a straggler is, at least, as a part of it.
SHORTFALL = 0.1
#: … and in units of the usual spread.
DEVIATIONS = 4.0
#: The spread of healthy GPUs is at least this part of the median: without it, equal values would make every other one a
#: straggler.
LEAST_SPREAD = 0.01
#: The median absolute deviation of a normal distribution is this part of its standard deviation.
_NORMAL = 1.4826


class Check(StrEnum):
    COMPUTE = "compute"
    MEMORY = "memory"
    PCIE = "pcie"
    DISK = "disk"
    NETWORK = "network"
    #: NVIDIA's own diagnosis, where it is installed
    DCGM = "dcgm"

    @property
    def is_of_node(self) -> bool:
        """Whether the check measures the node and not a GPU."""
        return self in (Check.DISK, Check.NETWORK)


#: What is checked if nothing is named. `dcgm` is left out where it is not installed.
USUAL = (Check.COMPUTE, Check.MEMORY, Check.PCIE, Check.DCGM)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    check: Check
    #: such as compute_tflops
    metric: str
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    check: Check
    #: with the numbers
    text: str
    #: whether the GPU computed or stored something wrong; otherwise it is slow
    is_fatal: bool = False


def below_limits(measured: Sequence[Measurement], limits: Mapping[str, float]) -> list[Problem]:
    """`limits` are the least values of the GPU's model, by metric."""
    return [
        Problem(check=item.check, text=f"{item.metric} is {item.value:.4g}, and at least {least:.4g} is expected")
        for item in measured
        if (least := limits.get(item.metric)) is not None and item.value < least
    ]


def stragglers(values: Mapping[str, float]) -> frozenset[str]:
    """The names whose value is far below the usual one."""
    if len(values) < LEAST_PEERS:
        return frozenset()
    middle = median(values.values())
    spread = median(abs(value - middle) for value in values.values()) * _NORMAL
    slack = max(SHORTFALL * middle, DEVIATIONS * max(spread, LEAST_SPREAD * middle))
    return frozenset(name for name, value in values.items() if value < middle - slack)


def slower_than_peers(
    gpu: str, measured: Sequence[Measurement], peers: Mapping[str, Mapping[str, float]]
) -> list[Problem]:
    """`peers` are the latest values of other GPUs of the same model, by metric and GPU."""
    found = []
    for item in measured:
        if item.check.is_of_node:
            continue
        values = {**peers.get(item.metric, {}), gpu: item.value}
        if gpu in stragglers(values):
            part = item.value / median(values.values())
            text = (
                f"{item.metric} is {item.value:.4g}, {part:.0%} of the "
                f"median of {counted(len(values), 'GPU')} of its model"
            )
            found.append(Problem(check=item.check, text=text))
    return found
