"""The score: how much a user has had of a GPU model lately, exact at any moment.

Usage is constant between changes, so the exponentially weighted integral has a closed form; nothing is polled
and nothing is lost over a restart. The score tends to the usage with the time constant given by the caller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """A user's weighted usage of one GPU model: `value` at time `at`, with `usage` GPUs held since."""

    value: float = 0.0
    usage: float = 0.0
    at: float = 0.0


def score_at(score: Score, now: float, time_constant: float) -> float:
    """The score's value at `now`, which must not lie before its last change by more than clock jitter."""
    elapsed = max(0.0, now - score.at)
    kept = math.exp(-elapsed / time_constant)
    return score.value * kept + score.usage * -math.expm1(-elapsed / time_constant)


def change_usage(score: Score, delta: float, now: float, time_constant: float) -> Score:
    """The score from `now` on, when an allocation of `delta` GPUs begins (or ends: negative)."""
    usage = score.usage + delta
    # Sums of shares leave dust in floating point; a user who holds nothing must decay to nothing.
    if abs(usage) < 1e-9:
        usage = 0.0
    return Score(value=score_at(score, now, time_constant), usage=usage, at=max(now, score.at))


def charge_afterwards(score: Score, gpus: float, seconds: float, now: float, time_constant: float) -> Score:
    """The score from `now` on, when it turns out that GPUs were held for a while longer than was known."""
    more = gpus * -math.expm1(-max(0.0, seconds) / time_constant)
    return Score(value=score_at(score, now, time_constant) + more, usage=score.usage, at=max(now, score.at))
