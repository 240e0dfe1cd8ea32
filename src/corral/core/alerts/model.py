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
    """What corral does by itself when an alert fires."""

    CORDON_NODE = "cordon-node"
    MARK_GPU = "mark-gpu"
    STOP_JOB = "stop-job"
    REQUEUE_JOB = "requeue-job"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertRule:
    """When to tell somebody: a signal over or under a threshold, for so long."""

    name: str
    #: a name of the registry: what is measured, and of what
    signal: str
    comparison: Comparison = Comparison.ABOVE
    threshold: float = 0.0
    for_seconds: float = 0.0
    #: it is over only when it has been for so long: a value at the edge must not ring twice
    clear_seconds: float = 60.0
    severity: Severity = Severity.WARNING
    enabled: bool = True
    #: only these subjects: patterns with * and ?; empty means all
    subjects: tuple[str, ...] = ()
    #: only these channels; empty means all
    channels: tuple[str, ...] = ()
    actions: tuple[AlertAction, ...] = ()
    notify_resolved: bool = True
    description: str = ""
    #: it came with corral: it can be changed and switched off, not deleted
    builtin: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """One breach of one rule by one subject, from its beginning to its end."""

    #: 0 until the store has given it one
    id: int = 0
    rule: str
    subject: str
    #: gpu, node, job, queue, pool or volume
    scope: str
    severity: Severity
    state: AlertState = AlertState.PENDING
    #: the value when it began, and the worst one since
    value: float = 0.0
    worst: float = 0.0
    text: str = ""
    #: whose job or volume it is about; "" means: only operators see it
    owner: str = ""
    pending_since: float = 0.0
    fired_at: float | None = None
    #: since when the threshold is no longer crossed
    clear_since: float | None = None
    resolved_at: float | None = None
    acknowledged_at: float | None = None
    acknowledged_by: str = ""
    note: str = ""
    #: a silence covers it: nobody was told, nor will be of its end; if it outlasts the silence, it is told then
    silenced: bool = False
    #: the alert that explains this one, in words: nobody was told either, unless it outlasts that one
    folded_into: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """At most one alert of a rule and a subject is live."""
        return self.rule, self.subject

    @property
    def is_hushed(self) -> bool:
        return self.silenced or bool(self.folded_into)


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    """Say nothing about these for a while; they are still recorded."""

    id: str
    #: a pattern of rule names and one of subjects
    rule: str = "*"
    subject: str = "*"
    starts_at: float = 0.0
    ends_at: float = 0.0
    reason: str = ""
    created_by: str = ""
