"""API schemas: alerts, silences and alert rules."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field

from corral.core.alerts.model import Alert, AlertAction, AlertRule, Comparison, Severity, Silence
from corral.core.alerts.signal import Signal
from corral.core.alerts.signals import SIGNALS
from corral.server.schemas.base import (
    Body,
    Description,
    Duration,
    Label,
    Number,
    View,
    number,
    rfc3339,
    rfc3339_or_none,
)

SeverityWord = Literal["info", "warning", "critical"]
ComparisonWord = Literal["above", "below", "at-least", "at-most"]
ActionWord = Literal["cordon-node", "mark-gpu", "stop-job", "requeue-job"]
Threshold = Annotated[float, Field(ge=-1e15, le=1e15)]
Patterns = Annotated[
    list[Label], Field(max_length=100, description="Only these subjects; * and ? are wildcards. Empty: all.")
]
Names = Annotated[list[Label], Field(max_length=100, description="Only these channels. Empty: all.")]


class AlertView(View):
    id: int
    rule: str
    subject: str
    scope: str
    severity: SeverityWord
    state: Literal["pending", "firing", "resolved"]
    unit: str = Field(description="Unit of the value; empty if the rule was removed.")
    value: Number = Field(description="The latest value.")
    worst: Number
    text: str
    owner: str | None = Field(description="Owner of the job that the alert is about.")
    pending_since: str
    fired_at: str | None
    resolved_at: str | None
    acknowledged_at: str | None
    acknowledged_by: str | None
    note: str
    silenced: bool = Field(description="A silence covers the alert: no notice was sent.")
    folded_into: str | None = Field(description="The alert that explains this one; no notice was sent for this one.")


class Acknowledgement(Body):
    note: Description = ""


class SilenceView(View):
    id: str
    rule: str
    subject: str
    starts_at: str
    ends_at: str
    reason: str
    created_by: str


class SilenceCreate(Body):
    rule: Label = Field(default="*", description="A pattern of rule names; * and ? are wildcards.")
    subject: Label = Field(default="*", description="A pattern of subjects, such as gpu-node-3*.")
    duration: Duration = Field(description="For how long from now.")
    reason: Description = ""


class RuleView(View):
    name: str
    signal: str
    scope: str
    unit: str
    comparison: ComparisonWord
    threshold: Number
    for_seconds: Number
    clear_seconds: Number
    severity: SeverityWord
    enabled: bool
    subjects: list[str]
    channels: list[str]
    actions: list[ActionWord]
    notify_resolved: bool
    description: str
    builtin: bool


class RuleEdit(Body):
    """Fields that are left out keep their values."""

    signal: Label = ""
    comparison: ComparisonWord = "above"
    threshold: Threshold = 0.0
    for_seconds: Duration = Field(
        default=0.0, description="The condition must hold for so long before the alert fires."
    )
    clear_seconds: Duration = Field(
        default=60.0, description="The alert is resolved once the condition has not held for so long."
    )
    severity: SeverityWord = "warning"
    enabled: bool = True
    subjects: Patterns = Field(default_factory=list)
    channels: Names = Field(default_factory=list)
    actions: Annotated[list[ActionWord], Field(max_length=4)] = Field(default_factory=list)
    notify_resolved: bool = True
    description: Description = ""


class RuleCreate(RuleEdit):
    name: Label
    signal: Label
    threshold: Threshold


class SignalView(View):
    """A signal that a rule can watch."""

    name: str
    scope: str
    unit: str
    description: str


def alert_view(alert: Alert, rules: dict[str, AlertRule]) -> AlertView:
    rule = rules.get(alert.rule)
    signal = SIGNALS.get(rule.signal) if rule is not None else None
    return AlertView(
        id=alert.id,
        rule=alert.rule,
        subject=alert.subject,
        scope=alert.scope,
        severity=alert.severity.value,
        state=alert.state.value,
        unit=signal.unit if signal is not None else "",
        value=number(round(alert.value, 3)),
        worst=number(round(alert.worst, 3)),
        text=alert.text,
        owner=alert.owner or None,
        pending_since=rfc3339(alert.pending_since),
        fired_at=rfc3339_or_none(alert.fired_at),
        resolved_at=rfc3339_or_none(alert.resolved_at),
        acknowledged_at=rfc3339_or_none(alert.acknowledged_at),
        acknowledged_by=alert.acknowledged_by or None,
        note=alert.note,
        silenced=alert.silenced,
        folded_into=alert.folded_into or None,
    )


def silence_view(silence: Silence) -> SilenceView:
    return SilenceView(
        id=silence.id,
        rule=silence.rule,
        subject=silence.subject,
        starts_at=rfc3339(silence.starts_at),
        ends_at=rfc3339(silence.ends_at),
        reason=silence.reason,
        created_by=silence.created_by,
    )


def rule_view(rule: AlertRule) -> RuleView:
    signal = SIGNALS.get(rule.signal)
    return RuleView(
        name=rule.name,
        signal=rule.signal,
        scope=signal.scope.value if signal is not None else "",
        unit=signal.unit if signal is not None else "",
        comparison=rule.comparison.value,
        threshold=number(rule.threshold),
        for_seconds=number(rule.for_seconds),
        clear_seconds=number(rule.clear_seconds),
        severity=rule.severity.value,
        enabled=rule.enabled,
        subjects=list(rule.subjects),
        channels=list(rule.channels),
        actions=[action.value for action in rule.actions],
        notify_resolved=rule.notify_resolved,
        description=rule.description,
        builtin=rule.builtin,
    )


def signal_view(name: str, signal: Signal) -> SignalView:
    return SignalView(name=name, scope=signal.scope.value, unit=signal.unit, description=signal.description)


def rule_of(body: RuleCreate) -> AlertRule:
    known = {field.name for field in fields(AlertRule)}
    return AlertRule(**{name: value for name, value in _values(body, body.model_dump()).items() if name in known})


def changes_of(body: RuleEdit) -> dict[str, Any]:
    return _values(body, body.model_dump(include=body.model_fields_set))


def _values(body: RuleEdit, given: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = {"comparison": Comparison, "severity": Severity}
    values = {name: kinds[name](value) if name in kinds else value for name, value in given.items()}
    for name in ("subjects", "channels"):
        if name in values:
            values[name] = tuple(dict.fromkeys(values[name]))
    if "actions" in values:
        values["actions"] = tuple(dict.fromkeys(AlertAction(action) for action in values["actions"]))
    return values
