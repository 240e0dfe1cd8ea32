"""Alerts: what an evaluation changes, and what operators do with alerts, silences and rules."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from corral.control.alerts.actions import FITTING, act
from corral.control.alerts.notices import queue_notices
from corral.control.errors import Invalid, NotFound, Taken, WrongState
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.core.alerts.defaults import builtin_rules
from corral.core.alerts.evaluation import Evaluation
from corral.core.alerts.facts import Scope
from corral.core.alerts.model import Alert, AlertRule, AlertState, Silence
from corral.core.alerts.signals import SIGNALS
from corral.core.names import RULE_NAME

#: where the store keeps the settings that the built-in rules have followed already
FOLLOWED = "alert-rule-settings"
#: the fields of built-in rules that follow the settings; new ones are added at the end
SETTABLE = ("threshold", "enabled", "for_seconds", "clear_seconds", "severity")
MAX_NOTE = 1000
MAX_PATTERNS = 100
DAY = 86400.0
MAX_SECONDS = 30 * DAY
MAX_SILENCE_SECONDS = 366 * DAY


# ------------------------------------------------------------------------------------------------ evaluations


def apply(work: Work, evaluation: Evaluation) -> None:
    """Save what an evaluation found, do what its rules ask for, and queue the notices, all in one transaction."""
    rules = {rule.name: rule for rule in work.tx.alerts.rules()}
    stored = {alert.id: alert for alert in work.tx.alerts.live()}
    live_keys = {alert.key for alert in stored.values()}
    added = work.tx.alerts.add([alert for alert in evaluation.new if alert.key not in live_keys])
    changed = _with_acknowledgements(evaluation.changed, stored)
    resolved = _with_acknowledgements(evaluation.resolved, stored)
    work.tx.alerts.save([*changed, *resolved])
    work.tx.alerts.delete([alert.id for alert in evaluation.dropped])
    for alert in (*added, *changed):
        found = evaluation.fired.get(alert.key)
        if found is None or (alert.id in stored and stored[alert.id].fired_at is not None):
            continue
        work.record(SYSTEM, "alert.fired", str(alert.id), owner=alert.owner, detail=_detail(alert))
        if alert.scope == Scope.VOLUME and alert.owner:
            work.record(SYSTEM, "volume.nearly-full", alert.subject, owner=alert.owner, detail={"message": alert.text})
        rule = rules.get(alert.rule)
        # What another alert explains needs no remedy of its own.
        for action in rule.actions if rule is not None and not alert.folded_into else ():
            act(work, alert, action, found)
    for alert in resolved:
        work.record(SYSTEM, "alert.resolved", str(alert.id), owner=alert.owner, detail=_detail(alert))
    fired = [
        alert
        for alert in (*added, *changed)
        if alert.key in evaluation.to_notify and not _is_notified(stored.get(alert.id))
    ]
    queue_notices(work, [*fired, *(alert for alert in resolved if not alert.is_hushed)], rules)


def _is_notified(stored: Alert | None) -> bool:
    """Whether a notice of the alert was sent already: an answer got lost, and the same facts were evaluated again."""
    return stored is not None and stored.state is AlertState.FIRING and not stored.is_hushed


def _with_acknowledgements(alerts: Sequence[Alert], stored: Mapping[int, Alert]) -> list[Alert]:
    """The alerts with acknowledgements from after they were read. Alerts that are over meanwhile are left out."""
    return [
        replace(
            alert,
            acknowledged_at=stored[alert.id].acknowledged_at,
            acknowledged_by=stored[alert.id].acknowledged_by,
            note=stored[alert.id].note,
        )
        for alert in alerts
        if alert.id in stored
    ]


# ------------------------------------------------------------------------------------------------ alerts and silences


def acknowledge(work: Work, caller: Caller, alert_id: int, note: str = "") -> Alert:
    """Mark the alert as acknowledged until it is over. A second acknowledgement replaces the note."""
    require_operator(caller, "manage alerts")
    alert = work.tx.alerts.get(alert_id)
    if alert is None:
        raise NotFound(f"there is no alert {alert_id}", field="alert")
    if alert.state is AlertState.RESOLVED:
        raise WrongState(f"alert {alert_id} is over already", state=alert.state)
    if len(note) > MAX_NOTE:
        raise Invalid(f"at most {MAX_NOTE} characters", field="note", limit=MAX_NOTE)
    acknowledged = replace(alert, acknowledged_at=work.now, acknowledged_by=caller.name, note=note or alert.note)
    work.tx.alerts.save([acknowledged])
    detail = {**_detail(alert), "note": acknowledged.note}
    work.record(caller, "alert.acknowledged", str(alert_id), owner=alert.owner, detail=detail)
    return acknowledged


def create_silence(work: Work, caller: Caller, silence: Silence) -> Silence:
    """Send no notice of matching alerts until then. Alerts that fire are still recorded, and their notices are sent if
    they outlast the silence."""
    require_operator(caller, "manage alerts")
    made = replace(silence, created_by=caller.name, starts_at=silence.starts_at or work.now)
    for field in ("rule", "subject"):
        if not getattr(made, field):
            raise Invalid(f"the {field} is empty: * means every one", field=field)
    if made.ends_at <= max(made.starts_at, work.now):
        raise Invalid("the silence would be over before it begins", field="ends_at")
    if made.ends_at - work.now > MAX_SILENCE_SECONDS:
        raise Invalid("a silence lasts a year at most: switch the rule off instead", field="ends_at")
    if len(made.reason) > MAX_NOTE:
        raise Invalid(f"at most {MAX_NOTE} characters", field="reason", limit=MAX_NOTE)
    work.tx.alerts.save_silence(made)
    work.record(caller, "alert.silenced", made.id, detail=_silence_detail(made))
    return made


def delete_silence(work: Work, caller: Caller, silence_id: str) -> None:
    require_operator(caller, "manage alerts")
    found = next((item for item in work.tx.alerts.silences() if item.id == silence_id), None)
    if found is None:
        raise NotFound(f"there is no silence {silence_id!r}", field="silence")
    work.tx.alerts.delete_silence(silence_id)
    work.record(caller, "alert.unsilenced", silence_id, detail=_silence_detail(found))


# ------------------------------------------------------------------------------------------------ rules


def create_rule(work: Work, caller: Caller, rule: AlertRule) -> AlertRule:
    require_operator(caller, "manage alerts")
    if not RULE_NAME.fullmatch(rule.name):
        raise Invalid(f"the rule name {rule.name!r} is not allowed: up to 63 small letters, digits and -", field="name")
    if any(other.name == rule.name for other in work.tx.alerts.rules()):
        raise Taken(f"there is a rule {rule.name!r} already", field="name", name=rule.name)
    made = replace(rule, builtin=False)
    _check_rule(work.tx, made)
    work.tx.alerts.save_rule(made)
    work.record(caller, "alert-rule.created", made.name, detail=_rule_detail(made))
    return made


def edit_rule(work: Work, caller: Caller, name: str, changes: Mapping[str, Any]) -> AlertRule:
    """Change some fields. An alert that the new rule would not raise ends in its time."""
    require_operator(caller, "manage alerts")
    before = existing_rule(work.tx, name)
    if before.builtin and changes.get("signal", before.signal) != before.signal:
        raise WrongState(
            f"rule {name} came with corral and watches {before.signal}: create another rule", field="signal"
        )
    after = replace(before, **changes)
    _check_rule(work.tx, after)
    if after != before:
        work.tx.alerts.save_rule(after)
        work.record(caller, "alert-rule.edited", name, detail={**_rule_detail(after), "changed": sorted(changes)})
    return after


def delete_rule(work: Work, caller: Caller, name: str) -> None:
    """Deletes a rule; the next evaluation ends its live alerts."""
    require_operator(caller, "manage alerts")
    rule = existing_rule(work.tx, name)
    if rule.builtin:
        raise WrongState(f"rule {name} came with corral: switch it off instead", field="name")
    work.tx.alerts.delete_rule(name)
    work.record(caller, "alert-rule.deleted", name, detail=_rule_detail(rule))


def reset_rule(work: Work, caller: Caller, name: str) -> AlertRule:
    """A built-in rule as corral and its settings would have it."""
    require_operator(caller, "manage alerts")
    existing_rule(work.tx, name)
    default = next((rule for rule in builtin_rules(work.state.policies.alert_thresholds) if rule.name == name), None)
    if default is None:
        raise WrongState(f"rule {name} did not come with corral: there is nothing to go back to", field="name")
    work.tx.alerts.save_rule(default)
    work.record(caller, "alert-rule.reset", name, detail=_rule_detail(default))
    return default


def follow_settings(work: Work) -> None:
    """Updates the built-in rules when the installation's settings have changed, and adds new ones.

    Between two changes of the file, an operator's edits stay: the last change counts.
    """
    defaults = builtin_rules(work.state.policies.alert_thresholds)
    followed = json.loads(work.tx.meta.get(FOLLOWED) or "{}")
    wanted = {rule.name: [getattr(rule, name) for name in SETTABLE] for rule in defaults}
    known = {rule.name: rule for rule in work.tx.alerts.rules()}
    for default in defaults:
        before = known.get(default.name)
        if before is None:
            work.tx.alerts.save_rule(default)
        elif changes := _changes(followed.get(default.name), default):
            after = replace(before, **changes)
            if after != before:
                work.tx.alerts.save_rule(after)
                work.record(SYSTEM, "alert-rule.edited", after.name, detail=_rule_detail(after))
    if followed != wanted:
        work.tx.meta.put(FOLLOWED, json.dumps(wanted))


def _changes(followed: Sequence[Any] | None, default: AlertRule) -> dict[str, Any]:
    """The fields of a rule whose settings have changed; all of them when the settings switch the rule on or off.
    Earlier versions stored fewer fields."""
    wanted = {name: getattr(default, name) for name in SETTABLE}
    changed = {name: wanted[name] for name, old in zip(SETTABLE, followed or (), strict=False) if wanted[name] != old}
    return wanted if "enabled" in changed else changed


def existing_rule(tx: Transaction, name: str) -> AlertRule:
    for rule in tx.alerts.rules():
        if rule.name == name:
            return rule
    raise NotFound(f"there is no alert rule {name!r}", field="rule")


def _check_rule(tx: Transaction, rule: AlertRule) -> None:
    signal = SIGNALS.get(rule.signal)
    if signal is None:
        known = ", ".join(SIGNALS)
        raise Invalid(f"there is no signal {rule.signal!r}; there are: {known}", field="signal", known=list(SIGNALS))
    if not math.isfinite(rule.threshold):
        raise Invalid("the threshold must be a number", field="threshold")
    for field in ("for_seconds", "clear_seconds"):
        if not 0 <= getattr(rule, field) <= MAX_SECONDS:
            raise Invalid("must be between 0 and 30 days", field=field, limit=MAX_SECONDS)
    if len(rule.subjects) > MAX_PATTERNS:
        raise Invalid(f"at most {MAX_PATTERNS} patterns", field="subjects", limit=MAX_PATTERNS)
    if not all(rule.subjects):
        raise Invalid("a pattern is empty: leave all out for every subject", field="subjects")
    unfit = [action for action in rule.actions if signal.scope not in FITTING[action]]
    if unfit:
        raise Invalid(
            f"{unfit[0]} does not fit {rule.signal}, which is about a {signal.scope}",
            field="actions",
            scope=signal.scope,
        )
    channels = {channel.name for channel in tx.channels.all()} if rule.channels else set()
    unknown = [name for name in rule.channels if name not in channels]
    if unknown:
        known = ", ".join(sorted(channels)) or "none yet"
        raise Invalid(
            f"there is no channel {unknown[0]!r}; there are: {known}", field="channels", known=sorted(channels)
        )
    if len(rule.description) > MAX_NOTE:
        raise Invalid(f"at most {MAX_NOTE} characters", field="description", limit=MAX_NOTE)


def _detail(alert: Alert) -> dict[str, Any]:
    return {
        "rule": alert.rule,
        "subject": alert.subject,
        "scope": alert.scope,
        "severity": alert.severity,
        "text": alert.text,
        **({"silenced": True} if alert.silenced else {}),
        **({"folded_into": alert.folded_into} if alert.folded_into else {}),
    }


def _silence_detail(silence: Silence) -> dict[str, Any]:
    return {"rule": silence.rule, "subject": silence.subject, "ends_at": silence.ends_at, "reason": silence.reason}


def _rule_detail(rule: AlertRule) -> dict[str, Any]:
    return {
        "signal": rule.signal,
        "comparison": rule.comparison,
        "threshold": rule.threshold,
        "severity": rule.severity,
        "enabled": rule.enabled,
    }
