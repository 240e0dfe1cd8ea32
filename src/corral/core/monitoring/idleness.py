"""Whether an attempt that holds GPUs does nothing with them: over a recent window, not since its start.

A GPU's use is gathered in a few buckets of time. An attempt is idle when the whole window is known for each of its
GPUs and their mean use lies below the limit; it is active when even an unknown rest could not bring it there. In
between nothing is known, and nothing is said: missing readings prove nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import JobKind

#: The most parts that a window is divided into.
MAX_BUCKETS = 20
#: A window is known when readings came in at least this share of its parts.
KNOWN_SHARE = 0.9
#: So many parts with readings tell something about now, though not about the whole window.
QUIET_BUCKETS = 3


class Activity(StrEnum):
    ACTIVE = "active"
    #: over the whole window
    IDLE = "idle"
    #: for as long as there are readings, which is less than the window: enough for who was warned before
    QUIET = "quiet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleRules:
    """What happens to a job that holds GPUs and does nothing."""

    enabled: bool = False
    window_seconds: float = 1800.0
    #: mean use of its GPUs below which a job is idle
    utilization: float = 0.02
    #: from the warning to the stop
    warning_seconds: float = 600.0
    #: what its owner gets by asking, once per warning
    extension_seconds: float = 3600.0
    include_workbenches: bool = False
    #: how often readings come
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
    """The use of one GPU by one attempt in the recent past, oldest bucket first."""

    buckets: tuple[Bucket, ...] = ()

    @property
    def mean(self) -> float:
        readings = sum(bucket.readings for bucket in self.buckets)
        return sum(bucket.total for bucket in self.buckets) / readings if readings else 0.0


NOTHING_SEEN = Recent()


def observe(recent: Recent, at: float, utilization: float, rules: IdleRules) -> Recent:
    """One more reading; what has left the window is dropped."""
    number = int(at // rules.bucket_seconds)
    last = recent.buckets[-1] if recent.buckets else None
    if last is not None and last.number == number:
        now = Bucket(number=number, total=last.total + utilization, readings=last.readings + 1)
        return Recent(buckets=(*recent.buckets[:-1], now))
    if last is not None and last.number > number + 1:
        # The clock was set back: what was seen before cannot be placed any more.
        return Recent(buckets=(Bucket(number=number, total=utilization, readings=1),))
    if last is not None and last.number > number:
        return recent
    # One more than the window has: the first and the last are there in part only.
    kept = tuple(bucket for bucket in recent.buckets if bucket.number >= number - rules.buckets)
    return Recent(buckets=(*kept, Bucket(number=number, total=utilization, readings=1)))


def activity(gpus: Collection[Recent], now: float, rules: IdleRules) -> Activity:
    """What the GPUs of one attempt tell together."""
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
    """The mean over the window if everything unknown was idleness."""
    known = [bucket for bucket in recent.buckets if bucket.number >= present - rules.buckets]
    return sum(bucket.total / bucket.readings for bucket in known) / (rules.buckets + 1)
