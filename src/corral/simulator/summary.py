"""The figures of a run as plain values, the same for the terminal, JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from corral.simulator.outcome import HOUR, Distribution, Outcome, jain_index
from corral.simulator.replay import Rules


class Spread(TypedDict):
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class Usage(TypedDict):
    gpu_hours: dict[str, float]
    #: users or groups with at least one
    preemptions: dict[str, float]
    lost_gpu_hours: dict[str, float]
    jain: float


class Summary(TypedDict):
    policy: str
    blocking: str
    placement: str
    preempts: bool
    jobs: int
    unfinished_jobs: int
    cut_jobs: int
    wait_seconds: Spread
    completion_seconds: Spread
    slowdown: Spread
    makespan_seconds: float
    utilization: float
    gpu_hours: float
    lost_gpu_hours: float
    preemptions: int
    users: Usage
    groups: Usage


#: figures by user or group
_OF_EACH = ("gpu_hours", "preemptions", "lost_gpu_hours")


def summary(rules: Rules, outcome: Outcome) -> Summary:
    return Summary(
        policy=rules.policy,
        blocking=rules.blocking.value,
        placement=rules.placement,
        preempts=rules.preempts,
        jobs=outcome.ended_jobs,
        unfinished_jobs=outcome.unfinished_jobs,
        cut_jobs=outcome.cut_jobs,
        wait_seconds=spread(outcome.waits),
        completion_seconds=spread(outcome.completions),
        slowdown=spread(outcome.slowdowns),
        makespan_seconds=outcome.makespan_seconds,
        utilization=outcome.utilization,
        gpu_hours=outcome.gpu_seconds / HOUR,
        lost_gpu_hours=outcome.lost_gpu_seconds / HOUR,
        preemptions=outcome.preemptions,
        users=_usage(outcome.gpu_seconds_by_user, outcome.preemptions_by_user, outcome.lost_gpu_seconds_by_user),
        groups=_usage(
            outcome.gpu_seconds_by_group(),
            outcome.by_group(outcome.preemptions_by_user),
            outcome.by_group(outcome.lost_gpu_seconds_by_user),
        ),
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, float | int | str]:
    """The figures as one level of names, for a line of a table; figures by user and group are left out."""
    found: dict[str, float | int | str] = {}
    for name, value in values.items():
        if name in _OF_EACH and isinstance(value, Mapping):
            continue
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}_")
        else:
            found[f"{prefix}{name}"] = value
    return found


def spread(values: Distribution) -> Spread:
    return Spread(
        mean=values.mean,
        p50=values.percentile(50),
        p90=values.percentile(90),
        p99=values.percentile(99),
        max=values.most,
    )


def _usage(gpu_seconds: Mapping[str, float], preemptions: Mapping[str, float], lost: Mapping[str, float]) -> Usage:
    return Usage(
        gpu_hours={name: seconds / HOUR for name, seconds in _largest_first(gpu_seconds)},
        preemptions={name: count for name, count in _largest_first(preemptions) if count},
        lost_gpu_hours={name: seconds / HOUR for name, seconds in _largest_first(lost) if seconds},
        jain=jain_index(gpu_seconds.values()),
    )


def _largest_first(amounts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
