"""The life cycle of alerts: pending, firing, resolved.

`evaluate` compares every rule with the facts of one moment and returns the alerts that start, change and end. It has no
state: the live alerts are its only memory, so that a restart changes nothing. If a value cannot be measured now, the
alert stays as it is: it neither fires nor is resolved.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from corral.core.alerts.facts import Fact, Facts, Scope
from corral.core.alerts.model import Alert, AlertRule, AlertState, Comparison, Silence, is_at_least
from corral.core.alerts.signal import Finding, Signal, quantity
from corral.core.alerts.signals import SIGNALS

#: The rule and the subject: at most one alert per pair is live.
Key = tuple[str, str]
#: The signal whose alerts explain those of the GPUs of the same node.
NODE_LOST = "node-lost"
#: One overheating is one matter: a firing alert on the first signal explains those on the others for the same GPU.
OVERHEATING = "gpu-temperature"
FOLLOWS_OVERHEATING = frozenset({"gpu-health", "gpu-errors", "gpu-power"})
MAX_TEXT = 500
_CROSSES = {
    Comparison.ABOVE: operator.gt,
    Comparison.BELOW: operator.lt,
    Comparison.AT_LEAST: operator.ge,
    Comparison.AT_MOST: operator.le,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The changes of one evaluation. Every changed alert is in one of the first four fields."""

    #: without ids; pending or firing
    new: tuple[Alert, ...] = ()
    changed: tuple[Alert, ...] = ()
    resolved: tuple[Alert, ...] = ()
    #: pending alerts that ended before they fired
    dropped: tuple[Alert, ...] = ()
    #: alerts that began to fire now, with the subjects of their actions
    fired: Mapping[Key, Finding] = field(default_factory=dict)
    #: firing alerts that need a notice now: they just fired, or the silence or the explaining alert has ended
    to_notify: frozenset[Key] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not (self.new or self.changed or self.resolved or self.dropped)


def evaluate(
    rules: Iterable[AlertRule], facts: Facts, live: Iterable[Alert], silences: Iterable[Silence], now: float
) -> Evaluation:
    """The changes of the live alerts, and the new ones."""
    known = {alert.key: alert for alert in live}
    usable = {rule.name: rule for rule in rules if rule.enabled and rule.signal in SIGNALS}
    # 1. Every subject with a value takes one step.
    after: dict[Key, Alert | None] = {}
    fired: dict[Key, Finding] = {}
    for rule in usable.values():
        _step_all(rule, facts, known, after, fired, now)
    # 2. Of the alerts without a value, those end whose rule or subject is gone; the others stay as they are.
    existing: dict[Scope, set[str]] = {}
    for key, alert in known.items():
        if key not in after:
            why = _why_over(usable.get(alert.rule), alert, facts, existing)
            after[key] = alert if why is None else _resolved(alert, now, why) if alert.fired_at is not None else None
    # 3. Which alerts get no notice is decided last: one alert may explain another.
    after, to_notify = _marked(after, known, usable, facts, list(silences), now)
    return _sorted(known, after, fired, to_notify)


def covers(rule: AlertRule, subject: str) -> bool:
    return not rule.subjects or any(fnmatchcase(subject, pattern) for pattern in rule.subjects)


def is_silenced(rule: str, subject: str, silences: Iterable[Silence], now: float) -> bool:
    return any(
        silence.starts_at <= now < silence.ends_at
        and fnmatchcase(rule, silence.rule)
        and fnmatchcase(subject, silence.subject)
        for silence in silences
    )


# ------------------------------------------------------------------------------------------------ one step


