"""Alert rules and alerts, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


SEVERITY_ORDER = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


def is_at_least(severity: Severity, other: Severity) -> bool:
    return SEVERITY_ORDER.index(severity) >= SEVERITY_ORDER.index(other)


class Comparison(StrEnum):
    ABOVE = "above"
    BELOW = "below"
    AT_LEAST = "at-least"
    AT_MOST = "at-most"

    @property
    def is_upward(self) -> bool:
        """Larger values are worse."""
        return self in (Comparison.ABOVE, Comparison.AT_LEAST)


class AlertState(StrEnum):
    #: the threshold is crossed, but not yet for as long as the rule wants
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class AlertAction(StrEnum):
    """An automatic action when an alert fires."""

    CORDON_NODE = "cordon-node"
    MARK_GPU = "mark-gpu"
    STOP_JOB = "stop-job"
    REQUEUE_JOB = "requeue-job"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertRule:
    """When an alert fires: a signal crosses a threshold for some time."""

    name: str
    #: a name in the registry of signals
    signal: str
    comparison: Comparison = Comparison.ABOVE
    threshold: float = 0.0
    for_seconds: float = 0.0
    #: the alert is resolved only after the threshold is not crossed for so long: a value at the edge must not fire
    #: twice
    clear_seconds: float = 60.0
    severity: Severity = Severity.WARNING
    enabled: bool = True
    #: patterns with * and ? of the subjects; empty means all
    subjects: tuple[str, ...] = ()
    #: the channels that are notified; empty means all
    channels: tuple[str, ...] = ()
    actions: tuple[AlertAction, ...] = ()
    notify_resolved: bool = True
    description: str = ""
    #: comes with corral: the rule can be changed and switched off, not deleted
    builtin: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """One violation of one rule by one subject, from its start to its end."""

    #: 0 until the store has assigned one
    id: int = 0
    rule: str
    subject: str
    #: gpu, node, job, queue, pool or volume
    scope: str
    severity: Severity
    state: AlertState = AlertState.PENDING
    #: the value of the last change, and the worst one since the start
    value: float = 0.0
    worst: float = 0.0
    text: str = ""
    #: the owner of the job or volume; "" means that only operators see the alert
    owner: str = ""
    pending_since: float = 0.0
    fired_at: float | None = None
    #: since when the threshold is no longer crossed
    clear_since: float | None = None
    resolved_at: float | None = None
    acknowledged_at: float | None = None
    acknowledged_by: str = ""
    note: str = ""
    #: a silence covers the alert: no notice was sent, and none will be of its end; if it fires longer than the silence,
    #: a notice is sent then
    silenced: bool = False
    #: the alert that explains this one, as text: no notice was sent either, unless this one fires longer
    folded_into: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of an alert: at most one alert per rule and subject is live."""
        return self.rule, self.subject

    @property
    def is_hushed(self) -> bool:
        return self.silenced or bool(self.folded_into)


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    """No notices about these alerts for a while; they are still recorded."""

    id: str
    #: patterns of rule names and of subjects
    rule: str = "*"
    subject: str = "*"
    starts_at: float = 0.0
    ends_at: float = 0.0
    reason: str = ""
    created_by: str = ""
