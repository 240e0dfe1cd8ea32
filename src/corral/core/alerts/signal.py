"""The signals that alert rules can watch. One file per signal in `signals`, one line in its registry.

A signal reads a number from one fact; thousands of facts are read in every round, and hardly any crosses a threshold.
So texts are made only for values that do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corral.core.alerts.facts import GpuFact, Scope
from corral.core.counts import noun_for


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The text about one subject, and the subjects of actions."""

    #: without the threshold
    text: str
    #: the owner of the job or volume; "" means that only operators see the alert
    owner: str = ""
    #: the subjects of an action
    jobs: tuple[str, ...] = ()
    node: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    scope: Scope
    #: what is measured, as text for users
    description: str
    #: "" for plain numbers
    unit: str
    #: the value of one fact of that scope; None if it cannot be measured now
    read: Callable[[Any], float | None]
    #: the text about a value
    describe: Callable[[Any, float], Finding]
    #: a value that changes by less is not stored: a quiet fleet writes nothing
    step: float = 1.0
    #: why an alert ends when its subject is no longer there
    gone: str = "it is no longer part of the cluster"


def quantity(value: float, unit: str) -> str:
    """A value with its unit: 97 °C, 12 min, 1 GPU, 3."""
    number = f"{value:.1f}".removesuffix(".0")
    if len(unit) > 2 and unit.endswith("s"):  # a noun, such as GPUs or jobs
        return f"{number} {noun_for(float(number), unit[:-1])}"
    return f"{number} {unit}" if unit else number


def gpu_label(gpu: GpuFact) -> str:
    """The GPU with its model, node and jobs."""
    parts = [gpu.model, f"on {gpu.node}"]
    if gpu.jobs:
        parts.append(f"under {', '.join(gpu.jobs[:3])}")
    return f"GPU {gpu.id} ({' '.join(part for part in parts if part)})"


def about_gpu(gpu: GpuFact, text: str, *, owner: str = "") -> Finding:
    return Finding(text=text, owner=owner, jobs=gpu.jobs, node=gpu.node)
