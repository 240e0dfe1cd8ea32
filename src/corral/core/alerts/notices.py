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


def compose(alerts: Iterable[Alert]) -> Notice:
    """One notice about alerts that fire or are over; at least one."""
    ordered = sorted(alerts, key=lambda alert: (-SEVERITY_ORDER.index(alert.severity), alert.rule, alert.subject))
    firing = [alert for alert in ordered if alert.state is AlertState.FIRING]
    over = [alert for alert in ordered if alert.state is AlertState.RESOLVED]
    return Notice(
        kind="fired" if firing else "resolved",
        title=f"[corral] {_title(firing, over)}",
        body="\n".join([*_part("Firing", firing), *([""] if firing and over else []), *_part("Resolved", over)]),
    )


def may_go_at(rules: Collection[str], told: Mapping[str, float], now: float) -> float:
    """When a notice about these rules may be sent; `told` says when each was last told on this channel.

    At once if one of them is news: what matters must not wait behind what repeats itself.
    """
    times = [told[rule] + QUIET_SECONDS if rule in told else now for rule in rules]
    return max(now, min(times, default=now))


def _title(firing: Sequence[Alert], over: Sequence[Alert]) -> str:
    if len(firing) == 1 and not over:
        return f"{firing[0].severity.upper()}: {firing[0].rule} {firing[0].subject}"
    if len(over) == 1 and not firing:
        return f"RESOLVED: {over[0].rule} {over[0].subject}"
    parts = []
    if firing:
        worst = firing[0].severity.upper()
        parts.append(f"{worst}: {_count(len(firing))} fired ({_rules(firing)})")
    if over:
        parts.append(f"{_count(len(over))} resolved{'' if firing else f' ({_rules(over)})'}")
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
