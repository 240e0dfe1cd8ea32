"""The score against a numeric integral of the usage."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.people.scores import Score, change_usage, charge_afterwards, score_at, with_unrecorded

HOUR = 3600.0
T = 6 * HOUR
#: when usage changes, and what it is from then on
usages = st.lists(st.tuples(st.floats(60, 8 * HOUR), st.integers(0, 16)), min_size=1, max_size=8)


def integral(changes: list[tuple[float, float]], until: float, steps: int = 4000) -> float:
    """∫ usage(t) · e^((t − until)/T) dt / T, by the midpoint rule between changes."""
    total = 0.0
    for place, (start, usage) in enumerate(changes):
        end = changes[place + 1][0] if place + 1 < len(changes) else until
        width = (end - start) / steps
        total += sum(usage * math.exp((start + (n + 0.5) * width - until) / T) * width / T for n in range(steps))
    return total


@given(usages, st.floats(0, 24 * HOUR))
def test_score_is_the_weighted_integral(spans: list[tuple[float, int]], rest: float) -> None:
    score, now, changes, usage = Score(), 0.0, [(0.0, 0.0)], 0.0
    for seconds, gpus in spans:
        now += seconds
        score = change_usage(score, gpus - usage, now, T)
        usage = float(gpus)
        changes.append((now, usage))
    assert score.usage == usage
    until = now + rest
    assert score_at(score, until, T) == pytest.approx(integral(changes, until, steps=200), rel=1e-4, abs=1e-6)


def test_a_day_of_constant_use_is_within_two_percent() -> None:
    score = change_usage(Score(), 8.0, 0.0, T)
    assert 8.0 * 0.98 < score_at(score, 24 * HOUR, T) < 8.0


def test_shares_leave_no_dust_when_all_are_given_back() -> None:
    score = Score()
    for _ in range(10):
        score = change_usage(score, 0.1, 1.0, T)
    for _ in range(10):
        score = change_usage(score, -0.1, 2.0, T)
    assert score.usage == 0.0


def test_a_clock_that_jumps_back_takes_nothing_away() -> None:
    score = change_usage(change_usage(Score(), 4.0, 0.0, T), -4.0, HOUR, T)
    assert score_at(score, HOUR - 5.0, T) == score.value
    assert change_usage(score, 1.0, HOUR - 5.0, T).at == HOUR


def test_late_usage_counts_like_usage_that_was_known_in_time() -> None:
    before = change_usage(change_usage(Score(), 4.0, 0.0, T), -4.0, HOUR, T)
    known = change_usage(change_usage(before, 2.0, 2 * HOUR, T), -2.0, 3 * HOUR, T)
    found_out = charge_afterwards(before, 2.0, HOUR, 3 * HOUR, T)
    assert found_out.value == pytest.approx(known.value)
    assert found_out.usage == known.usage


#: allocations of one user: when each begins, its GPUs, how long it runs, and how much later its end is noticed
histories = st.lists(
    st.tuples(st.floats(0, 40 * HOUR), st.integers(1, 16), st.floats(60, 8 * HOUR), st.floats(0, 12 * HOUR)),
    min_size=1,
    max_size=8,
)


@given(histories)
def test_ends_that_are_noticed_late_are_charged_up_to_the_end(history: list[tuple[float, int, float, float]]) -> None:
    moments = [(begin, float(gpus), begin) for begin, gpus, _, _ in history]
    moments += [(begin + ran + late, -float(gpus), begin + ran) for begin, gpus, ran, late in history]
    score = Score()
    for noticed, delta, happened in sorted(moments):
        score = change_usage(score, delta, noticed, T, since=happened)
        assert score.value >= 0.0
    exact = Score()
    for happened, delta in sorted((begin, delta) for _, delta, begin in moments):
        exact = change_usage(exact, delta, happened, T)
    until = max(noticed for noticed, _, _ in moments) + HOUR
    assert score.usage == 0.0
    assert score_at(score, until, T) == pytest.approx(score_at(exact, until, T), rel=1e-6, abs=1e-9)


@given(histories, st.integers(0, 8))
def test_running_allocations_without_a_record_are_charged_from_their_begin(
    history: list[tuple[float, int, float, float]], recorded: int
) -> None:
    held = sorted((begin, float(gpus)) for begin, gpus, _, _ in history)
    known = None
    for begin, gpus in held[:recorded]:
        known = change_usage(known or Score(at=begin), gpus, begin, T)
    found = with_unrecorded(known, reversed(held), T)
    now = held[-1][0] + HOUR
    by_rule = sum(gpus * -math.expm1(-(now - begin) / T) for begin, gpus in held)
    assert found.usage == pytest.approx(sum(gpus for _, gpus in held))
    assert score_at(found, now, T) == pytest.approx(by_rule)
    for _, gpus in held:
        found = change_usage(found, -gpus, now, T)
    assert found.usage == 0.0
    assert found.value >= 0.0
