"""Alerts, silences, channels and deliveries, on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.ports import Store
from corral.control.records import AlertFilter, ChannelRecord, DeliveryRecord, DeliveryState
from corral.core.alerts.defaults import Thresholds, builtin_rules
from corral.core.alerts.model import Alert, AlertAction, AlertRule, AlertState, Comparison, Severity, Silence

pytest_plugins = ("tests.servers.fixtures",)

RICH = AlertRule(
    name="rich",
    signal="gpu-temperature",
    comparison=Comparison.AT_MOST,
    threshold=0.1 + 0.2,
    for_seconds=1.5,
    clear_seconds=0.0,
    severity=Severity.CRITICAL,
    enabled=False,
    subjects=("gpu-*", "节点"),
    channels=("ops",),
    actions=(AlertAction.CORDON_NODE, AlertAction.REQUEUE_JOB),
    notify_resolved=False,
    description="x\0y ü",
    builtin=True,
)


def alert(subject: str = "g1", **changes: Any) -> Alert:
    plain = Alert(rule="hot", subject=subject, scope="gpu", severity=Severity.WARNING, pending_since=10.0)
    return replace(plain, **changes)


FULL = alert(
    "größe",
    severity=Severity.CRITICAL,
    state=AlertState.FIRING,
    value=90.5,
    worst=97.25,
    text="hot\0 and 热",
    owner="ann",
    fired_at=11.0,
    clear_since=12.0,
    acknowledged_at=13.0,
    acknowledged_by="root",
    note="I look",
    silenced=True,
    folded_into="node-lost of n1",
)


def test_rules_are_replaced_by_name_and_sorted(store: Store) -> None:
    rules = builtin_rules(Thresholds())
    with store.write() as tx:
        assert tx.alerts.rules() == []
        for rule in (*rules, replace(RICH, threshold=1.0), RICH):
            tx.alerts.save_rule(rule)
        tx.alerts.delete_rule("unknown")
    with store.read() as tx:
        assert tx.alerts.rules() == sorted([*rules, RICH], key=lambda rule: rule.name)
    with store.write() as tx:
        for rule in rules:
            tx.alerts.delete_rule(rule.name)
        assert tx.alerts.rules() == [RICH]


def test_alerts_get_ids_are_changed_and_only_live_ones_are_live(store: Store) -> None:
    with store.write() as tx:
        assert tx.alerts.add([]) == []
        first, second = tx.alerts.add([alert(), FULL])
        assert (first.id, second.id) == (1, 2)
        assert tx.alerts.live() == [first, second]
        assert second == replace(FULL, id=2)
    over = replace(second, state=AlertState.RESOLVED, resolved_at=20.0)
    with store.write() as tx:
        tx.alerts.save([over, replace(first, worst=5.0)])
        tx.alerts.save([])
        assert tx.alerts.get(2) == over
        assert [tx.alerts.get(number) for number in (0, -1, 3, 10**30)] == [None] * 4
        assert tx.alerts.live() == [replace(first, worst=5.0)]
        tx.alerts.delete([1, 77])
        tx.alerts.delete([])
        assert tx.alerts.live() == []
        (third,) = tx.alerts.add([alert()])
    assert third.id == 3, "an id is never given twice"


FILTERS: list[tuple[AlertFilter, list[int]]] = [
    (AlertFilter(), [5, 4, 3, 2, 1]),
    (AlertFilter(states=(AlertState.FIRING,)), [5, 2]),
    (AlertFilter(states=(AlertState.PENDING, AlertState.FIRING)), [5, 4, 2, 1]),
    (AlertFilter(states=(AlertState.RESOLVED, AlertState.FIRING)), [5, 3, 2]),
    (AlertFilter(severities=(Severity.CRITICAL, Severity.INFO)), [4, 2]),
    (AlertFilter(rule="cold"), [5]),
    (AlertFilter(subject="g2"), [3]),
    (AlertFilter(owner="ann"), [2]),
    (AlertFilter(since=30.0), [5, 3]),
    (AlertFilter(since=10.0, until=30.0), [4, 2, 1]),
    (AlertFilter(since=11.0, until=31.0), [3]),
    (AlertFilter(subject="\0"), []),
    (AlertFilter(rule="hot", states=(AlertState.FIRING,), owner="ann"), [2]),
]


def test_alerts_are_listed_newest_first_by_filter_and_page(store: Store) -> None:
    with store.write() as tx:
        tx.alerts.add(
            [
                alert(),
                FULL,
                alert("g2", state=AlertState.RESOLVED, resolved_at=40.0, pending_since=30.0),
                alert("g3", severity=Severity.INFO),
                alert("g4", rule="cold", state=AlertState.FIRING, pending_since=31.0),
            ]
        )
    with store.read() as tx:
        for where, expected in FILTERS:
            seen, cursor = [], None
            while True:
                page = tx.alerts.page(where, cursor=cursor, limit=2)
                seen += [item.id for item in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert seen == expected, where
        for cursor in ("garbage", "", "WyItaWQiLDEsMV0"):
            with pytest.raises(ValueError, match="cursor"):
                tx.alerts.page(AlertFilter(), cursor=cursor, limit=1)
        with pytest.raises(ValueError, match="limit"):
            tx.alerts.page(AlertFilter(), cursor=None, limit=0)


def test_silences_and_what_is_pruned(store: Store) -> None:
    late = Silence(id="b", rule="hot*", subject="节点", starts_at=1.0, ends_at=90.0, reason="x\0", created_by="root")
    early = Silence(id="a", ends_at=50.0)
    with store.write() as tx:
        for silence in (replace(late, reason=""), early, late):
            tx.alerts.save_silence(silence)
        assert tx.alerts.silences() == [early, late]
        tx.alerts.add([alert(state=AlertState.RESOLVED, resolved_at=at) for at in (10.0, 60.0)] + [alert()])
        assert tx.alerts.prune(10.0) == 0
        assert tx.alerts.prune(60.0) == 2
        assert tx.alerts.silences() == [late]
        assert [item.id for item in tx.alerts.page(AlertFilter(), cursor=None, limit=9).items] == [3, 2]
        tx.alerts.delete_silence("b")
        tx.alerts.delete_silence("unknown")
        assert tx.alerts.silences() == []


OPS = ChannelRecord(
    name="ops",
    url="gAAAA…",
    shown="mailto://***",
    enabled=False,
    min_severity=Severity.CRITICAL,
    description="大\0",
    from_config=True,
    created_at=3.5,
)


def delivery(channel: str = "ops", **changes: Any) -> DeliveryRecord:
    plain = DeliveryRecord(channel=channel, kind="fired", title="t\0", body="b 热\n\n", created_at=1.0)
    return replace(plain, **changes)


def test_channels_are_replaced_by_name(store: Store) -> None:
    plain = ChannelRecord(name="a", url="x", shown="y")
    kept = replace(OPS, description="大\ufffd")
    with store.write() as tx:
        for channel in (replace(OPS, enabled=True, url="old"), plain, OPS):
            tx.channels.save(channel)
        assert tx.channels.all() == [plain, kept]
        tx.channels.add_deliveries([delivery()])
        tx.channels.delete("ops")
        tx.channels.delete("unknown")
        assert tx.channels.all() == [plain]
        assert len(tx.channels.deliveries("ops", cursor=None, limit=5).items) == 1, "the record stays"


def test_deliveries_wait_are_tried_and_are_listed(store: Store) -> None:
    rich = delivery(
        alert_ids=(4, 2), rules=("hot", "热"), attachments=("/x/ü.pdf",), attempts=2, next_try_at=7.5, error="no\0"
    )
    with store.write() as tx:
        assert tx.channels.add_deliveries([]) == []
        first, second, third = tx.channels.add_deliveries([delivery(), rich, delivery("other")])
        assert [first.id, second.id, third.id] == [1, 2, 3]
        assert tx.channels.waiting() == [first, second, third]
        assert tx.channels.delivery(2) == replace(rich, id=2)
        assert [tx.channels.delivery(number) for number in (0, 9, 10**30)] == [None] * 3
        sent = replace(first, state=DeliveryState.SENT, sent_at=8.0, attempts=1)
        tx.channels.save_delivery(sent)
        assert tx.channels.waiting() == [second, third]
    with store.read() as tx:
        page = tx.channels.deliveries(None, cursor=None, limit=2)
        assert page.items == (third, second)
        rest = tx.channels.deliveries(None, cursor=page.next_cursor, limit=2)
        assert (rest.items, rest.next_cursor) == ((sent,), None)
        assert tx.channels.deliveries("ops", cursor=None, limit=5).items == (second, sent)
        with pytest.raises(ValueError, match="cursor"):
            tx.channels.deliveries(None, cursor="x", limit=2)


def test_only_what_is_done_is_pruned(store: Store) -> None:
    with store.write() as tx:
        tx.channels.add_deliveries(
            [
                delivery(),
                delivery(state=DeliveryState.SENT),
                delivery(state=DeliveryState.FAILED),
                delivery(state=DeliveryState.SENT, created_at=5.0),
            ]
        )
        assert tx.channels.prune(1.0) == 0
        assert tx.channels.prune(5.0) == 2
        assert [item.id for item in tx.channels.deliveries(None, cursor=None, limit=9).items] == [4, 1]