def _step_all(
    rule: AlertRule,
    facts: Facts,
    known: Mapping[Key, Alert],
    after: dict[Key, Alert | None],
    fired: dict[Key, Finding],
    now: float,
) -> None:
    """Takes one step for every subject of a rule. Nearly all of them have no alert, and must be handled quickly."""
    signal = SIGNALS[rule.signal]
    read, crosses, threshold = signal.read, _CROSSES[rule.comparison], rule.threshold
    live = {subject: alert for (name, subject), alert in known.items() if name == rule.name}
    for fact in facts.of(signal.scope):
        value = read(fact)
        if value is None:
            continue
        crossed = crosses(value, threshold)
        before = live.get(fact.id)
        if (not crossed and before is None) or (rule.subjects and not covers(rule, fact.id)):
            continue
        key = (rule.name, fact.id)
        after[key] = stepped = _step(rule, signal, before, fact, value, crossed, now)
        if stepped is not None and stepped.fired_at == now and (before is None or before.fired_at is None):
            fired[key] = signal.describe(fact, value)


def _step(
    rule: AlertRule, signal: Signal, before: Alert | None, fact: Fact, value: float, crossed: bool, now: float
) -> Alert | None:
    """The alert after this value; None if there is none any more."""
    if before is None:
        found = signal.describe(fact, value)
        before = Alert(
            rule=rule.name,
            subject=fact.id,
            scope=signal.scope,
            severity=rule.severity,
            value=value,
            worst=value,
            text=_text(rule, signal, found),
            owner=found.owner,
            pending_since=now,
        )
    if before.state is AlertState.PENDING:
        if not crossed:
            return None
        if now - before.pending_since < rule.for_seconds:
            return before
        return replace(_current(before, rule, signal, fact, value, crossed), state=AlertState.FIRING, fired_at=now)
    if crossed:
        if before.clear_since is not None or _has_changed(before, rule, signal, fact, value):
            return replace(_current(before, rule, signal, fact, value, crossed), clear_since=None)
        return before
    clear_since = before.clear_since if before.clear_since is not None else now
    if now - clear_since < rule.clear_seconds:
        if before.clear_since is not None and abs(value - before.value) < signal.step:
            return before
        return replace(_current(before, rule, signal, fact, value, crossed), clear_since=clear_since)
    # The text of the end begins with what was true when the threshold was crossed last.
    crossed_text = _text(rule, signal, signal.describe(fact, before.worst))
    return _resolved(
        replace(before, clear_since=clear_since, text=crossed_text), now, signal.describe(fact, value).text
    )


def _current(alert: Alert, rule: AlertRule, signal: Signal, fact: Fact, value: float, crossed: bool) -> Alert:
    """The alert with the present value, and the text about it."""
    text = _text(rule, signal, signal.describe(fact, value), crossed=crossed)
    return replace(_worse(alert, rule, value), value=value, text=text)


def _has_changed(alert: Alert, rule: AlertRule, signal: Signal, fact: Fact, value: float) -> bool:
    """Whether the value is clearly another one, or the text would be another one for the same value."""
    if abs(value - alert.value) >= signal.step:
        return True
    return alert.text != _text(rule, signal, signal.describe(fact, alert.value))


def _worse(alert: Alert, rule: AlertRule, value: float) -> Alert:
    worst = max(alert.worst, value) if rule.comparison.is_upward else min(alert.worst, value)
    return alert if worst == alert.worst else replace(alert, worst=worst)


def _resolved(alert: Alert, now: float, why: str) -> Alert:
    return replace(alert, state=AlertState.RESOLVED, resolved_at=now, text=_cut(f"{alert.text}. Over: {why}"))


def _text(rule: AlertRule, signal: Signal, found: Finding, *, crossed: bool = True) -> str:
    # For a value without a unit (yes or no) the threshold is not shown.
    if signal.unit == "":
        return _cut(found.text)
    limit = f"{rule.comparison.replace('-', ' ')} {quantity(rule.threshold, signal.unit)}"
    return _cut(f"{found.text} ({limit})" if crossed else f"{found.text} (no longer {limit})")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _why_over(rule: AlertRule | None, alert: Alert, facts: Facts, existing: dict[Scope, set[str]]) -> str | None:
    """Why an alert without a value is resolved; None if it is not."""
    if rule is None:
        return f"rule {alert.rule} was deleted or switched off"
    signal = SIGNALS[rule.signal]
    if alert.scope != signal.scope or not covers(rule, alert.subject):
        return f"rule {alert.rule} no longer watches {alert.subject}"
    if signal.scope not in existing:
        existing[signal.scope] = {fact.id for fact in facts.of(signal.scope)}
    return None if alert.subject in existing[signal.scope] else signal.gone


