"""The figures of a run as plain values: one shape for the terminal, for JSON and for CSV."""

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
    jain: float


class Summary(TypedDict):
    policy: str
    blocking: str
    placement: str
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


def summary(rules: Rules, outcome: Outcome) -> Summary:
    return Summary(
        policy=rules.policy,
        blocking=rules.blocking.value,
        placement=rules.placement,
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
        users=_usage(outcome.gpu_seconds_by_user),
        groups=_usage(outcome.gpu_seconds_by_group()),
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, float | int | str]:
    """One level of names, for a line of a table; what belongs to single users and groups is left out."""
    found: dict[str, float | int | str] = {}
    for name, value in values.items():
        if name == "gpu_hours" and isinstance(value, Mapping):
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


def _usage(gpu_seconds: Mapping[str, float]) -> Usage:
    """The largest first."""
    ordered = sorted(gpu_seconds.items(), key=lambda item: (-item[1], item[0]))
    return Usage(gpu_hours={name: seconds / HOUR for name, seconds in ordered}, jain=jain_index(gpu_seconds.values()))
