"""Whether an attempt does nothing: over a recent window, and only where that is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import JobKind
from corral.core.monitoring.idleness import NOTHING_SEEN, Activity, IdleRules, Recent, activity, mean_use, observe

RULES = IdleRules(enabled=True, window_seconds=600.0, utilization=0.02, interval_seconds=5.0)
IDLE, ACTIVE, QUIET, UNKNOWN = Activity.IDLE, Activity.ACTIVE, Activity.QUIET, Activity.UNKNOWN


def seen(*parts: tuple[float, float | None], rules: IdleRules = RULES, step: float = 5.0) -> tuple[Recent, float]:
    """(seconds, use) one after the other, None for a time without readings."""
    recent, now = NOTHING_SEEN, 100_000.0
    for seconds, use in parts:
        end = now + seconds
        while now < end:
            now += step
            if use is not None:
                recent = observe(recent, now, use, rules)
    return recent, now


STORIES: dict[str, tuple[list[tuple[float, float | None]], Activity]] = {
    "nothing seen": ([], UNKNOWN),
    "a short while": ([(200.0, 0.0)], QUIET),
    "one reading": ([(5.0, 0.0)], UNKNOWN),
    "the whole window": ([(640.0, 0.0)], IDLE),
    "busy hours, then nothing": ([(7200.0, 1.0), (660.0, 0.0)], IDLE),
    "busy until a while ago": ([(7200.0, 1.0), (300.0, 0.0)], ACTIVE),
    "a little, but enough": ([(700.0, 0.03)], ACTIVE),
    "less than enough": ([(700.0, 0.01)], IDLE),
    "a burst after a long rest": ([(2000.0, 0.0), (30.0, 1.0)], ACTIVE),
    "no readings in the middle": ([(300.0, 0.0), (200.0, None), (200.0, 0.0)], QUIET),
    "no readings now": ([(700.0, 0.0), (200.0, None)], UNKNOWN),
    "a lost reading or two": ([(400.0, 0.0), (10.0, None), (260.0, 0.0)], IDLE),
}


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    parts, expected = STORIES[story]
    recent, now = seen(*parts)
    assert activity([recent] if recent.buckets else [], now, RULES) is expected


def test_all_gpus_of_an_attempt_count_together() -> None:
    idle, now = seen((700.0, 0.0))
    busy, _ = seen((700.0, 0.9))
    assert activity([idle, busy], now, RULES) is ACTIVE
    assert activity([idle, idle], now, RULES) is IDLE
    assert activity([idle, NOTHING_SEEN], now, RULES) is UNKNOWN, "of one nothing is known"
    assert activity([], now, RULES) is UNKNOWN
    assert mean_use([idle, busy]) == pytest.approx(0.45)


def test_a_window_that_is_short_for_its_readings_still_works() -> None:
    rules = replace(RULES, window_seconds=6.0, interval_seconds=1.0)
    assert rules.buckets == 3
    recent, now = seen((9.0, 0.0), rules=rules, step=1.0)
    assert activity([recent], now, rules) is IDLE


def test_idleness_counts_running_jobs_with_gpus() -> None:
    assert RULES.counts(JobKind.TRAINING)
    assert not RULES.counts(JobKind.WORKBENCH)
    assert replace(RULES, include_workbenches=True).counts(JobKind.WORKBENCH)
    assert not replace(RULES, enabled=False).counts(JobKind.TRAINING)


USES = st.lists(st.tuples(st.floats(1.0, 120.0), st.floats(0.0, 1.0)), min_size=1, max_size=60)


@given(USES)
def test_idle_is_said_only_of_what_was_really_little_used(uses: list[tuple[float, float]]) -> None:
    recent, now = NOTHING_SEEN, 50_000.0
    taken: list[tuple[float, float]] = []
    for step, use in uses:
        now += step
        taken.append((now, use))
        recent = observe(recent, now, use, RULES)
    found = activity([recent], now, RULES)
    in_window = [use for at, use in taken if at > now - RULES.window_seconds]
    if found in (IDLE, QUIET):
        assert min(in_window) < RULES.utilization
    if found is IDLE:
        assert now - taken[0][0] >= 0.9 * RULES.window_seconds
    assert len(recent.buckets) <= RULES.buckets + 1


@given(USES, st.floats(0.0, 1.0))
def test_old_news_change_nothing(uses: list[tuple[float, float]], late: float) -> None:
    recent, now = NOTHING_SEEN, 50_000.0
    for step, use in uses:
        now += step
        recent = observe(recent, now, use, RULES)
    number = int(now // RULES.bucket_seconds)
    assert observe(recent, (number - 1) * RULES.bucket_seconds, late, RULES) == recent
