"""Whether an attempt leaves its GPUs idle: over a recent window, not since its start.

The utilization of a GPU is summed up in a few buckets of time. An attempt is idle if the whole window is known for each
of its GPUs and their mean utilization is below the limit; it is active if the mean is above the limit even with zero
for all unknown time. Otherwise the activity is unknown: missing readings prove nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import JobKind
from corral.core.monitoring.attempt_usage import IDLE_UTILIZATION

#: The most parts that a window is divided into.
MAX_BUCKETS = 20
#: A window is known when readings came in at least this share of its parts.
KNOWN_SHARE = 0.9
#: How many parts with readings are enough for a statement about now, though not about the whole window.
QUIET_BUCKETS = 3


class Activity(StrEnum):
    ACTIVE = "active"
    #: over the whole window
    IDLE = "idle"
    #: for as long as there are readings, which is less than the window: enough for a job that was warned before
    QUIET = "quiet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleRules:
    """The rules for jobs that hold idle GPUs."""

    enabled: bool = False
    window_seconds: float = 1800.0
    #: mean utilization of its GPUs below which a job is idle
    utilization: float = IDLE_UTILIZATION
    #: from the warning to the stop
    warning_seconds: float = 600.0
    #: the extension that the owner may ask for, once per warning
    extension_seconds: float = 3600.0
    include_workbenches: bool = False
    #: the time between two readings
    interval_seconds: float = 5.0

    @property
    def buckets(self) -> int:
        """Parts of the window, each long enough for two readings."""
        return max(1, min(MAX_BUCKETS, int(self.window_seconds / (2 * self.interval_seconds))))

    @property
    def bucket_seconds(self) -> float:
        return self.window_seconds / self.buckets

    def counts(self, kind: JobKind) -> bool:
        return self.enabled and (self.include_workbenches or kind is not JobKind.WORKBENCH)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    #: which part of time, counted in buckets since the epoch
    number: int
    total: float
    readings: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Recent:
    """The recent utilization of one GPU by one attempt, oldest bucket first."""

    buckets: tuple[Bucket, ...] = ()

    @property
    def mean(self) -> float:
        readings = sum(bucket.readings for bucket in self.buckets)
        return sum(bucket.total for bucket in self.buckets) / readings if readings else 0.0


NOTHING_SEEN = Recent()


def observe(recent: Recent, at: float, utilization: float, rules: IdleRules) -> Recent:
    """Add a reading; buckets before the window are dropped."""
    number = int(at // rules.bucket_seconds)
    last = recent.buckets[-1] if recent.buckets else None
    if last is not None and last.number == number:
        now = Bucket(number=number, total=last.total + utilization, readings=last.readings + 1)
        return Recent(buckets=(*recent.buckets[:-1], now))
    if last is not None and last.number > number + 1:
        # The clock was set back: earlier buckets are not comparable any more.
        return Recent(buckets=(Bucket(number=number, total=utilization, readings=1),))
    if last is not None and last.number > number:
        return recent
    # One more bucket than the window has: the first and the last are partial.
    kept = tuple(bucket for bucket in recent.buckets if bucket.number >= number - rules.buckets)
    return Recent(buckets=(*kept, Bucket(number=number, total=utilization, readings=1)))


def activity(gpus: Collection[Recent], now: float, rules: IdleRules) -> Activity:
    """The activity of an attempt from all its GPUs."""
    if not gpus:
        return Activity.UNKNOWN
    present = int(now // rules.bucket_seconds)
    means = [_least_mean(recent, present, rules) for recent in gpus]
    if sum(means) / len(means) >= rules.utilization:
        return Activity.ACTIVE
    if all(_is_known(recent, present, rules) for recent in gpus):
        return Activity.IDLE
    quiet = mean_use(gpus) < rules.utilization and all(_is_seen_now(recent, present, rules) for recent in gpus)
    return Activity.QUIET if quiet else Activity.UNKNOWN


def mean_use(gpus: Collection[Recent]) -> float:
    return sum(recent.mean for recent in gpus) / len(gpus) if gpus else 0.0


def _is_known(recent: Recent, present: int, rules: IdleRules) -> bool:
    """Whether readings reach from the beginning of the window to its end without much missing."""
    known = [bucket.number for bucket in recent.buckets if bucket.number >= present - rules.buckets]
    return (
        bool(known)
        and known[0] == present - rules.buckets
        and known[-1] >= present - 1
        and len(known) >= KNOWN_SHARE * (rules.buckets + 1)
    )


def _is_seen_now(recent: Recent, present: int, rules: IdleRules) -> bool:
    return len(recent.buckets) >= min(QUIET_BUCKETS, rules.buckets) and recent.buckets[-1].number >= present - 1


def _least_mean(recent: Recent, present: int, rules: IdleRules) -> float:
    """The mean over the window with zero for unknown time."""
    known = [bucket for bucket in recent.buckets if bucket.number >= present - rules.buckets]
    return sum(bucket.total / bucket.readings for bucket in known) / (rules.buckets + 1)
