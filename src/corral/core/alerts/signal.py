"""What can be measured for alerts. One file per signal in `signals`, one line in its registry.

A signal reads a number from one fact; thousands of them are read in every round, and hardly any crosses a threshold.
So what is said about one is made only when somebody is to hear of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corral.core.alerts.facts import GpuFact, Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What is to be said of one subject at this moment."""

    #: what is the case, in words, without the threshold
    text: str
    #: whose job or volume it is about; "" means: only operators see it
    owner: str = ""
    #: what an action would be done to
    jobs: tuple[str, ...] = ()
    node: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    scope: Scope
    #: what is measured, in words for people
    description: str
    #: "" for plain numbers
    unit: str
    #: the value of one fact of that scope; None when it cannot be judged now
    read: Callable[[Any], float | None]
    #: what is to be said about it
    describe: Callable[[Any, float], Finding]
    #: a worst value that grows by less is not worth writing down
    step: float = 1.0
    #: why an alert ends when its subject is no longer there
    gone: str = "it is no longer part of the cluster"


def quantity(value: float, unit: str) -> str:
    """A value as people read it: 97 °C, 12 min, 3."""
    number = f"{value:.1f}".removesuffix(".0")
    return f"{number} {unit}" if unit else number


def gpu_label(gpu: GpuFact) -> str:
    """Which GPU this is, with what an operator looks for next."""
    parts = [gpu.model, f"on {gpu.node}"]
    if gpu.jobs:
        parts.append(f"under {', '.join(gpu.jobs[:3])}")
    return f"GPU {gpu.id} ({' '.join(part for part in parts if part)})"


def about_gpu(gpu: GpuFact, text: str, *, owner: str = "") -> Finding:
    return Finding(text=text, owner=owner, jobs=gpu.jobs, node=gpu.node)
