"""Signals: their values, idle times, and texts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from corral.core.alerts.defaults import Thresholds, builtin_rules
from corral.core.alerts.facts import (
    Facts,
    FailureFact,
    GpuFact,
    NodeFact,
    PoolFact,
    QueueFact,
    RowFact,
    Scope,
    ServerFact,
    VolumeFact,
)
from corral.core.alerts.model import Alert, AlertState, Severity
from corral.core.alerts.notices import LISTED, QUIET_SECONDS, compose, may_go_at
from corral.core.alerts.recent import ERROR_SECONDS, Recent
from corral.core.alerts.signal import quantity
from corral.core.alerts.signals import SIGNALS
from corral.core.model import GpuHealth, NodeState

GPU = GpuFact(
    id="g1",
    node="n1",
    model="A10",
    temperature_celsius=91.4,
    power_part=0.5,
    power_watts=350.0,
    utilization=0.25,
    memory_part=0.9,
    errors=("XID 79", "XID 79"),
    idle_seconds=120,
    jobs=("j-1",),
    users=("ann",),
)
UNKNOWN = GpuFact(id="g2", node="n1")
FACTS = Facts(
    now=0,
    gpus=[GPU, UNKNOWN],
    nodes=[NodeFact(id="n1", gpus=2, jobs=("j-1",)), NodeFact(id="n2", state=NodeState.DOWN)],
    queues=[
        QueueFact(
            id="default",
            waiting=3,
            longest_wait_seconds=600,
            first_job="j-9",
            plan_failure="KeyError: 'x' (snapshot ab)",
        )
    ],
    pools=[PoolFact(id="default", gpus=2, free=1), PoolFact(id="empty")],
    failures=[FailureFact(id="j-3", at=0, user="bob", reason="oom_killed")],
    rows=[RowFact(id="jobs 7", error="KeyError: 'request'")],
    servers=[ServerFact(id="one", standbys=1), ServerFact(id="two")],
    volumes=[
        VolumeFact(id="v-1", name="data", owner="eve", size_bytes=1 << 30, used_bytes=979 << 20),
        VolumeFact(id="v-2", name="new", owner="eve", size_bytes=1 << 30),
    ],
)

#: values and texts by signal and subject
MEASURED: dict[str, dict[str, tuple[float, str]]] = {
    "gpu-temperature": {"g1": (91.4, "GPU g1 (A10 on n1 under j-1) is at 91 °C")},
    "gpu-power-watts": {"g1": (350, "GPU g1 (A10 on n1 under j-1) draws 350 W")},
    "gpu-power": {"g1": (50, "GPU g1 (A10 on n1 under j-1) draws 50 % of its power limit")},
    "gpu-utilization": {"g1": (25, "GPU g1 (A10 on n1 under j-1) is 25 % busy")},
    "gpu-memory": {"g1": (90, "the memory of GPU g1 (A10 on n1 under j-1) is 90 % full")},
    "gpu-errors": {"g1": (2, "GPU g1 (A10 on n1 under j-1) reported XID 79")},
    "gpu-health": {
        "g1": (0, "GPU g1 (A10 on n1 under j-1) is healthy"),
        "g2": (0, "GPU g2 (on n1) is healthy"),
    },
    "gpu-idle": {"g1": (2, "GPU g1 (A10 on n1 under j-1) has done nothing for 2 min")},
    "node-lost": {"n1": (0, "node n1 with its 2 GPUs is ready"), "n2": (1, "node n2 is lost")},
    "plan-failed": {"default": (1, "queue default cannot be planned: KeyError: 'x' (snapshot ab)")},
    "queue-length": {"default": (3, "3 jobs wait in queue default")},
    "queue-wait": {"default": (10, "the longest wait in queue default is 10 min: j-9")},
    "job-failed": {"j-3": (1, "job j-3 of bob failed: oom killed")},
    "gpus-free": {"default": (1, "1 of 2 GPUs of pool default is free")},
    "row-unreadable": {"jobs 7": (1, "the row jobs 7 cannot be read and is left out: KeyError: 'request'")},
    "no-standby": {
        "one": (0, "another server could lead beside one"),
        "two": (1, "server two leads, and no other server could take over"),
    },
    "volume-full": {"v-1": (100 * 979 / 1024, "volume data (v-1) of eve is 96 % full: 979MiB of 1GiB")},
}


def test_every_signal_measures_what_is_known_and_leaves_out_the_rest() -> None:
    assert MEASURED.keys() == SIGNALS.keys()
    for name, signal in SIGNALS.items():
        found = {
            fact.id: (value, signal.describe(fact, value).text)
            for fact in FACTS.of(signal.scope)
            if (value := signal.read(fact)) is not None
        }
        assert found == MEASURED[name], name


def test_a_quantity_counts_its_noun() -> None:
    shown = [quantity(value, unit) for value, unit in ((1.0, "GPUs"), (4.0, "GPUs"), (1, "jobs"), (1, "°C"), (2.5, ""))]
    assert shown == ["1 GPU", "4 GPUs", "1 job", "1 °C", "2.5"]


def test_only_alerts_about_what_is_somebodys_have_an_owner() -> None:
    owners = {
        name: {signal.describe(fact, 1).owner for fact in FACTS.of(signal.scope)} - {""}
        for name, signal in SIGNALS.items()
    }
    assert {name: found for name, found in owners.items() if found} == {
        "gpu-idle": {"ann"},
        "job-failed": {"bob"},
        "volume-full": {"eve"},
    }
    assert SIGNALS["gpu-idle"].describe(replace(GPU, users=("ann", "bob")), 60).owner == ""


def test_health_counts_up_and_says_why() -> None:
    suspect = replace(GPU, jobs=(), health=GpuHealth.SUSPECT, evidence="97 °C is above 85 °C")
    failed = replace(suspect, id="g3", health=GpuHealth.FAILED, evidence="")
    signal = SIGNALS["gpu-health"]
    assert [(value, signal.describe(gpu, value).text) for gpu in (suspect, failed) if (value := signal.read(gpu))] == [
        (1, "GPU g1 (A10 on n1) is suspect: 97 °C is above 85 °C"),
        (2, "GPU g3 (A10 on n1) has failed"),
    ]


def test_the_rules_that_corral_comes_with() -> None:
    rules = {rule.name: rule for rule in builtin_rules(Thresholds())}
    assert all(rule.builtin and rule.signal in SIGNALS and rule.description for rule in rules.values())
    assert {rule.signal for rule in rules.values()} == set(SIGNALS)
    thresholds = (rules["gpu-temperature"].threshold, rules["gpu-utilization"].threshold, rules["gpu-memory"].threshold)
    assert thresholds == (85, 95, 90)
    off = sorted(rule.name for rule in rules.values() if not rule.enabled)
    assert off == ["gpu-memory", "gpu-power-watts", "gpu-utilization", "gpus-free"]
    asked = {rule.name: rule for rule in builtin_rules(Thresholds(temperature_celsius=80, free_gpus=4))}
    assert (asked["gpus-free"].enabled, asked["gpus-free"].threshold, asked["gpu-temperature"].threshold) == (
        True,
        4,
        80,
    )


# ------------------------------------------------------------------------------------------------ recent


def test_a_gpu_is_idle_since_it_was_last_used_by_the_job_that_holds_it() -> None:
    recent = Recent(since=0)
    assert recent.idle_seconds("g") is None
    #: time, holders, use, idle seconds after it
    for at, holders, use, idle in (
        (0, (), 0.0, 0),
        (10, ("j-1.1",), 0.0, 0),
        (40, ("j-1.1",), 0.01, 30),
        (50, ("j-1.1",), None, None),
        (60, ("j-1.1",), 0.0, 50),
        (70, ("j-1.1",), 0.6, 0),
        (90, ("j-1.1",), 0.0, 20),
        (95, ("j-1.2",), 0.0, 0),
        (99, ("j-1.2",), 0.0, 4),
        (100, (), 0.0, 0),
    ):
        recent.see("g", at, holders=holders, utilization=use)
        assert recent.idle_seconds("g") == idle, at
    recent.retain(set())
    assert recent.idle_seconds("g") is None


def test_idleness_goes_on_after_a_restart() -> None:
    recent = Recent(since=1000)
    recent.resume("g", 400)
    assert recent.idle_seconds("g") is None, "nothing was read yet"
    recent.see("g", 1010, holders=("j-1.1",), utilization=0.0)
    assert recent.idle_seconds("g") == 610
    recent.see("g", 1020, holders=("j-1.1",), utilization=0.5)
    assert recent.idle_seconds("g") == 0


def test_errors_are_news_for_a_while_and_silence_is_believed_only_after_watching() -> None:
    recent = Recent(since=0)
    recent.see("g", 0, ecc_uncorrected=7, remap_failed=False)
    assert recent.errors("g", 10) is None
    recent.see("g", 20, xids=(79,), ecc_uncorrected=7)
    recent.see("g", 30, ecc_uncorrected=9, remap_failed=True)
    assert recent.errors("g", 30) == (
        "XID 79",
        "2 uncorrectable memory errors",
        "a row of its memory could not be remapped",
    )
    recent.see("g", 40, ecc_uncorrected=9, remap_failed=True)
    assert len(recent.errors("g", 40) or ()) == 3
    assert recent.errors("g", 20 + ERROR_SECONDS) == (
        "2 uncorrectable memory errors",
        "a row of its memory could not be remapped",
    )
    assert recent.errors("g", 31 + ERROR_SECONDS) == ()
    assert recent.errors("elsewhere", 0) is None


# ------------------------------------------------------------------------------------------------ notices


def alert(number: int, *, rule: str = "hot", severity: Severity = Severity.WARNING, over: bool = False) -> Alert:
    return Alert(
        id=number,
        rule=rule,
        subject=f"g{number}",
        scope=Scope.GPU,
        severity=severity,
        state=AlertState.RESOLVED if over else AlertState.FIRING,
        text=f"GPU g{number} is hot",
        fired_at=0.0,
        resolved_at=90.0 if over else None,
    )


def test_title_of_a_single_alert_is_the_alert() -> None:
    notice = compose([alert(7, severity=Severity.CRITICAL)])
    assert (notice.kind, notice.title) == ("fired", "[corral] CRITICAL: hot g7")
    assert notice.body == "Firing:\n- #7 critical hot: GPU g7 is hot"
    notice = compose([alert(7, over=True)], notified={7})
    assert (notice.kind, notice.title) == ("resolved", "[corral] RESOLVED: hot g7")
    assert notice.body == "Resolved:\n- #7 warning hot: GPU g7 is hot (after 90 s)"


def test_many_alerts_are_one_notice_with_the_worst_first() -> None:
    firing = [alert(number) for number in range(1, 40)]
    notice = compose([*firing, alert(50, rule="lost", severity=Severity.CRITICAL), alert(60, over=True)], notified={60})
    assert notice.title == "[corral] CRITICAL: 40 alerts fired (lost, hot), 1 alert resolved"
    lines = notice.body.splitlines()
    assert lines[1] == "- #50 critical lost: GPU g50 is hot"
    assert lines[LISTED + 1] == "… and 20 more: corral alert ls"
    assert lines[-2:] == ["Resolved:", "- #60 warning hot: GPU g60 is hot (after 90 s)"]


def test_an_alert_that_ended_before_its_notice_is_listed_with_both_its_ends() -> None:
    notice = compose([alert(7, over=True)])
    assert (notice.kind, notice.title) == ("fired", "[corral] WARNING: hot g7, resolved already")
    assert notice.body == "Fired, and resolved already:\n- #7 warning hot: GPU g7 is hot (after 90 s)"
    notice = compose([alert(7, over=True), alert(8), alert(9, over=True)], notified={9})
    assert notice.title == "[corral] WARNING: 2 alerts fired (hot), 1 of them resolved already, 1 alert resolved"
    assert notice.body.count("g7") == notice.body.count("g8") == notice.body.count("g9") == 1


def test_a_rule_has_one_notice_a_minute_but_new_alerts_never_wait() -> None:
    notified = {"hot": 100.0, "old": 0.0}
    assert may_go_at({"hot"}, notified, 110.0) == 100 + QUIET_SECONDS
    assert may_go_at({"hot", "lost"}, notified, 110.0) == 110
    assert may_go_at({"hot", "old"}, notified, 110.0) == 110
    assert may_go_at({"lost"}, {}, 110.0) == 110


def test_the_console_has_a_sentence_for_each_rule() -> None:
    texts = Path(__file__).parents[4] / "console" / "src" / "pages" / "alerts" / "sentences.texts.ts"
    named = set(re.findall(r'^  "([a-z-]+)": \[', texts.read_text(encoding="utf-8"), re.MULTILINE))
    missing = {rule.name for rule in builtin_rules(Thresholds())} - named
    assert not missing, f"add to sentences.texts.ts: {sorted(missing)}"
