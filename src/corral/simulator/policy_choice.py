"""The ordering policy that would have served a window of past jobs best, and its price for some of them.

Policies are compared by the mean completion time of all jobs. A policy is recommended only if no size of jobs and no
group of users would have waited much longer for it: a mean of thousands of small jobs hides a few large ones that never
start. What a faster policy costs is in the text all the same, so that an operator can decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.core.counts import counted
from corral.core.quantities import format_duration
from corral.simulator.measured import Share, WindowOutcome
from corral.simulator.outcome import HOUR

#: A recommended policy has a mean completion time that is shorter by at least this part.
LEAST_GAIN = 0.03
#: No size and no group of jobs may take longer than before by more than this part.
MOST_LOSS = 0.1
#: A difference below this is no price, however large it is as a part.
LEAST_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """The window replayed with one policy in all queues."""

    policy: str
    preempts: bool
    #: whether all queues have this policy at present
    is_present: bool
    outcome: WindowOutcome

    @property
    def name(self) -> str:
        return f"{self.policy} that preempts" if self.preempts else self.policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    #: places in the list of policies: the recommended one, None to keep the present rules; and the fastest one
    recommended: int | None
    fastest: int
    text: str

    @property
    def shown(self) -> int:
        """The policy that the present rules are compared with in detail."""
        return self.fastest if self.recommended is None else self.recommended


@dataclass(frozen=True, kw_only=True, slots=True)
class _Price:
    """A size or a group of jobs whose mean completion time is longer than before."""

    jobs: str
    before: float
    after: float

    @property
    def part(self) -> float:
        return self.after / self.before - 1.0

    @property
    def text(self) -> str:
        return f"{self.jobs} {format_duration(self.after)} instead of {format_duration(self.before)} ({self.part:+.0%})"


def choose(base: WindowOutcome, tried: Sequence[Tried]) -> Choice:
    """`tried` has all policies; the present one may be among them."""
    by_mean = sorted(range(len(tried)), key=lambda number: (_mean(tried[number].outcome), number))
    before = _mean(base)
    better = [
        number
        for number in by_mean
        if not tried[number].is_present and _mean(tried[number].outcome) <= before * (1 - LEAST_GAIN)
    ]
    fair = [number for number in better if not _is_too_dear(base, tried[number].outcome)]
    recommended = fair[0] if fair else None
    return Choice(
        recommended=recommended,
        fastest=by_mean[0],
        text=_text(base, tried, recommended, better[0] if better else None),
    )


def policy_rows(base: WindowOutcome, tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """The figures of each policy, in the order of `tried`."""
    return [
        {
            "policy": choice.policy,
            "preempts": choice.preempts,
            "is_present": choice.is_present,
            "jobs": choice.outcome.measured_jobs,
            "wait_mean_seconds": choice.outcome.total.waits.mean,
            "wait_p99_seconds": _p99(choice.outcome.total.waits),
            "completion_mean_seconds": _mean(choice.outcome),
            "completion_p99_seconds": _p99(choice.outcome.total.completions),
            "percent": _percent(_mean(base), _mean(choice.outcome)),
            "preemptions": choice.outcome.total.preemptions,
            "lost_gpu_hours": choice.outcome.total.lost_gpu_seconds / HOUR,
            "jain_slowdown": choice.outcome.jain_slowdown,
            "sizes": _parts(base.sizes, choice.outcome.sizes),
            "groups": _parts(base.groups, choice.outcome.groups),
        }
        for choice in tried
    ]


def _parts(base: Mapping[str, Share], shares: Mapping[str, Share]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "jobs": share.completions.count,
            "wait_mean_seconds": share.waits.mean,
            "completion_mean_seconds": share.completions.mean,
            "percent": _percent(base[name].completions.mean if name in base else 0.0, share.completions.mean),
        }
        for name, share in sorted(shares.items())
        if share.completions.count
    ]


def _is_too_dear(base: WindowOutcome, outcome: WindowOutcome) -> bool:
    """Whether some jobs take much longer, or fewer jobs end at all."""
    is_incomplete = outcome.measured_jobs < base.measured_jobs
    return is_incomplete or any(price.part > MOST_LOSS for price in _prices(base, outcome))


def _prices(base: WindowOutcome, outcome: WindowOutcome) -> list[_Price]:
    """The largest part first."""
    return sorted(_slower(base, outcome), key=lambda price: (-price.part, price.jobs))


def _slower(base: WindowOutcome, outcome: WindowOutcome) -> Iterator[_Price]:
    kinds = (("jobs of size {}", base.sizes, outcome.sizes), ("jobs of group {}", base.groups, outcome.groups))
    for label, befores, afters in kinds:
        if len(afters) < 2:
            continue  # that would be all jobs
        for name, share in afters.items():
            before = befores[name].completions.mean if name in befores else 0.0
            if share.completions.count and before and share.completions.mean - before >= LEAST_SECONDS:
                yield _Price(jobs=label.format(name or "none"), before=before, after=share.completions.mean)


def _text(base: WindowOutcome, tried: Sequence[Tried], recommended: int | None, fastest: int | None) -> str:
    if fastest is None:
        return (
            f"Keep the present rules: no policy would have been faster by {LEAST_GAIN:.0%} or more "
            f"(mean completion {_duration(_mean(base))})."
        )
    parts = []
    if recommended is not None:
        parts.append(f"Recommended: {tried[recommended].name}. {_effect(base, tried[recommended])}")
    else:
        parts.append(f"Keep the present rules: every faster policy makes some jobs slower by over {MOST_LOSS:.0%}.")
    if fastest != recommended:
        parts.append(f"The fastest is {tried[fastest].name}. {_effect(base, tried[fastest])}")
    return " ".join(parts)


def _effect(base: WindowOutcome, choice: Tried) -> str:
    before, after = _mean(base), _mean(choice.outcome)
    change = f"Mean completion {_duration(after)} instead of {_duration(before)} ({after / before - 1:+.0%})."
    costs = [price.text for price in _prices(base, choice.outcome)]
    if choice.outcome.measured_jobs < base.measured_jobs:
        costs.append(f"{counted(base.measured_jobs - choice.outcome.measured_jobs, 'job')} would not have ended")
    if choice.outcome.total.preemptions > base.total.preemptions:
        costs.append(
            f"{counted(choice.outcome.total.preemptions, 'preemption')} instead of {base.total.preemptions}, "
            f"{choice.outcome.total.lost_gpu_seconds / HOUR:.3g} GPU-hours lost"
        )
    return f"{change} Price: {'; '.join(costs) if costs else 'none'}."


def _duration(seconds: float) -> str:
    return format_duration(max(1.0, seconds))


def _mean(outcome: WindowOutcome) -> float:
    return outcome.total.completions.mean


def _p99(distribution: Any) -> float:
    return float(distribution.percentile(99)) if distribution.count else 0.0


def _percent(before: float, after: float) -> float | None:
    return (after / before - 1.0) * 100 if before else None
