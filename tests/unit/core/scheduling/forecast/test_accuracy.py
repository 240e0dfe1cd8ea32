"""How good estimates were, and what follows for the next ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from corral.core.scheduling.forecast.accuracy import (
    ENOUGH,
    GRAIN_SECONDS,
    HALF_TRUSTED,
    HORIZONS,
    KEPT,
    NOTHING_KNOWN,
    UNTRIED,
    Accuracy,
    PastEstimate,
    accuracy_of,
    by_horizon,
    calibrate,
    horizon_of,
    stretched,
)

HOUR = 3600.0


def past(number: int = 1, wait: float | None = None, **values: Any) -> PastEstimate:
    """Made at 0: half an hour, or two hours; `wait` is when it really started."""
    fields: dict[str, Any] = {"raw_p50": HOUR / 2, "raw_p90": 2 * HOUR, "p50": HOUR / 2, "p90": 2 * HOUR, **values}
    return PastEstimate(job_id=f"j-{number}", attempt=1, queue="default", made_at=0.0, started_at=wait, **fields)


def test_without_outcomes_nothing_is_changed() -> None:
    assert NOTHING_KNOWN.stretch("default", HOUR) is UNTRIED
    few = [past(number, wait=9 * HOUR) for number in range(ENOUGH - 1)]
    assert calibrate(few, now=100 * HOUR).stretch("default", HOUR / 2) is UNTRIED


def test_estimates_that_came_too_early_make_the_next_ones_later() -> None:
    late = [past(number, wait=4 * HOUR) for number in range(50)]
    stretch = calibrate(late, now=100 * HOUR).stretch("default", HOUR / 2)
    assert stretch.outcomes == 50
    assert abs(stretched(2 * HOUR, stretch.p90) - 4 * HOUR) < 1.0
    # With 50 outcomes the factor of the p50 counts half: a few outcomes say little about the middle.
    right = (4 * HOUR + GRAIN_SECONDS) / (HOUR / 2 + GRAIN_SECONDS)
    assert abs(stretch.p50 - right**0.5) < 0.001


def test_the_more_outcomes_the_more_the_middle_follows_them() -> None:
    factors = [
        calibrate([past(number, wait=HOUR) for number in range(count)], now=100 * HOUR).stretch("default", HOUR / 2).p50
        for count in (ENOUGH, HALF_TRUSTED, KEPT)
    ]
    assert 1.0 < factors[0] < factors[1] < factors[2] < 2.0
    # A middle that was right stays as it is.
    right = calibrate([past(number, wait=HOUR / 2) for number in range(KEPT)], now=100 * HOUR)
    assert right.stretch("default", HOUR / 2).p50 == 1.0


def test_each_horizon_is_judged_by_itself_and_a_queue_without_outcomes_by_all() -> None:
    late = [past(number, wait=4 * HOUR) for number in range(50)]
    calibration = calibrate(late, now=100 * HOUR)
    assert calibration.stretch("other", HOUR / 2) == calibration.stretch("default", HOUR / 2)
    # Of another horizon nothing is known but what all say together.
    far = [past(100 + number, wait=20 * HOUR, raw_p50=20 * HOUR, raw_p90=20 * HOUR) for number in range(ENOUGH)]
    calibration = calibrate([*late, *far], now=100 * HOUR)
    assert calibration.stretch("default", 20 * HOUR).p90 == 1.0
    assert calibration.stretch("default", 60.0).outcomes == 50 + ENOUGH


def test_waits_beyond_their_estimate_count() -> None:
    started = [past(number, wait=HOUR / 2) for number in range(20)]
    waiting = [past(100 + number) for number in range(20)]
    in_time = calibrate([*started, *waiting], now=HOUR).stretch("default", HOUR / 2)
    too_late = calibrate([*started, *waiting], now=10 * HOUR).stretch("default", HOUR / 2)
    assert (in_time.outcomes, too_late.outcomes) == (20, 40)
    assert too_late.p90 > 4 * in_time.p90


def test_only_the_latest_outcomes_count() -> None:
    old = [past(number, wait=20 * HOUR) for number in range(KEPT)]
    new = [past(1000 + number, wait=21 * HOUR, raw_p50=HOUR / 2, raw_p90=21 * HOUR) for number in range(KEPT)]
    stretch = calibrate([*new, *old], now=100 * HOUR).stretch("default", HOUR / 2)
    assert abs(stretch.p90 - 1.0) < 0.01


def test_a_wait_of_zero_is_not_stretched() -> None:
    assert stretched(0.0, 30.0) == 0.0
    assert stretched(10.0, 0.25) == 0.0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(1, 1e6), st.floats(1, 10)), min_size=ENOUGH, max_size=60))
def test_most_of_what_was_seen_would_have_been_right(rows: list[tuple[float, float, float]]) -> None:
    """Among outcomes of one horizon, nine tenths would have been within the stretched p90, unless a bound held."""
    outcomes = [
        past(number, wait=wait, raw_p50=300.0, raw_p90=300.0 + estimated)
        for number, (wait, estimated, _) in enumerate(rows)
    ]
    stretch = calibrate(outcomes, now=1e9).stretch("default", 300.0)
    within = [
        (one.wait_seconds or 0.0) <= stretched(one.raw_p90, stretch.p90) + 1.0 or stretch.p90 == 30.0
        for one in outcomes
    ]
    assert sum(within) >= 0.9 * len(within)


def test_accuracy_counts_the_late_ones_that_still_wait() -> None:
    rows = [past(1, wait=600.0), past(2, wait=HOUR), past(3, wait=3 * HOUR), past(4), past(5, p90=99 * HOUR)]
    found = accuracy_of(rows, now=10 * HOUR)
    assert (found.estimates, found.started) == (5, 3)
    assert found.before_p50 == 1 / 4
    assert found.before_p90 == 2 / 4
    assert found.median_error_seconds == (HOUR / 2 + 2.5 * HOUR) / 2
    assert accuracy_of([past(5, p90=99 * HOUR)], now=HOUR) == Accuracy(estimates=1, started=0)


def test_horizons() -> None:
    assert [HORIZONS[horizon_of(seconds)][1] for seconds in (0.0, 599.0, 600.0, 5 * HOUR, 8 * 24 * HOUR)] == [
        "< 10 min",
        "< 10 min",
        "< 1 h",
        "< 6 h",
        "≥ 1 week",
    ]
    rows = [past(1, wait=600.0), past(2, wait=600.0, p50=20 * HOUR, p90=22 * HOUR)]
    assert [(words, found.started) for words, found in by_horizon(rows, now=HOUR)] == [("< 1 h", 1), ("< 1 day", 1)]
