"""A GPU's health after readings: stories, and properties for any readings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.ports import GpuReading
from corral.core.model import GpuHealth, JobKind
from corral.core.monitoring.health.judgement import judge, put, recover_seconds
from corral.core.monitoring.health.model import DAY, KEPT_EVIDENCE, Condition, Evidence, HealthRules, Memory, Sign
from corral.core.monitoring.health.xid import TABLE, Severity, about
from tests.unit.core.monitoring.health.readings import RULES, Watcher, holder, reading
from tests.unit.searching import every

HEALTHY, SUSPECT, FAILED = GpuHealth.HEALTHY, GpuHealth.SUSPECT, GpuHealth.FAILED

#: what is read one after the other, and the health after each
STORIES: dict[str, list[tuple[dict[str, Any], GpuHealth]]] = {
    "hot once": [({"temperature_celsius": 86}, SUSPECT), ({"temperature_celsius": 80}, SUSPECT)],
    "as hot as is allowed": [({"temperature_celsius": 85}, HEALTHY)],
    "hot three times": [
        ({"temperature_celsius": 86}, SUSPECT),
        ({"temperature_celsius": 90}, SUSPECT),
        ({"temperature_celsius": 86}, FAILED),
        ({"temperature_celsius": 30}, FAILED),
    ],
    "a cool reading between": [
        ({"temperature_celsius": 86}, SUSPECT),
        ({"temperature_celsius": 90}, SUSPECT),
        ({"temperature_celsius": 60}, SUSPECT),
        ({"temperature_celsius": 86}, SUSPECT),
    ],
    "a reading without temperature neither confirms nor clears": [
        ({"temperature_celsius": 86}, SUSPECT),
        ({}, SUSPECT),
        ({"temperature_celsius": 90}, SUSPECT),
        ({}, SUSPECT),
        ({"temperature_celsius": 86}, FAILED),
    ],
    "lost, and there again": [({"lost": True}, SUSPECT), ({}, SUSPECT), ({"lost": True}, SUSPECT)],
    "lost for good": [({"lost": True}, SUSPECT), ({"lost": True}, SUSPECT), ({"lost": True}, FAILED)],
    "errors from before": [({"ecc_uncorrected": 7}, HEALTHY), ({"ecc_uncorrected": 7}, HEALTHY)],
    "a new error": [({"ecc_uncorrected": 7}, HEALTHY), ({}, HEALTHY), ({"ecc_uncorrected": 8}, FAILED)],
    "a counter that begins anew": [
        ({"ecc_uncorrected": 7}, HEALTHY),
        ({"ecc_uncorrected": 0}, HEALTHY),
        ({"ecc_uncorrected": 1}, FAILED),
    ],
    "corrected errors": [({"ecc_corrected": 7}, HEALTHY), ({"ecc_corrected": 70_000}, HEALTHY)],
    "a row replaced": [({"remapped_rows": 1}, HEALTHY), ({"remapped_rows": 2}, SUSPECT), ({}, SUSPECT)],
    "a row that cannot be replaced": [({"remap_failed": False}, HEALTHY), ({"remap_failed": True}, FAILED)],
    "the program's own errors": [({"xids": (13, 31)}, HEALTHY), ({"xids": (43, 45)}, HEALTHY)],
    "off the bus": [({"xids": (31, 79, 45)}, FAILED)],
    "errors of a link, again and again": [
        ({"xids": (74,)}, SUSPECT),
        ({}, SUSPECT),
        ({"xids": (74,)}, SUSPECT),
        ({}, SUSPECT),
        ({"xids": (74,)}, FAILED),
    ],
    "an unknown code": [({"xids": (7777,)}, SUSPECT)],
    "nothing known at all": [({}, HEALTHY), ({}, HEALTHY)],
}


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    watcher = Watcher()
    seen = [(values, watcher.see(**values)) for values, _ in STORIES[story]]
    assert seen == STORIES[story]


def test_the_evidence_says_what_was_seen_and_what_to_do() -> None:
    watcher = Watcher()
    watcher.see(temperature_celsius=91.4)
    hot = watcher.condition.evidence[0]
    assert (hot.sign, hot.at, hot.value) == (Sign.HOT, 1010.0, 91.4)
    assert "91 °C, more than 85 °C" in hot.text
    assert "fans" in hot.advice
    watcher.see(temperature_celsius=92.0)
    assert list(watcher.condition.evidence) == [hot], "one hot GPU is one piece of evidence, not one per reading"
    watcher.see(temperature_celsius=92.0, xids=(79,))
    assert [item.sign for item in watcher.condition.evidence] == [Sign.HOT, Sign.HOT, Sign.XID]
    assert watcher.condition.since == watcher.now
    watcher.see(xids=(79,))
    watcher.see(xids=(48,))
    assert [item.value for item in watcher.condition.evidence[2:]] == [79, 48], "a failed GPU still collects evidence"


def test_evidence_does_not_grow_without_end() -> None:
    watcher = Watcher()
    for code in range(1000, 1030):
        watcher.see(xids=(code,))
    assert [item.value for item in watcher.condition.evidence] == [*range(1030 - KEPT_EVIDENCE, 1030)]


# -------------------------------------------------------------------------------------------- idle


def test_idle_under_a_job_is_suspect_after_the_grace_and_failed_later() -> None:
    watcher, by = Watcher(), [holder()]
    assert watcher.see(by=by, utilization=0.9) is HEALTHY
    assert watcher.see_for(600, by=by, utilization=0.0) is HEALTHY
    assert watcher.see(by=by, utilization=0.0) is SUSPECT
    assert watcher.see_for(590, by=by, utilization=0.0) is SUSPECT, "many readings alone confirm nothing"
    assert watcher.see(by=by, utilization=0.0) is FAILED
    assert "20 minutes under a running job" in watcher.condition.evidence[-1].text


INNOCENT: dict[str, dict[str, Any]] = {
    "free": {"by": []},
    "a workbench": {"by": [holder(kind=JobKind.WORKBENCH)]},
    "a share": {"by": [holder(gpu_milli=500)]},
    "shared": {"by": [holder(), holder("j-2")]},
    "still starting": {"by": [holder(running_since=None)]},
    "a job that says that it idles": {"by": [holder(idles=True)]},
    "a job that works elsewhere, and has never used this one": {"by": [holder()], "working": ["j-1.1"]},
}


@pytest.mark.parametrize("case", INNOCENT)
def test_idleness_that_proves_nothing(case: str) -> None:
    assert Watcher().see_for(2000, utilization=0.0, **INNOCENT[case]) is HEALTHY


def test_a_job_that_was_moved_off_a_failed_gpu_makes_the_next_one_suspect_and_no_more() -> None:
    watcher, by = Watcher(), [holder(number=2, after_gpu_failure=True)]
    assert watcher.see_for(600, by=by, utilization=0.0) is HEALTHY
    assert watcher.see_for(50, by=by, utilization=0.0) is SUSPECT
    assert watcher.see_for(5000, by=by, utilization=0.0) is SUSPECT
    assert "moved off another GPU" in watcher.condition.evidence[-1].text
    assert "hangs by itself" in watcher.condition.evidence[-1].advice


def test_by_default_zero_use_is_found_within_minutes() -> None:
    watcher, by = Watcher(HealthRules()), [holder()]
    watcher.see(by=by, utilization=0.9)
    assert watcher.see_for(290, by=by, utilization=0.0) is HEALTHY
    assert watcher.see_for(30, by=by, utilization=0.0) is SUSPECT
    assert watcher.see_for(1400, by=by, utilization=0.0) is SUSPECT
    assert watcher.see_for(200, by=by, utilization=0.0) is FAILED


def test_gpu_that_stops_while_others_of_its_job_go_on_is_suspect() -> None:
    watcher, by = Watcher(), [holder()]
    watcher.see(by=by, working=["j-1.1"], utilization=0.7)
    assert watcher.see_for(700, by=by, working=["j-1.1"], utilization=0.0) is SUSPECT


def test_idleness_is_counted_anew_for_every_attempt_after_work_and_after_a_gap() -> None:
    first = Watcher()
    first.see_for(500, by=[holder()], utilization=0.0)
    assert first.see_for(500, by=[holder(number=2)], utilization=0.0) is HEALTHY
    second = Watcher()
    second.see_for(500, by=[holder()], utilization=0.0)
    second.see(by=[holder()], utilization=0.3)
    assert second.see_for(500, by=[holder()], utilization=0.0) is HEALTHY
    third = Watcher()
    third.see_for(500, by=[holder()], utilization=0.0)
    assert third.see(step=5000, by=[holder()], utilization=0.0) is HEALTHY, "it is not known what happened in between"
    fourth = Watcher()
    assert fourth.see_for(2000, by=[holder()]) is HEALTHY, "no reading of its use is not a reading of zero"


def test_idleness_can_be_left_out_of_health() -> None:
    rules = replace(RULES, idle_grace_seconds=None)
    assert Watcher(rules).see_for(5000, by=[holder()], utilization=0.0) is HEALTHY


# -------------------------------------------------------------------------------------------- the way back


def test_a_suspect_gpu_recovers_after_a_time_without_fault() -> None:
    watcher = Watcher()
    watcher.see(temperature_celsius=90)
    assert watcher.see_for(290, temperature_celsius=60) is SUSPECT
    assert watcher.see(temperature_celsius=60) is HEALTHY
    assert watcher.condition.evidence, "earlier evidence is kept"
    assert watcher.condition.fresh_evidence == ()


def test_a_suspicion_that_was_never_seen_to_be_over_stays() -> None:
    watcher = Watcher()
    watcher.see(temperature_celsius=90)
    assert watcher.see_for(5000, power_watts=100.0) is SUSPECT, "its temperature is not known"
    assert watcher.see(temperature_celsius=60) is HEALTHY


def test_each_relapse_within_a_day_doubles_the_time_up_to_a_day() -> None:
    watcher, waits = Watcher(), []
    for _ in range(5):
        watcher.see(temperature_celsius=90)
        begin = watcher.now
        while watcher.see(temperature_celsius=60) is SUSPECT:
            pass
        waits.append(watcher.now - begin)
    assert waits == [300, 600, 1200, 2400, 4800]
    watcher.see_for(DAY, step=600.0, temperature_celsius=60)
    watcher.see(temperature_celsius=90)
    assert watcher.see_for(300, temperature_celsius=60) is HEALTHY, "after a quiet day it is trusted as before"


def test_a_restart_forgets_nothing_that_counts() -> None:
    suspect = Watcher()
    suspect.see(temperature_celsius=90)
    suspect.restart()
    assert suspect.see_for(1000, utilization=0.5) is SUSPECT
    assert suspect.see(temperature_celsius=60) is HEALTHY
    failed = Watcher(condition=Condition(gpu_id="g", health=FAILED, since=5.0))
    assert failed.see_for(10_000, step=100.0, temperature_celsius=40, utilization=0.5) is FAILED


def test_an_operators_word_is_taken_back_by_an_operator_only() -> None:
    said = Evidence(sign=Sign.OPERATOR, at=900.0, text="odd noise")
    watcher = Watcher(condition=put(Condition(gpu_id="g"), SUSPECT, [said], 900.0))
    assert watcher.see_for(DAY, step=600.0, temperature_celsius=40) is SUSPECT


def test_after_an_operators_reset_old_readings_do_not_count_but_new_ones_do() -> None:
    watcher = Watcher()
    watcher.see(ecc_uncorrected=1)
    watcher.see_for(30, temperature_celsius=90, ecc_uncorrected=1)
    assert watcher.health is FAILED
    watcher.condition = Condition(gpu_id="g")
    assert watcher.see(temperature_celsius=90, ecc_uncorrected=1) is SUSPECT
    watcher.see(temperature_celsius=90)
    assert watcher.see(temperature_celsius=90) is FAILED


def test_a_reading_that_comes_twice_or_late_changes_nothing() -> None:
    watcher = Watcher()
    watcher.see(temperature_celsius=90)
    for step in (0.0, -20.0):
        watcher.see(step=step, temperature_celsius=90, xids=(79,))
        assert watcher.health is SUSPECT


# -------------------------------------------------------------------------------------------- for any readings


#: in half of all cases None, and below and above what is allowed
TEMPERATURES = (*[None] * 19, *(20.0 + 5.0 * place for place in range(19)))
CODES = (*TABLE, 9999)
HOLDERS = (holder(), holder("j-2"), holder("j-3", after_gpu_failure=True))
SIGHTS = st.lists(
    every(
        utilization=(None, None, None, 0.0, 0.5, 1.0),
        temperature_celsius=TEMPERATURES,
        ecc_uncorrected=(None, None, None, None, 0, 1, 2, 3),
        remapped_rows=(None, None, None, None, 0, 1, 2, 3),
        remap_failed=(None, None, False, True),
        xids=((), (), *((code,) for code in CODES), *((code, CODES[-place]) for place, code in enumerate(CODES))),
        lost=(False, True),
        by=([], *([one] for one in HOLDERS), *([one, other] for one in HOLDERS for other in HOLDERS)),
        step=(5.0, 60.0, 400.0, 10_000.0),
    ),
    min_size=1,
    max_size=25,
)


@given(SIGHTS)
def test_no_readings_bring_a_failed_gpu_back(sights: list[Any]) -> None:
    watcher = Watcher()
    seen = [watcher.see(**sight) for sight in sights]
    if FAILED in seen:
        assert set(seen[seen.index(FAILED) :]) == {FAILED}
    assert len(watcher.condition.evidence) <= KEPT_EVIDENCE
    assert (watcher.health is HEALTHY) or watcher.condition.fresh_evidence
    episodes = watcher.condition.episodes
    assert list(episodes) == sorted(episodes)


def is_fatal(values: dict[str, Any], memory: Memory) -> bool:
    grown = None not in (values["ecc_uncorrected"], memory.ecc_uncorrected) and (
        values["ecc_uncorrected"] > (memory.ecc_uncorrected or 0)
    )
    return bool(grown or values["remap_failed"]) or any(
        about(code).severity is Severity.FAILED for code in values["xids"]
    )


@given(SIGHTS)
def test_single_bad_reading_fails_a_gpu_only_if_it_is_fatal(sights: list[Any]) -> None:
    watcher = Watcher(replace(RULES, idle_grace_seconds=None))
    for sight in sights:
        before, memory = watcher.condition, watcher.memory
        after = watcher.see(**sight)
        if before.health is HEALTHY and not memory.counts and after is FAILED:
            assert is_fatal(sight, memory)


@given(SIGHTS)
def test_a_reading_without_any_field_changes_nothing(sights: list[Any]) -> None:
    watcher = Watcher()
    for sight in sights:
        watcher.see(**sight)
        blank = reading(watcher.now + 1.0)
        judged = judge(watcher.condition, blank, sight["by"], watcher.rules, watcher.memory)
        # time passes, and it is there: only what that alone proves may change
        assert judged.condition.evidence == watcher.condition.evidence
        assert judged.condition.health in (watcher.health, HEALTHY)
        if watcher.health is FAILED or watcher.memory.unresolved - {Sign.LOST, Sign.IDLE}:
            assert judged.condition == watcher.condition
        kept = dict(judged.memory.counts)
        for sign, count in watcher.memory.counts:
            assert judged.condition.health is HEALTHY or kept.get(sign, count) == count or sign is Sign.LOST


@given(st.lists(st.floats(0, 2 * DAY), max_size=40), st.floats(0, 2 * DAY))
def test_the_time_to_recover_grows_with_every_episode_and_has_an_end(episodes: list[float], more: float) -> None:
    now = 2 * DAY
    fewer = Condition(gpu_id="g", episodes=tuple(sorted(episodes)))
    worse = replace(fewer, episodes=tuple(sorted([*episodes, more])))
    least, most = recover_seconds(fewer, RULES, now), recover_seconds(worse, RULES, now)
    assert RULES.recover_seconds <= least <= most <= DAY


# -------------------------------------------------------------------------------------------- the table


def test_every_code_says_what_it_is_and_what_to_do() -> None:
    for code, xid in TABLE.items():
        assert xid.code == code
        assert xid.meaning
        assert xid.advice.endswith(".")
    assert {code for code, xid in TABLE.items() if xid.fault == "program"} == {
        code for code, xid in TABLE.items() if xid.severity is Severity.NOTE
    }


@pytest.mark.parametrize(
    ("severity", "codes"),
    [
        (Severity.NOTE, [13, 31, 43, 45]),
        (Severity.SUSPECT, [63, 74, 92, 31337]),
        (Severity.FAILED, [48, 62, 64, 79, 94, 95, 119]),
    ],
)
def test_codes_weigh_what_they_should(severity: Severity, codes: list[int]) -> None:
    assert [about(code).severity for code in codes] == [severity] * len(codes)


def test_readings_of_the_ports_are_what_signs_look_at() -> None:
    judged = judge(Condition(gpu_id="g"), GpuReading(gpu_id="g", at=1.0), [holder()], HealthRules())
    assert judged.condition == Condition(gpu_id="g")
