"""What can be measured for alerts. One file per signal in `signals`, one line in its registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from corral.core.alerts.facts import Facts, GpuFact, Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One subject's value at this moment."""

    value: float
    #: what is the case, in words, without the threshold
    text: str
    #: whose job it is about; "" means: only operators see it
    owner: str = ""
    #: what an action would be done to
    jobs: tuple[str, ...] = ()
    node: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    scope: Scope
    #: what is measured, in words for people
    words: str
    #: "" for plain numbers
    unit: str
    #: gives no value for a subject that cannot be judged now
    measure: Callable[[Facts], Mapping[str, Value]]
    #: a worst value that grows by less is not worth writing down
    step: float = 1.0
    #: why an alert ends when its subject is no longer there
    gone: str = "it is no longer part of the cluster"


def quantity(value: float, unit: str) -> str:
    """A value as people read it: 97 °C, 12 min, 3."""
    number = f"{value:.1f}".removesuffix(".0")
    return f"{number} {unit}" if unit else number


def gpu_words(gpu: GpuFact) -> str:
    """Which GPU this is, with what an operator looks for next."""
    parts = [gpu.model, f"on {gpu.node}"]
    if gpu.jobs:
        parts.append(f"under {', '.join(gpu.jobs[:3])}")
    return f"GPU {gpu.id} ({' '.join(part for part in parts if part)})"


def of_reading(
    facts: Facts, read: Callable[[GpuFact], float | None], says: Callable[[GpuFact, float], str]
) -> dict[str, Value]:
    """The value of every GPU whose reading can be believed."""
    found = {}
    for gpu in facts.gpus:
        value = read(gpu)
        if value is not None:
            found[gpu.id] = Value(value=value, text=says(gpu, value), jobs=gpu.jobs, node=gpu.node)
    return found
