"""Alerts, rules, silences, channels and deliveries.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Literal, NotRequired, TypedDict


class Acknowledgement(TypedDict):
    note: NotRequired[str]


class AlertView(TypedDict):
    id: int
    rule: str
    subject: str
    scope: str
    severity: Literal["info", "warning", "critical"]
    state: Literal["pending", "firing", "resolved"]
    #: Unit of the value; empty if the rule was removed.
    unit: str
    #: The latest value.
    value: float
    worst: float
    text: str
    #: Owner of the job that the alert is about.
    owner: str | None
    pending_since: str
    fired_at: str | None
    resolved_at: str | None
    acknowledged_at: str | None
    acknowledged_by: str | None
    note: str
    #: A silence covers the alert: no notice was sent.
    silenced: bool
    #: The alert that explains this one; no notice was sent for this one.
    folded_into: str | None


class ChannelCreate(TypedDict):
    name: str
    #: An Apprise URL. Stored encrypted and never shown again.
    url: str
    description: NotRequired[str]
    enabled: NotRequired[bool]
    min_severity: NotRequired[Literal["info", "warning", "critical"]]


class ChannelEdit(TypedDict):
    """Fields that are left out keep their values, the address too."""

    description: NotRequired[str]
    enabled: NotRequired[bool]
    min_severity: NotRequired[Literal["info", "warning", "critical"]]
    #: An Apprise URL. Stored encrypted and never shown again.
    url: NotRequired[str]


class ChannelView(TypedDict):
    name: str
    #: The address without its secrets.
    address: str
    enabled: bool
    min_severity: Literal["info", "warning", "critical"]
    description: str
    #: The channel is defined in the configuration file and can only be changed there.
    from_config: bool
    created_at: str


class DeliveryView(TypedDict):
    """One notice to one channel."""

    id: int
    channel: str
    kind: str
    title: str
    body: str
    alerts: list[int]
    attachments: list[str]
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    #: Error of the last try; empty if it succeeded.
    error: str
    created_at: str
    next_try_at: str | None
    sent_at: str | None


class RuleView(TypedDict):
    name: str
    signal: str
    scope: str
    unit: str
    comparison: Literal["above", "below", "at-least", "at-most"]
    threshold: float
    for_seconds: float
    clear_seconds: float
    severity: Literal["info", "warning", "critical"]
    enabled: bool
    subjects: list[str]
    channels: list[str]
    actions: list[Literal["cordon-node", "mark-gpu", "stop-job", "requeue-job"]]
    notify_resolved: bool
    description: str
    builtin: bool


class SignalView(TypedDict):
    """A signal that a rule can watch."""

    name: str
    scope: str
    unit: str
    description: str


class SilenceView(TypedDict):
    id: str
    rule: str
    subject: str
    starts_at: str
    ends_at: str
    reason: str
    created_by: str


class RuleCreate(TypedDict):
    signal: str
    threshold: float
    name: str
    actions: NotRequired[list[Literal["cordon-node", "mark-gpu", "stop-job", "requeue-job"]]]
    #: Only these channels. Empty: all.
    channels: NotRequired[list[str]]
    #: The alert is resolved once the condition has not held for so long.
    clear_seconds: NotRequired[float | str]
    comparison: NotRequired[Literal["above", "below", "at-least", "at-most"]]
    description: NotRequired[str]
    enabled: NotRequired[bool]
    #: The condition must hold for so long before the alert fires.
    for_seconds: NotRequired[float | str]
    notify_resolved: NotRequired[bool]
    severity: NotRequired[Literal["info", "warning", "critical"]]
    #: Only these subjects; * and ? are wildcards. Empty: all.
    subjects: NotRequired[list[str]]


class RuleEdit(TypedDict):
    """Fields that are left out keep their values."""

    actions: NotRequired[list[Literal["cordon-node", "mark-gpu", "stop-job", "requeue-job"]]]
    #: Only these channels. Empty: all.
    channels: NotRequired[list[str]]
    #: The alert is resolved once the condition has not held for so long.
    clear_seconds: NotRequired[float | str]
    comparison: NotRequired[Literal["above", "below", "at-least", "at-most"]]
    description: NotRequired[str]
    enabled: NotRequired[bool]
    #: The condition must hold for so long before the alert fires.
    for_seconds: NotRequired[float | str]
    notify_resolved: NotRequired[bool]
    severity: NotRequired[Literal["info", "warning", "critical"]]
    signal: NotRequired[str]
    #: Only these subjects; * and ? are wildcards. Empty: all.
    subjects: NotRequired[list[str]]
    threshold: NotRequired[float]


class SilenceCreate(TypedDict):
    #: For how long from now.
    duration: float | str
    reason: NotRequired[str]
    #: A pattern of rule names; * and ? are wildcards.
    rule: NotRequired[str]
    #: A pattern of subjects, such as gpu-node-3*.
    subject: NotRequired[str]
