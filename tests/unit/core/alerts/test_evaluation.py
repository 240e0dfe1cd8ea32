"""The life of alerts: stories of values over time, and what holds for every sequence of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.alerts.evaluation import Evaluation, evaluate
from corral.core.alerts.facts import Facts, FailureFact, GpuFact, NodeFact
from corral.core.alerts.model import Alert, AlertRule, AlertState, Comparison, Severity, Silence
from corral.core.model import GpuHealth, NodeState

HOT = AlertRule(name="hot", signal="gpu-temperature", threshold=85, for_seconds=10, clear_seconds=20)
LOST = AlertRule(name="lost", signal="node-lost", comparison=Comparison.AT_LEAST, threshold=1)


@dataclass
class Watch:
    """A store that holds what evaluations say, and a book of what happened."""

    rules: Sequence[AlertRule] = (HOT,)
    silences: list[Silence] = field(default_factory=list)
    live: dict[int, Alert] = field(default_factory=dict)
    over: list[Alert] = field(default_factory=list)
    book: list[str] = field(default_factory=list)
    writes: int = 0

    def look(self, at: float, facts: Facts) -> Evaluation:
        found = evaluate(self.rules, facts, list(self.live.values()), self.silences, at)
        self.writes += not found.is_empty
        for alert in found.new:
            number = len(self.live) + len(self.over) + 1000 * self.writes
            self.live[number] = replace(alert, id=number)
        for alert in found.changed:
            assert alert.id in self.live
            self.live[alert.id] = alert
        for alert in found.resolved:
            del self.live[alert.id]
            self.over.append(alert)
        for alert in found.dropped:
            del self.live[alert.id]
        for key in found.fired:
            self.book.append(f"{at:g} fired {key[1]}")
        for key in found.to_notify:
            self.book.append(f"{at:g} notified {key[1]}")
        for alert in found.resolved:
            self.book.append(f"{at:g} resolved {alert.subject}")
        assert max(Counter(alert.key for alert in self.live.values()).values(), default=1) == 1
        return found

    def temperatures(self, at: float, **celsius: float | None) -> Evaluation:
        return self.look(at, heat(at, **celsius))


def heat(at: float, **celsius: float | None) -> Facts:
    gpus = [GpuFact(id=name, node="n1", temperature_celsius=value) for name, value in celsius.items()]
    return Facts(now=at, gpus=gpus, nodes=[NodeFact(id="n1")])


# ------------------------------------------------------------------------------------------------ stories

#: the rule, values at each time, and what happened
STORIES: dict[str, tuple[AlertRule, list[tuple[float, float | None]], list[str]]] = {
    "a short peak is nothing": (HOT, [(0, 90), (5, 90), (9, 60), (30, 60)], []),
    "it fires once it lasted, and is over once that lasted": (
        HOT,
        [(0, 90), (5, 91), (10, 92), (15, 93), (20, 80), (35, 80), (40, 80), (50, 80)],
        ["10 fired g", "10 notified g", "40 resolved g"],
    ),
    "exactly at the threshold is not above it": (HOT, [(0, 85), (20, 85)], []),
    "without a wait it fires at once": (replace(HOT, for_seconds=0), [(3, 90)], ["3 fired g", "3 notified g"]),
    "a value at the edge fires once": (
        HOT,
        [(0, 90), (10, 90), (15, 80), (20, 90), (25, 80), (30, 90), (35, 80), (55, 80)],
        ["10 fired g", "10 notified g", "55 resolved g"],
    ),
    "what is not known concludes nothing": (
        HOT,
        [(0, 90), (10, 90), (15, None), (500, None), (505, 90), (510, 80), (520, None), (530, 80)],
        ["10 fired g", "10 notified g", "530 resolved g"],
    ),
    "it may come back": (
        replace(HOT, for_seconds=0, clear_seconds=0),
        [(0, 90), (5, 80), (10, 90)],
        ["0 fired g", "0 notified g", "5 resolved g", "10 fired g", "10 notified g"],
    ),
    "below is a threshold too": (
        replace(HOT, comparison=Comparison.BELOW, threshold=10, for_seconds=0, clear_seconds=0),
        [(0, 10), (1, 9), (2, 8), (3, 10)],
        ["1 fired g", "1 notified g", "3 resolved g"],
    ),
    "a rule for other subjects": (
        replace(HOT, subjects=("x*", "?"), for_seconds=0),
        [(0, 90)],
        ["0 fired g", "0 notified g"],
    ),
    "a rule not for this one": (replace(HOT, subjects=("x*", "??"), for_seconds=0), [(0, 90)], []),
    "a rule that is off": (replace(HOT, enabled=False, for_seconds=0), [(0, 90)], []),
    "a signal of a later version": (replace(HOT, signal="gpu-colour", for_seconds=0), [(0, 90)], []),
}


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str) -> None:
    rule, values, expected = STORIES[name]
    watch = Watch(rules=[rule])
    for at, value in values:
        watch.temperatures(at, g=value)
    assert watch.book == expected


def test_a_round_without_news_writes_nothing() -> None:
    watch = Watch()
    for at in range(0, 1000, 5):
        watch.temperatures(at, g=90 + at % 2, cool=40, unknown=None)
    assert watch.writes == 2  # pending, and firing
    watch.temperatures(1000, g=97, cool=40)
    (alert,) = watch.live.values()
    assert (alert.value, alert.worst, watch.writes) == (97, 97, 3), "a value that is clearly another one is kept"
    assert alert.text == "GPU g (on n1) is at 97 °C (above 85 °C)"


def test_value_and_text_follow_the_readings() -> None:
    watch = Watch()
    for at, celsius in ((0, 90), (10, 92), (20, 99)):
        watch.temperatures(at, g=celsius)
    (alert,) = watch.live.values()
    assert (alert.value, alert.worst, alert.text) == (99, 99, "GPU g (on n1) is at 99 °C (above 85 °C)")
    watch.temperatures(25, g=88)
    (alert,) = watch.live.values()
    assert (alert.value, alert.worst, alert.text) == (88, 99, "GPU g (on n1) is at 88 °C (above 85 °C)")
    watch.temperatures(30, g=70)
    (alert,) = watch.live.values()
    assert (alert.state, alert.value) == (AlertState.FIRING, 70)
    assert alert.text == "GPU g (on n1) is at 70 °C (no longer above 85 °C)"
    watch.look(35, Facts(now=35, gpus=[GpuFact(id="g", node="n1", temperature_celsius=90, jobs=("j-7",))]))
    watch.look(40, Facts(now=40, gpus=[GpuFact(id="g", node="n1", temperature_celsius=90, jobs=("j-8",))]))
    (alert,) = watch.live.values()
    assert alert.text == "GPU g (on n1 under j-8) is at 90 °C (above 85 °C)", "the job that holds it now"
    for at in (50, 55, 60, 65, 70):
        watch.temperatures(at, g=60)
    (over,) = watch.over
    assert over.text == "GPU g (on n1) is at 99 °C (above 85 °C). Over: GPU g (on n1) is at 60 °C"


def test_the_end_says_why() -> None:
    def with_rules(watch: Watch, *rules: AlertRule) -> None:
        watch.rules = list(rules)
        watch.temperatures(30, g=99)

    ends: list[tuple[Callable[[Watch], object], str | None]] = [
        (lambda watch: watch.temperatures(30, g=60), None),
        (lambda watch: watch.look(30, Facts(now=30)), "it is no longer part of the cluster"),
        (with_rules, "rule hot was deleted or switched off"),
        (lambda watch: with_rules(watch, replace(HOT, subjects=("x",))), "rule hot no longer watches g"),
    ]
    for change, why in ends:
        watch = Watch()
        for at in (0, 10):
            watch.temperatures(at, g=90)
        change(watch)
        if why is None:
            watch.temperatures(50, g=60)
            why = "GPU g (on n1) is at 60 °C"
        (alert,) = watch.over
        assert alert.state is AlertState.RESOLVED
        assert alert.text.endswith(f"Over: {why}")
        assert not watch.live


def test_a_failed_job_has_one_notice_and_is_over_later() -> None:
    rule = AlertRule(name="failed", signal="job-failed", comparison=Comparison.AT_LEAST, threshold=1)
    watch = Watch(rules=[rule])
    failure = FailureFact(id="j-7", at=0, user="ann", name="resnet", reason="exit_code 3", message="boom")
    for at in (0, 5, 10):
        watch.look(at, Facts(now=at, failures=[failure]))
    (alert,) = watch.live.values()
    assert (alert.owner, alert.subject) == ("ann", "j-7")
    assert alert.text == "job j-7 (resnet) of ann failed: exit code 3: boom"
    watch.look(700, Facts(now=700))
    assert watch.book == ["0 fired j-7", "0 notified j-7", "700 resolved j-7"]


# ------------------------------------------------------------------------------------------------ hushed


def silence(start: float, end: float, rule: str = "*", subject: str = "*") -> Silence:
    return Silence(id="s", rule=rule, subject=subject, starts_at=start, ends_at=end)


@pytest.mark.parametrize(
    ("covering", "notified"),
    [
        (silence(0, 100), []),
        (silence(0, 100, subject="g"), []),
        (silence(0, 100, rule="ho?"), []),
        (silence(0, 100, subject="other"), ["0 notified g"]),
        (silence(0, 100, rule="cold"), ["0 notified g"]),
        (silence(50, 100), ["0 notified g"]),
    ],
)
def test_a_silence_covers_what_it_matches(covering: Silence, notified: list[str]) -> None:
    watch = Watch(rules=[replace(HOT, for_seconds=0)], silences=[covering])
    watch.temperatures(0, g=90)
    assert [line for line in watch.book if "notified" in line] == notified
    assert "0 fired g" in watch.book, "it is recorded in any case"


def test_an_alert_that_fires_longer_than_its_silence_gets_its_notices_then() -> None:
    watch = Watch(rules=[replace(HOT, for_seconds=0, clear_seconds=0)], silences=[silence(0, 100)])
    for at in (0, 50, 100, 150):
        watch.temperatures(at, g=90)
    assert watch.book == ["0 fired g", "100 notified g"]
    watch.temperatures(200, g=60)
    assert not watch.over[0].is_hushed


def test_an_alert_that_ends_in_its_silence_has_no_notice() -> None:
    watch = Watch(rules=[replace(HOT, for_seconds=0, clear_seconds=0)], silences=[silence(0, 100)])
    watch.temperatures(0, g=90)
    watch.temperatures(50, g=60)
    assert watch.book == ["0 fired g", "50 resolved g"]
    assert watch.over[0].is_hushed


def test_a_silence_that_comes_later_keeps_the_end_quiet() -> None:
    watch = Watch(rules=[replace(HOT, for_seconds=0, clear_seconds=0)])
    watch.temperatures(0, g=90)
    watch.silences.append(silence(10, 100))
    watch.temperatures(50, g=60)
    assert watch.over[0].is_hushed


def test_gpus_of_a_lost_node_are_folded_into_its_alert_unless_they_fire_longer() -> None:
    failed = AlertRule(name="failed", signal="gpu-health", comparison=Comparison.AT_LEAST, threshold=2)
    watch = Watch(rules=[failed, replace(LOST, clear_seconds=0)])

    def facts(at: float, state: NodeState) -> Facts:
        gpus = [GpuFact(id=f"g{number}", node="n1", health=GpuHealth.FAILED) for number in range(4)]
        other = GpuFact(id="elsewhere", node="n2", health=GpuHealth.FAILED)
        return Facts(now=at, gpus=[*gpus, other], nodes=[NodeFact(id="n1", state=state), NodeFact(id="n2")])

    watch.look(0, facts(0, NodeState.DOWN))
    assert sorted(line for line in watch.book if "notified" in line) == ["0 notified elsewhere", "0 notified n1"]
    assert {alert.folded_into for alert in watch.live.values()} == {"", "lost of n1"}
    watch.look(5, facts(5, NodeState.DOWN))
    assert watch.writes == 1
    watch.look(10, facts(10, NodeState.READY))
    assert sum(line.startswith("10 notified g") for line in watch.book) == 4


def test_the_milder_of_two_about_the_same_is_folded() -> None:
    rules = [
        replace(HOT, for_seconds=0, name="warm", threshold=70),
        replace(HOT, for_seconds=0, severity=Severity.CRITICAL),
    ]
    watch = Watch(rules=rules)
    watch.temperatures(0, g=90, mild=75)
    notified = {alert.key for alert in watch.live.values() if not alert.is_hushed}
    assert notified == {("hot", "g"), ("warm", "mild")}


# ------------------------------------------------------------------------------------------------ what always holds

temperatures = st.one_of(st.none(), st.sampled_from([60.0, 84.0, 85.0, 86.0, 99.0]))
steps = st.lists(st.tuples(st.floats(1, 30), temperatures, temperatures), max_size=40)
some_rules = st.builds(
    lambda wait, clear: [
        replace(HOT, for_seconds=wait, clear_seconds=clear),
        replace(HOT, name="warm", threshold=70, for_seconds=clear, clear_seconds=wait),
    ],
    st.sampled_from([0.0, 10.0, 60.0]),
    st.sampled_from([0.0, 15.0, 60.0]),
)


def watch_values(rules: Sequence[AlertRule], values: Iterable[tuple[float, Any, Any]], silences: Any = ()) -> Watch:
    watch, at = Watch(rules=rules, silences=list(silences)), 0.0
    for pause, first, second in values:
        at += pause
        watch.temperatures(at, a=first, b=second)
    return watch


@given(some_rules, steps, st.lists(st.builds(silence, st.floats(0, 300), st.floats(0, 600)), max_size=2))
def test_an_alert_fires_and_resolves_at_most_once_with_a_notice_only_when_it_fires(
    rules: list[AlertRule], values: list[Any], silences: list[Silence]
) -> None:
    watch = watch_values(rules, values, silences)
    for alert in watch.over:
        assert alert.fired_at is not None
        assert alert.resolved_at is not None
        assert alert.pending_since <= alert.fired_at <= alert.resolved_at
    assert len({alert.id for alert in watch.over}) == len(watch.over)
    fired = sum("fired" in line for line in watch.book)
    assert fired == len(watch.over) + sum(alert.fired_at is not None for alert in watch.live.values())
    assert sum("notified" in line for line in watch.book) <= fired
    if not silences:
        folded = sum(bool(alert.folded_into) for alert in (*watch.over, *watch.live.values()))
        assert sum("notified" in line for line in watch.book) == fired - folded


@given(some_rules, steps)
def test_nothing_is_kept_outside_the_live_alerts(rules: list[AlertRule], values: list[Any]) -> None:
    """A restart after every look, in which only the store survives, changes nothing; neither does a look without
    readings in between."""
    plain = watch_values(rules, values)
    again, at = Watch(rules=rules), 0.0
    for pause, first, second in values:
        at += pause
        again = Watch(
            rules=rules, live=dict(again.live), over=list(again.over), book=list(again.book), writes=again.writes
        )
        again.temperatures(at, a=first, b=second)
        assert again.temperatures(at + 0.5, a=None, b=None).is_empty
    assert again.book == plain.book
    assert again.live == plain.live


@given(st.lists(st.tuples(st.floats(0.5, 9.5), st.booleans()), min_size=1, max_size=60))
def test_flapping_faster_than_it_clears_fires_once(values: list[tuple[float, bool]]) -> None:
    watch, at = Watch(rules=[replace(HOT, for_seconds=0, clear_seconds=20)]), 0.0
    watch.temperatures(at, g=90)
    cool_since: float | None = None
    for pause, hot in values:
        at += pause
        cool_since = None if hot else (at if cool_since is None else cool_since)
        if cool_since is not None and at - cool_since >= 20:
            break
        watch.temperatures(at, g=90 if hot else 80)
    assert watch.book == ["0 fired g", "0 notified g"]
