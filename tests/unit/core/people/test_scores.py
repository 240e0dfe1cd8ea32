"""The score against a numeric integral of the usage."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.people.scores import Score, change_usage, charge_afterwards, score_at

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


def test_what_was_held_without_being_known_counts_as_if_it_had_been() -> None:
    before = change_usage(change_usage(Score(), 4.0, 0.0, T), -4.0, HOUR, T)
    known = change_usage(change_usage(before, 2.0, 2 * HOUR, T), -2.0, 3 * HOUR, T)
    found_out = charge_afterwards(before, 2.0, HOUR, 3 * HOUR, T)
    assert found_out.value == pytest.approx(known.value)
    assert found_out.usage == known.usage
