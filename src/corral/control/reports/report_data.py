"""The content of a report, as values. `report_numbers` computes them from records; `corral.reporting` draws them.

Every number that is a share or a mean is a property of the sums behind it, so that parts add up to the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.control.monitoring.usage_summary import GpuHours

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The span from `since` up to, but without, `until`."""

    since: float
    until: float

    @property
    def seconds(self) -> float:
        return self.until - self.since

    def before(self) -> Span:
        """The span of the same length that ended when this one began."""
        return Span(since=self.since - self.seconds, until=self.since)


NO_HOURS = GpuHours(key="")


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The share of one user, group or GPU model in the total."""

    name: str
    hours: GpuHours
    #: how many names this line stands for, when it is the rest of a long list
    stands_for: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One hour, day or week of the trend; the first and the last one may be cut."""

    span: Span
    #: GPU-hours that the cluster had; None where it is unknown
    available_gpu_hours: float | None
    hours: GpuHours
    completed: int = 0
    failed: int = 0
    stopped: int = 0

    @property
    def allocation(self) -> float | None:
        if not self.available_gpu_hours:
            return None
        return self.hours.gpu_hours / self.available_gpu_hours


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why attempts ended before their work was done."""

    name: str
    attempts: int
    #: that the attempts had held in the span
    gpu_hours: float
    #: the job was tried again
    is_retried: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """The outcomes of jobs. Jobs that ended are counted by their last attempt in the span."""

    submitted: int = 0
    #: attempts that got their GPUs
    started: int = 0
    completed: int = 0
    failed: int = 0
    stopped: int = 0
    #: attempts that were cut short and whose job went back to its queue
    interrupted: int = 0
    reasons: tuple[Reason, ...] = ()

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.stopped

    @property
    def failure_rate(self) -> float | None:
        """The share of failed jobs among those that ended by themselves; stopped jobs do not count."""
        finished = self.completed + self.failed
        return self.failed / finished if finished else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """How long attempts waited that got their GPUs within the span."""

    #: "" is all queues together
    queue: str
    attempts: int
    p50: float
    p90: float
    p99: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """The bin from `low` up to, but without, `high`; None means no upper end."""

    low: float
    high: float | None
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertCount:
    rule: str
    severity: str
    fired: int
    #: how long they lasted within the span, all together
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Mishap:
    """Something that went wrong with a GPU or a node: how often in the span."""

    subject: str
    what: str
    times: int
    last_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    alerts: tuple[AlertCount, ...] = ()
    gpus: tuple[Mishap, ...] = ()
    nodes: tuple[Mishap, ...] = ()

    @property
    def alerts_fired(self) -> int:
        return sum(alert.fired for alert in self.alerts)


class Tone(StrEnum):
    GOOD = "good"
    PLAIN = "plain"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence or two about what stands out."""

    tone: Tone
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """The numbers of a span that are compared with those of the span before."""

    available_gpu_hours: float | None = None
    hours: GpuHours = NO_HOURS
    users: int = 0
    outcomes: Outcomes = Outcomes()
    waiting: Waiting | None = None
    alerts_fired: int = 0

    @property
    def allocation(self) -> float | None:
        return self.hours.gpu_hours / self.available_gpu_hours if self.available_gpu_hours else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was submitted, held GPUs, started or ended."""
        return not (self.hours.gpu_hours or self.outcomes.submitted or self.outcomes.started or self.outcomes.ended)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportData:
    cluster: str
    title: str
    span: Span
    made_at: float
    totals: Totals
    #: None when nothing is known of the span before
    before: Totals | None
    step_seconds: float
    steps: tuple[Step, ...]
    queues: tuple[Waiting, ...]
    wait_bins: tuple[Bin, ...]
    models: tuple[Share, ...]
    #: attempts by their mean utilisation
    utilization_bins: tuple[Bin, ...]
    #: the largest first; the last line may be the rest
    top_users: tuple[Share, ...]
    groups: tuple[Share, ...]
    health: Health
    findings: tuple[Finding, ...] = ()
