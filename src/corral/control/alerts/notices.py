"""Notices of alerts: which channel gets which alerts, in how many messages, and when.

One round of alerts is one notice per channel. A rule that was in a notice to a channel is sent there again only after
a while; what comes in between joins the notice that waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from corral.control.live.unit_of_work import Work
from corral.control.ports import Transaction
from corral.control.records import ChannelRecord, DeliveryRecord, DeliveryState
from corral.core.alerts.model import Alert, AlertRule, AlertState, is_at_least
from corral.core.alerts.notices import QUIET_SECONDS, compose, may_go_at

#: Alerts on this signal are sent only to channels that their rule names.
OWNERS_SIGNAL = "job-failed"
#: How far back the deliveries of a channel are read; the quiet time is a minute.
RECENT = 50
#: The most alerts in one notice; the list of alerts shows all.
MAX_ALERTS = 1000


def queue_notices(work: Work, alerts: Sequence[Alert], rules: Mapping[str, AlertRule]) -> None:
    """Queues the notices for each channel about alerts that fire or are over."""
    if not alerts:
        return
    for channel in work.tx.channels.all():
        mine = [alert for alert in alerts if channel.enabled and _is_sent_to(channel, alert, rules.get(alert.rule))]
        if mine:
            _queue_notice(work, channel, mine)


def _is_sent_to(channel: ChannelRecord, alert: Alert, rule: AlertRule | None) -> bool:
    if not is_at_least(alert.severity, channel.min_severity):
        return False
    if rule is None:
        return True  # the rule was deleted; channels that got the beginning get the end, too
    if alert.state is AlertState.RESOLVED and not rule.notify_resolved:
        return False
    if not rule.channels:
        # A failed job is the matter of its owner, who finds it in the inbox: operators get it if the rule says so.
        return rule.signal != OWNERS_SIGNAL
    return channel.name in rule.channels


def _queue_notice(work: Work, channel: ChannelRecord, alerts: Sequence[Alert]) -> None:
    recent = work.tx.channels.deliveries(channel.name, cursor=None, limit=RECENT).items
    joined = next((item for item in recent if _can_be_joined(item)), None)
    others = [item for item in recent if item is not joined]
    go_at = may_go_at({alert.rule for alert in alerts}, _sent_at(others), work.now)
    if joined is None:
        work.tx.channels.add_deliveries(
            [
                _notice(
                    DeliveryRecord(
                        channel=channel.name, kind="", title="", body="", created_at=work.now, next_try_at=go_at
                    ),
                    alerts,
                    _sent_before(alerts, others, work.now),
                )
            ]
        )
        return
    fresh = {alert.id: alert for alert in alerts}
    earlier = [alert for alert in _alerts(work.tx, joined.alert_ids) if alert.id not in fresh]
    together = [*earlier, *alerts][:MAX_ALERTS]
    sent = _sent_before(together, others, work.now)
    work.tx.channels.save_delivery(_notice(replace(joined, next_try_at=min(joined.next_try_at, go_at)), together, sent))


def _can_be_joined(delivery: DeliveryRecord) -> bool:
    """No worker has begun to send it."""
    return bool(delivery.alert_ids) and delivery.state is DeliveryState.WAITING and delivery.attempts == 0


def _sent_at(deliveries: Sequence[DeliveryRecord]) -> dict[str, float]:
    sent: dict[str, float] = {}
    for delivery in deliveries:
        at = delivery.created_at if delivery.sent_at is None else delivery.sent_at
        for rule in delivery.rules:
            sent[rule] = max(at, sent.get(rule, at))
    return sent


def _sent_before(alerts: Sequence[Alert], deliveries: Sequence[DeliveryRecord], now: float) -> set[int]:
    """The alerts whose beginning was sent already. No beginning waits for much longer than the quiet time, so only a
    few deliveries are read."""
    sent = {alert_id for item in deliveries for alert_id in item.alert_ids}
    return sent | {alert.id for alert in alerts if (alert.fired_at or 0.0) < now - 2 * QUIET_SECONDS}


def _alerts(tx: Transaction, alert_ids: Sequence[int]) -> list[Alert]:
    found = (tx.alerts.get(alert_id) for alert_id in alert_ids)
    return [alert for alert in found if alert is not None]


def _notice(delivery: DeliveryRecord, alerts: Sequence[Alert], sent: Collection[int]) -> DeliveryRecord:
    notice = compose(alerts, sent)
    return replace(
        delivery,
        kind=notice.kind,
        title=notice.title,
        body=notice.body,
        alert_ids=tuple(alert.id for alert in alerts),
        rules=tuple(sorted({alert.rule for alert in alerts})),
    )
