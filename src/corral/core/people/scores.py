"""The score: a user's weighted recent usage of a GPU model, exact at any moment.

Usage is constant between changes, so the exponentially weighted integral has a closed form; nothing is polled
and nothing is lost over a restart. The score tends to the usage with the time constant given by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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


def change_usage(score: Score, delta: float, now: float, time_constant: float, since: float | None = None) -> Score:
    """The score from `now` on, when an allocation of `delta` GPUs begins (or ends: negative).

    `since` is the time when it began or ended, if that lies before `now`: the server was not running then.
    """
    usage = score.usage + delta
    # Sums of shares leave rounding errors; the score of a user who holds nothing must decay to zero.
    if abs(usage) < 1e-9:
        usage = 0.0
    at = max(now, score.at)
    value = score_at(score, now, time_constant)
    if since is not None:
        value = max(0.0, value + delta * -math.expm1(-max(0.0, at - since) / time_constant))
    return Score(value=value, usage=usage, at=at)


def with_unrecorded(score: Score | None, held: Iterable[tuple[float, float]], time_constant: float) -> Score:
    """The score with allocations that run without being recorded in it, each charged from its begin; `held` has the
    begin and the GPUs of all running allocations of the user. Those that began last are taken for the unrecorded ones.
    """
    running = sorted(held, reverse=True)
    unrecorded = sum(gpus for _, gpus in running) - (score.usage if score else 0.0)
    found = []
    for begin, gpus in running:
        if unrecorded > 1e-9:
            found.append((begin, min(gpus, unrecorded)))
            unrecorded -= gpus
    for begin, gpus in reversed(found):
        before = score or Score(at=begin)
        score = change_usage(before, gpus, max(begin, before.at), time_constant, since=begin)
    return score or Score()


def charge_afterwards(score: Score, gpus: float, seconds: float, now: float, time_constant: float) -> Score:
    """The score from `now` on, if GPUs were held for `seconds` longer than was counted."""
    more = gpus * -math.expm1(-max(0.0, seconds) / time_constant)
    return Score(value=score_at(score, now, time_constant) + more, usage=score.usage, at=max(now, score.at))