# ------------------------------------------------------------------------------------------------ notices


def _marked(
    after: Mapping[Key, Alert | None],
    known: Mapping[Key, Alert],
    rules: Mapping[str, AlertRule],
    facts: Facts,
    silences: Sequence[Silence],
    now: float,
) -> tuple[dict[Key, Alert | None], frozenset[Key]]:
    """The alerts with the silence or the alert that suppresses their notices, and the firing alerts that need a
    notice."""
    present = [alert for alert in after.values() if alert is not None and alert.state is not AlertState.RESOLVED]
    explained_by = _causes(present, rules, facts)
    marked = dict(after)
    to_notify = set()
    for alert in after.values():
        # A silence that was set after the notice still suppresses the notice about the end.
        if alert is not None and alert.state is AlertState.RESOLVED and is_silenced(*alert.key, silences, now):
            marked[alert.key] = replace(alert, silenced=True)
    for alert in present:
        if alert.state is not AlertState.FIRING:
            continue
        just_fired = alert.key not in known or known[alert.key].fired_at is None
        if not just_fired and not alert.is_hushed:
            continue  # its notice was sent: a later silence or explanation does not matter
        if not just_fired and alert.clear_since is not None:
            continue  # about to end: not worth a notice
        silenced, cause = is_silenced(*alert.key, silences, now), explained_by.get(alert.key, "")
        if (silenced, cause) != (alert.silenced, alert.folded_into):
            marked[alert.key] = replace(alert, silenced=silenced, folded_into=cause)
        if not silenced and not cause:
            to_notify.add(alert.key)
    return marked, frozenset(to_notify)


def _causes(present: Sequence[Alert], rules: Mapping[str, AlertRule], facts: Facts) -> dict[Key, str]:
    """Alerts that another one explains: those of GPUs of a lost node, those that an overheating
    causes, and the milder one of two on the same signal."""
    if len(present) < 2:
        return {}
    node_of = {gpu.id: gpu.node for gpu in facts.gpus}
    lost: dict[str, Alert] = {}
    by_matter: dict[tuple[str, str], list[Alert]] = {}
    for alert in present:
        rule = rules.get(alert.rule)
        if rule is None:
            continue
        if rule.signal == NODE_LOST:
            # A pending alert counts: it fires soon, and the alerts of the GPUs may fire first.
            lost[alert.subject] = alert
        if alert.state is AlertState.FIRING:
            by_matter.setdefault((rule.signal, alert.subject), []).append(alert)
    causes = {}
    hot = {subject: alerts[0] for (signal, subject), alerts in by_matter.items() if signal == OVERHEATING}
    for alert in present:
        cause = lost.get(node_of.get(alert.subject, "")) if alert.scope == Scope.GPU else None
        rule = rules.get(alert.rule)
        if cause is None and rule is not None and rule.signal in FOLLOWS_OVERHEATING:
            cause = hot.get(alert.subject)
        if cause is None and rule is not None:
            others = by_matter.get((rule.signal, alert.subject), [])
            cause = next((other for other in others if not is_at_least(alert.severity, other.severity)), None)
        if cause is not None:
            causes[alert.key] = f"{cause.rule} of {cause.subject}"
    return causes


def _sorted(
    known: Mapping[Key, Alert],
    after: Mapping[Key, Alert | None],
    fired: Mapping[Key, Finding],
    to_notify: frozenset[Key],
) -> Evaluation:
    new, changed, resolved, dropped = [], [], [], []
    for key, alert in after.items():
        before = known.get(key)
        if before is None:
            if alert is not None:
                new.append(alert)
        elif alert is None:
            dropped.append(before)
        elif alert.state is AlertState.RESOLVED:
            resolved.append(alert)
        elif alert != before:
            changed.append(alert)
    return Evaluation(
        new=tuple(new),
        changed=tuple(changed),
        resolved=tuple(resolved),
        dropped=tuple(dropped),
        fired=fired,
        to_notify=to_notify,
    )
