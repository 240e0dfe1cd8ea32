"""How much longer a job runs: what is known, what has run already, and never the same guess twice by chance."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Prediction
from corral.core.scheduling.forecast.remaining_time import (
    Length,
    RolloutSample,
    length_of,
    seconds_from_start,
    seconds_left,
)
from corral.core.scheduling.ordering.cost import OrderingRules
from tests.unit.core.builders import waiting

RULES = OrderingRules(unknown_seconds=7200.0)
EARLY, MIDDLE, LATE = (RolloutSample(number=number, late=late) for number, late in enumerate((-1.3, 0.0, 1.3)))


def test_expected_length_comes_from_the_prediction_or_the_limit() -> None:
    sure = Prediction(p50_seconds=100.0, p90_seconds=100.0, samples=32)
    assert length_of(waiting(1, predicted=sure), RULES) == Length(100.0, 0.0)
    once = length_of(waiting(1, predicted=Prediction(p50_seconds=100.0, p90_seconds=100.0, samples=1)), RULES)
    assert (once.median, once.sigma > 0.5) == (100.0, True)
    nothing = length_of(waiting(1), RULES)
    assert (nothing.median, nothing.is_known) == (7200.0, False)
    limited = length_of(waiting(1, time_limit_seconds=1000.0), RULES)
    assert (limited.median, limited.most, limited.is_known) == (500.0, 1000.0, True)


def test_the_less_the_runs_say_the_more_the_time_limit_does() -> None:
    def median(p90: float) -> float:
        known = Prediction(p50_seconds=100.0, p90_seconds=p90, samples=32)
        return length_of(waiting(1, predicted=known, time_limit_seconds=20_000.0), RULES).median

    assert median(100.0) == 100.0
    assert 100.0 < median(200.0) < median(5000.0) < 10_000.0


def test_a_prediction_beyond_the_limit_ends_with_the_limit() -> None:
    known = Prediction(p50_seconds=5000.0, p90_seconds=9000.0, samples=32)
    assert length_of(waiting(1, predicted=known, time_limit_seconds=600.0), RULES) == Length(600.0, 0.0, 600.0)


def test_late_rollouts_are_later_for_the_most_part() -> None:
    length = Length(1000.0, 1.0)
    sums = [
        sum(seconds_from_start(length, serial, sample) for serial in range(300)) for sample in (EARLY, MIDDLE, LATE)
    ]
    assert sums == sorted(sums)
    assert len({seconds_from_start(length, serial, MIDDLE) for serial in range(300)}) > 100


#: as `length_of` makes them: the half is never beyond the most
lengths = st.builds(
    Length, st.floats(1.0, 1e6), st.sampled_from([0.0, 0.1, 0.7, 2.0]), st.sampled_from([math.inf, 5e5, 2e6])
).filter(lambda length: length.median <= length.most)


@given(lengths, st.floats(0.0, 1e6), st.integers(1, 10_000), st.sampled_from([EARLY, MIDDLE, LATE]))
def test_guesses_are_finite_positive_within_the_limit_and_always_the_same(
    length: Length, ran: float, serial: int, sample: RolloutSample
) -> None:
    left = seconds_left(length, ran, serial, sample)
    assert left == seconds_left(length, ran, serial, sample)
    assert 0 < left < math.inf
    assert left <= max(1.0, length.most - ran) or ran <= 0


@given(st.integers(1, 10_000), st.floats(1.5, 50.0))
def test_a_job_beyond_its_prediction_is_expected_longer(serial: int, times: float) -> None:
    length = Length(1000.0, 0.3)
    assert 1000.0 * times + seconds_left(length, 1000.0 * times, serial, MIDDLE) > 1000.0
    # The longer it is overdue, the longer it is still expected to run, on the whole.
    soon = sum(seconds_left(length, 1500.0, number, MIDDLE) for number in range(50))
    late = sum(seconds_left(length, 1500.0 * times * 2, number, MIDDLE) for number in range(50))
    assert late > soon
