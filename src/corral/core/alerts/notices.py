"""What people read: many alerts in one notice, the worst first, so that a bad night is one message and not a thousand.

Also decides when the next notice about the same rule may go to the same channel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from corral.core.alerts.model import SEVERITY_ORDER, Alert, AlertState

#: Alerts that are spelt out in one notice.
LISTED = 20
#: The same rule is told on one channel this often at most; what comes sooner joins the next notice.
QUIET_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    #: fired or resolved
    kind: str
    title: str
    body: str


def compose(alerts: Iterable[Alert], notified: Collection[int] = ()) -> Notice:
    """One notice about alerts that fire or are over; at least one. `told` are the ids of those whose beginning was
    told before: one that is over and was not is told with both its beginning and its end."""
    ordered = sorted(alerts, key=lambda alert: (-SEVERITY_ORDER.index(alert.severity), alert.rule, alert.subject))
    firing = [alert for alert in ordered if alert.state is AlertState.FIRING]
    brief = [alert for alert in ordered if alert.state is AlertState.RESOLVED and alert.id not in notified]
    over = [alert for alert in ordered if alert.state is AlertState.RESOLVED and alert.id in notified]
    parts = [_part("Firing", firing), _part("Fired, and resolved already", brief), _part("Resolved", over)]
    return Notice(
        kind="fired" if firing or brief else "resolved",
        title=f"[corral] {_title(firing, brief, over)}",
        body="\n\n".join("\n".join(lines) for lines in parts if lines),
    )


def may_go_at(rules: Collection[str], notified: Mapping[str, float], now: float) -> float:
    """When a notice about these rules may be sent; `told` says when each was last told on this channel.

    At once if one of them is news: what matters must not wait behind what repeats itself.
    """
    times = [notified[rule] + QUIET_SECONDS if rule in notified else now for rule in rules]
    return max(now, min(times, default=now))


def _title(firing: Sequence[Alert], brief: Sequence[Alert], over: Sequence[Alert]) -> str:
    if len(firing) + len(brief) + len(over) == 1:
        alert = (*firing, *brief, *over)[0]
        if over:
            return f"RESOLVED: {alert.rule} {alert.subject}"
        return f"{alert.severity.upper()}: {alert.rule} {alert.subject}{', resolved already' if brief else ''}"
    parts = []
    fired = sorted([*firing, *brief], key=lambda alert: -SEVERITY_ORDER.index(alert.severity))
    if fired:
        parts.append(f"{fired[0].severity.upper()}: {_count(len(fired))} fired ({_rules(fired)})")
    if brief:
        parts.append(f"{len(brief)} of them resolved already")
    if over:
        parts.append(f"{_count(len(over))} resolved{'' if fired else f' ({_rules(over)})'}")
    return ", ".join(parts)


def _part(heading: str, alerts: Sequence[Alert]) -> list[str]:
    if not alerts:
        return []
    lines = [f"{heading}:", *(_line(alert) for alert in alerts[:LISTED])]
    if len(alerts) > LISTED:
        lines.append(f"… and {len(alerts) - LISTED} more: corral alert ls")
    return lines


def _line(alert: Alert) -> str:
    number = f"#{alert.id} " if alert.id else ""
    lasted = ""
    if alert.resolved_at is not None and alert.fired_at is not None:
        lasted = f" (after {_duration(alert.resolved_at - alert.fired_at)})"
    return f"- {number}{alert.severity} {alert.rule}: {alert.text}{lasted}"


def _rules(alerts: Sequence[Alert]) -> str:
    names = list(dict.fromkeys(alert.rule for alert in alerts))
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _count(number: int) -> str:
    return f"{number} alert{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
