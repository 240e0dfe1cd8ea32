"""The changes of an evaluation, the notified channels, the actions, and the requests of operators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from corral.control.alerts import alerts, channels
from corral.control.errors import Forbidden, Invalid, NotFound, Refusal, Taken, WrongState
from corral.control.ports import Store
from corral.control.records import AlertFilter, ChannelRecord, DeliveryRecord, DeliveryState
from corral.control.system.policies import Policies
from corral.core.alerts.defaults import Thresholds, builtin_rules
from corral.core.alerts.evaluation import evaluate
from corral.core.alerts.facts import Facts, GpuFact, NodeFact
from corral.core.alerts.model import Alert, AlertAction, AlertRule, AlertState, Severity, Silence
from corral.core.model import GpuHealth, JobState, NodeState
from tests.unit.control.world import ANN, ROOT, Desk, draft

HOT = AlertRule(name="hot", signal="gpu-temperature", threshold=85, clear_seconds=0)


def facts(at: float, celsius: Mapping[str, float], jobs: tuple[str, ...] = ()) -> Facts:
    gpus = [
        GpuFact(id=gpu, node="n1", temperature_celsius=value, jobs=jobs, users=("ann",) if jobs else ())
        for gpu, value in celsius.items()
    ]
    return Facts(now=at, gpus=gpus, nodes=[NodeFact(id="n1")])


def look(desk: Desk, celsius: Mapping[str, float], *, after: float = 5.0, jobs: tuple[str, ...] = ()) -> None:
    """Time passes, and the fleet is as hot as this."""
    desk.now += after
    with desk.store.read() as tx:
        rules, live, silences = tx.alerts.rules(), tx.alerts.live(), tx.alerts.silences()
    evaluation = evaluate(rules, facts(desk.now, celsius, jobs), live, silences, desk.now)
    if not evaluation.is_empty:
        desk.do(alerts.apply, evaluation)


def channel(desk: Desk, name: str = "ops", **values: Any) -> ChannelRecord:
    return desk.do(channels.create, ROOT, ChannelRecord(**{"name": name, "url": "secret", "shown": "x://", **values}))


def rule(desk: Desk, made: AlertRule = HOT) -> AlertRule:
    return desk.do(alerts.create_rule, ROOT, made)


def found(desk: Desk) -> list[Alert]:
    with desk.store.read() as tx:
        return list(tx.alerts.page(AlertFilter(), cursor=None, limit=100).items)[::-1]


def deliveries(desk: Desk, name: str = "ops") -> list[DeliveryRecord]:
    with desk.store.read() as tx:
        return list(tx.channels.deliveries(name, cursor=None, limit=100).items)[::-1]


def sent(desk: Desk) -> list[DeliveryRecord]:
    """Send everything that is due, as a channel that always takes it would."""
    done = []
    with desk.store.read() as tx:
        due = [item.id for item in tx.channels.waiting() if item.next_try_at <= desk.now]
    for number in due:
        assert desk.do(channels.begin, number)
        finished = desk.do(channels.finish, number)
        assert finished is not None
        done.append(finished)
    return done


# ------------------------------------------------------------------------------------------------ telling


def test_an_alert_is_recorded_and_sent_once_and_its_end_once(desk: Desk) -> None:
    channel(desk)
    rule(desk)
    for celsius in (80, 90, 91, 92):
        look(desk, {"g1": celsius})
    (alert,) = found(desk)
    assert alert.state is AlertState.FIRING
    assert [item.title for item in sent(desk)] == ["[corral] WARNING: hot g1"]
    look(desk, {"g1": 60}, after=100)
    (over,) = sent(desk)
    assert (over.title, over.kind, over.alert_ids) == ("[corral] RESOLVED: hot g1", "resolved", (1,))
    look(desk, {"g1": 60})
    assert len(deliveries(desk)) == 2
    assert desk.actions("1") == ["alert.fired", "alert.resolved"]


def test_alerts_of_a_round_make_one_notice_for_each_interested_channel(desk: Desk) -> None:
    channel(desk)
    channel(desk, "pager", min_severity=Severity.CRITICAL)
    channel(desk, "off", enabled=False)
    channel(desk, "quiet")
    rule(desk, replace(HOT, channels=("ops", "pager", "off")))
    rule(desk, replace(HOT, name="burning", threshold=95, severity=Severity.CRITICAL, channels=("pager",)))
    look(desk, {**{f"g{number}": 90.0 for number in range(30)}, "worst": 99.0})
    (notice,) = deliveries(desk)
    assert notice.title == "[corral] WARNING: 30 alerts fired (hot)"
    assert len(notice.alert_ids) == 30, "the warning about the worst one is folded into the critical alert"
    (page,) = deliveries(desk, "pager")
    assert page.title == "[corral] CRITICAL: burning worst"
    assert deliveries(desk, "off") == deliveries(desk, "quiet") == []


def test_the_same_rule_is_sent_once_a_minute_and_the_rest_joins_the_next_notice(desk: Desk) -> None:
    channel(desk)
    rule(desk)
    look(desk, {"g1": 90})
    sent(desk)
    for number in range(2, 6):
        look(desk, {**{f"g{n}": 90.0 for n in range(1, number + 1)}})
    look(desk, {"g1": 90, "g2": 60, "g3": 90, "g4": 90, "g5": 90})
    assert sent(desk) == []
    desk.now += 60
    (joined,) = sent(desk)
    assert joined.title == "[corral] WARNING: 4 alerts fired (hot), 1 of them resolved already"
    assert len(deliveries(desk)) == 2


def test_news_of_another_rule_take_what_waits_along_at_once(desk: Desk) -> None:
    channel(desk)
    rule(desk)
    rule(desk, replace(HOT, name="burning", threshold=95, severity=Severity.CRITICAL))
    look(desk, {"g1": 90})
    sent(desk)
    look(desk, {"g1": 90, "g2": 90})
    assert sent(desk) == []
    look(desk, {"g1": 90, "g2": 90, "g3": 99})
    (notice,) = sent(desk)
    assert notice.rules == ("burning", "hot")
    assert notice.title == "[corral] CRITICAL: 2 alerts fired (burning, hot)"


def test_a_channel_that_is_away_is_not_buried_in_notices(desk: Desk) -> None:
    channel(desk)
    rule(desk)
    look(desk, {"g1": 90})
    (first,) = deliveries(desk)
    assert desk.do(channels.begin, first.id)
    desk.do(channels.finish, first.id, "away")
    for number in range(2, 8):
        look(desk, {f"g{n}": 90.0 for n in range(1, number)})
    assert len(deliveries(desk)) == 2


def test_rules_may_end_quietly_and_a_deleted_rule_ends_its_alerts(desk: Desk) -> None:
    channel(desk)
    rule(desk, replace(HOT, notify_resolved=False))
    look(desk, {"g1": 90})
    sent(desk)
    look(desk, {"g1": 60}, after=100)
    assert len(deliveries(desk)) == 1
    look(desk, {"g1": 90}, after=100)
    sent(desk)
    desk.do(alerts.delete_rule, ROOT, "hot")
    look(desk, {"g1": 90}, after=100)
    assert "rule hot was deleted" in found(desk)[-1].text
    assert deliveries(desk)[-1].kind == "resolved"


def test_an_acknowledgement_made_meanwhile_is_kept(desk: Desk) -> None:
    rule(desk)
    look(desk, {"g1": 90})
    with desk.store.read() as tx:
        before = tx.alerts.live()
    late = evaluate([HOT], facts(desk.now + 5, {"g1": 60}), before, [], desk.now + 5)
    desk.do(alerts.acknowledge, ROOT, 1, "I look after it")
    desk.do(alerts.apply, late)
    (alert,) = found(desk)
    assert (alert.state, alert.acknowledged_by, alert.note) == (AlertState.RESOLVED, "root", "I look after it")
    desk.do(alerts.apply, late)
    assert desk.actions("1").count("alert.resolved") == 1, "the same news twice are no news"
    with pytest.raises(WrongState):
        desk.do(alerts.acknowledge, ROOT, 1)


def test_a_silenced_alert_is_sent_if_it_outlasts_the_silence(desk: Desk) -> None:
    channel(desk)
    rule(desk)
    desk.do(alerts.create_silence, ROOT, Silence(id="s1", subject="g*", ends_at=desk.now + 3600, reason="repair"))
    look(desk, {"g1": 90})
    assert deliveries(desk) == []
    assert found(desk)[0].silenced
    desk.do(alerts.delete_silence, ROOT, "s1")
    look(desk, {"g1": 90})
    assert [item.title for item in deliveries(desk)] == ["[corral] WARNING: hot g1"]
    assert desk.actions("s1") == ["alert.silenced", "alert.unsilenced"]


# ------------------------------------------------------------------------------------------------ acting


def test_a_rule_may_cordon_the_node_and_put_the_job_back(desk: Desk) -> None:
    rule(desk, replace(HOT, actions=(AlertAction.CORDON_NODE, AlertAction.REQUEUE_JOB)))
    (job,) = desk.started(draft("training-1"))
    look(desk, {"n1/0": 90}, jobs=(job.id,))
    assert desk.state.snapshot.nodes["n1"].state is NodeState.CORDONED
    stopping = desk.job(job.id)
    assert (stopping.state, stopping.stopping_for) == (JobState.STOPPING, "preempted")
    assert [step.attempt_id for step in desk.instructions] == [job.attempt_id]
    acted = [event for event in desk.events() if event.action == "alert.acted"]
    assert [(event.subject, event.detail["action"]) for event in acted] == [
        ("n1", "cordon-node"),
        (job.id, "requeue-job"),
    ]


def test_a_rule_may_stop_the_job_and_what_cannot_be_done_is_written_down(desk: Desk) -> None:
    rule(desk, replace(HOT, actions=(AlertAction.STOP_JOB,)))
    (job,) = desk.started(draft("training-1"))
    look(desk, {"n1/0": 90}, jobs=(job.id, "j-99"))
    assert (desk.job(job.id).state, desk.job(job.id).stopping_for) == (JobState.STOPPING, "stopped_by_operator")
    refused = [event.detail.get("refused") for event in desk.events() if event.action == "alert.acted"]
    assert refused == [None, "there is no job 'j-99'"]


def test_a_rule_may_mark_the_gpu(desk: Desk) -> None:
    rule(desk, replace(HOT, actions=(AlertAction.MARK_GPU,)))
    gpu = desk.state.snapshot.nodes["n1"].gpus[0].id
    look(desk, {gpu: 90, "nowhere": 90})
    assert desk.state.snapshot.nodes["n1"].gpus[0].health is GpuHealth.SUSPECT
    refused = {event.subject: event.detail.get("refused") for event in desk.events() if event.action == "alert.acted"}
    assert refused == {gpu: None, "nowhere": "there is no GPU 'nowhere'"}


# ------------------------------------------------------------------------------------------------ rules


#: changes to a valid rule, and the field that is refused
WRONG_RULES: list[tuple[dict[str, Any], str]] = [
    ({"name": "A b"}, "name"),
    ({"name": ""}, "name"),
    ({"signal": "colour"}, "signal"),
    ({"threshold": float("nan")}, "threshold"),
    ({"for_seconds": -1}, "for_seconds"),
    ({"clear_seconds": 1e9}, "clear_seconds"),
    ({"subjects": ("",)}, "subjects"),
    ({"subjects": ("x",) * 101}, "subjects"),
    ({"channels": ("nowhere",)}, "channels"),
    ({"signal": "queue-length", "actions": (AlertAction.STOP_JOB,)}, "actions"),
    ({"signal": "node-lost", "actions": (AlertAction.MARK_GPU,)}, "actions"),
    ({"description": "x" * 1001}, "description"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG_RULES)
def test_a_wrong_rule_is_refused(desk: Desk, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        rule(desk, replace(HOT, **changes))
    assert caught.value.field == field


def test_built_in_rules_are_changed_switched_off_and_reset_but_not_deleted(desk: Desk) -> None:
    desk.do(alerts.follow_settings)
    name = "gpu-temperature"
    desk.do(alerts.edit_rule, ROOT, name, {"threshold": 70.0, "enabled": False})
    with pytest.raises(WrongState, match="switch it off"):
        desk.do(alerts.delete_rule, ROOT, name)
    with pytest.raises(WrongState, match="create another"):
        desk.do(alerts.edit_rule, ROOT, name, {"signal": "gpu-memory"})
    assert desk.do(alerts.reset_rule, ROOT, name) in builtin_rules(Thresholds())
    rule(desk)
    with pytest.raises(Taken):
        rule(desk)
    with pytest.raises(WrongState, match="did not come"):
        desk.do(alerts.reset_rule, ROOT, "hot")


def test_built_in_rules_follow_the_settings_when_these_change(store: Store) -> None:
    def rules(temperature: float, free: int | None = None) -> dict[str, AlertRule]:
        thresholds = Thresholds(temperature_celsius=temperature, free_gpus=free)
        desk = Desk(store, Policies(alert_thresholds=thresholds))
        desk.do(alerts.follow_settings)
        with store.read() as tx:
            return {item.name: item for item in tx.alerts.rules()}

    assert rules(85)["gpu-temperature"].threshold == 85
    Desk(store).do(alerts.edit_rule, ROOT, "gpu-temperature", {"threshold": 70.0, "for_seconds": 5.0})
    assert rules(85)["gpu-temperature"].threshold == 70, "an operator's word stands while the settings stay"
    after = rules(80, free=2)
    assert (after["gpu-temperature"].threshold, after["gpu-temperature"].for_seconds) == (80, 5)
    assert (after["gpus-free"].enabled, after["gpus-free"].threshold) == (True, 2)
    assert not rules(80)["gpus-free"].enabled


def test_thresholds_of_the_file_switch_their_rules_on(store: Store) -> None:
    def rules(thresholds: Thresholds) -> dict[str, AlertRule]:
        desk = Desk(store, Policies(alert_thresholds=thresholds))
        desk.do(alerts.follow_settings)
        with store.read() as tx:
            return {item.name: item for item in tx.alerts.rules()}

    def seen(rule: AlertRule) -> tuple[bool, float, float, Severity]:
        return rule.enabled, rule.threshold, rule.for_seconds, rule.severity

    before = rules(Thresholds())
    assert not before["gpu-utilization"].enabled
    with store.write() as tx:
        # an earlier version stored only these two
        stored = {name: [rule.threshold, rule.enabled] for name, rule in before.items()}
        tx.meta.put(alerts.FOLLOWED, json.dumps(stored))
    asked = Thresholds(utilization_percent=95, memory_percent=90, power_watts=400, duration_seconds=30)
    after = rules(asked)
    assert seen(after["gpu-utilization"]) == (True, 95, 30, Severity.WARNING)
    assert seen(after["gpu-memory"]) == (True, 90, 30, Severity.WARNING)
    assert seen(after["gpu-power-watts"]) == (True, 400, 30, Severity.WARNING)
    Desk(store).do(alerts.edit_rule, ROOT, "gpu-memory", {"enabled": False})
    assert not rules(asked)["gpu-memory"].enabled, "an operator may switch it off again"
    assert not rules(Thresholds())["gpu-utilization"].enabled


def test_only_operators(desk: Desk) -> None:
    rule(desk)
    channel(desk)
    attempts: list[tuple[Any, tuple[Any, ...]]] = [
        (alerts.acknowledge, (1,)),
        (alerts.create_silence, (Silence(id="s", ends_at=2000.0),)),
        (alerts.delete_silence, ("s",)),
        (alerts.create_rule, (replace(HOT, name="mine"),)),
        (alerts.edit_rule, ("hot", {"threshold": 1.0})),
        (alerts.delete_rule, ("hot",)),
        (alerts.reset_rule, ("hot",)),
        (channels.create, (ChannelRecord(name="mine", url="x", shown="x"),)),
        (channels.edit, ("ops", {"enabled": False})),
        (channels.delete, ("ops",)),
        (channels.test, ("ops",)),
        (channels.resend, (1,)),
    ]
    for use_case, args in attempts:
        with pytest.raises(Forbidden):
            desk.do(use_case, ANN, *args)


#: changes to a silence that would be fine, and the field that is refused
WRONG_SILENCES: list[tuple[dict[str, Any], str]] = [
    ({"ends_at": 999.0}, "ends_at"),
    ({"starts_at": 3000.0}, "ends_at"),
    ({"ends_at": 1e12}, "ends_at"),
    ({"rule": ""}, "rule"),
    ({"subject": ""}, "subject"),
    ({"reason": "x" * 1001}, "reason"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG_SILENCES)
def test_a_wrong_silence_is_refused(desk: Desk, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        desk.do(alerts.create_silence, ROOT, Silence(**{"id": "s", "ends_at": 2000.0, **changes}))
    assert caught.value.field == field


def test_missing_alerts_rules_and_silences_are_not_found(desk: Desk) -> None:
    missing: list[tuple[Any, tuple[Any, ...]]] = [
        (alerts.acknowledge, (1,)),
        (alerts.delete_silence, ("s",)),
        (alerts.edit_rule, ("none", {})),
        (alerts.delete_rule, ("none",)),
        (channels.edit, ("none", {})),
        (channels.delete, ("none",)),
        (channels.test, ("none",)),
        (channels.resend, (1,)),
    ]
    for use_case, args in missing:
        with pytest.raises(NotFound):
            desk.do(use_case, ROOT, *args)


# ------------------------------------------------------------------------------------------------ channels


def test_a_notice_is_tried_again_with_longer_and_longer_pauses_and_then_given_up(desk: Desk) -> None:
    channel(desk)
    (item,) = desk.do(channels.enqueue, ["ops", "nowhere", "ops"], "report", "t", "b", ["/x.pdf"])
    pauses = []
    for tried in range(1, channels.MAX_TRIES + 1):
        begun = desk.do(channels.begin, item.id)
        assert begun is not None
        assert begun.delivery.attempts == tried
        failed = desk.do(channels.finish, item.id, f"no {tried}")
        assert failed is not None
        if failed.state is DeliveryState.WAITING:
            pauses.append(failed.next_try_at - desk.now)
    assert pauses == [1, 5, 30, 120, 600]
    assert failed is not None
    assert (failed.state, failed.error, failed.attempts) == (DeliveryState.FAILED, "no 6", 6)
    assert desk.do(channels.begin, item.id) is None
    assert desk.actions("ops")[-1] == "channel.delivery-failed"
    assert desk.do(channels.resend, ROOT, item.id).attempts == 0
    assert desk.do(channels.begin, item.id) is not None
    done = desk.do(channels.finish, item.id)
    assert done is not None
    assert (done.state, done.error, done.sent_at) == (DeliveryState.SENT, "", desk.now)
    with pytest.raises(WrongState):
        desk.do(channels.resend, ROOT, item.id)


def test_a_wrong_address_and_a_test_are_not_tried_again(desk: Desk) -> None:
    channel(desk)
    (item,) = desk.do(channels.enqueue, ["ops"], "report", "t", "b")
    desk.do(channels.begin, item.id)
    refused = desk.do(channels.finish, item.id, "wrong address", is_final=True)
    tried = desk.do(channels.test, ROOT, "ops")
    desk.do(channels.begin, tried.id)
    failed = desk.do(channels.finish, tried.id, "no")
    assert refused is not None
    assert failed is not None
    assert (refused.state, failed.state) == (DeliveryState.FAILED, DeliveryState.FAILED)


def test_a_server_that_died_while_it_sent_tries_again_but_not_for_ever(desk: Desk) -> None:
    channel(desk)
    (item,) = desk.do(channels.enqueue, ["ops"], "report", "t", "b")
    for _ in range(channels.MAX_TRIES):
        assert desk.do(channels.begin, item.id) is not None
    assert desk.do(channels.begin, item.id) is None
    assert deliveries(desk)[0].state is DeliveryState.FAILED


def test_a_channel_that_goes_takes_what_waits_with_it(desk: Desk) -> None:
    channel(desk)
    channel(desk, "off")
    rule(desk, replace(HOT, channels=("ops",)))
    items = desk.do(channels.enqueue, ["ops", "off"], "report", "t", "b")
    with pytest.raises(Refusal, match="rules name channel ops"):
        desk.do(channels.delete, ROOT, "ops")
    desk.do(alerts.delete_rule, ROOT, "hot")
    desk.do(channels.delete, ROOT, "ops")
    desk.do(channels.edit, ROOT, "off", {"enabled": False})
    assert [desk.do(channels.begin, item.id) for item in items] == [None, None]
    assert [deliveries(desk)[0].error, deliveries(desk, "off")[0].error] == [
        "channel ops was deleted",
        "channel off is switched off",
    ]
    assert desk.do(channels.enqueue, ["ops", "off"], "report", "t", "b") == []


def test_channels_of_the_configuration_follow_it(desk: Desk) -> None:
    one = ChannelRecord(name="config-1", url="a", shown="a://", from_config=True)
    two = replace(one, name="config-2", url="b")
    desk.do(channels.follow_settings, [one, two])
    desk.do(channels.edit, ROOT, "config-1", {"min_severity": Severity.CRITICAL})
    with pytest.raises(WrongState, match="configuration file"):
        desk.do(channels.edit, ROOT, "config-1", {"url": "x"})
    with pytest.raises(WrongState, match="configuration file"):
        desk.do(channels.delete, ROOT, "config-1")
    with pytest.raises(Invalid):
        channel(desk, "config-9")
    channel(desk)
    before = len(desk.events())
    desk.do(channels.follow_settings, [one, two])
    assert len(desk.events()) == before, "nothing has changed"
    desk.do(channels.follow_settings, [replace(one, url="c", shown="c://")])
    with desk.store.read() as tx:
        kept = tx.channels.all()
    assert [(item.name, item.url, item.min_severity) for item in kept] == [
        ("config-1", "c", Severity.CRITICAL),
        ("ops", "secret", Severity.INFO),
    ]


def test_no_event_has_an_address(desk: Desk) -> None:
    channel(desk, url="top-secret")
    desk.do(channels.edit, ROOT, "ops", {"url": "other-secret", "enabled": False})
    assert "secret" not in repr(desk.events())
    with pytest.raises(Taken):
        channel(desk)
    for name in ("Ops", "", "a b", "x" * 64):
        with pytest.raises(Invalid):
            channel(desk, name)
