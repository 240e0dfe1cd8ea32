"""The pace of a training, from the steps that it reports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.core.monitoring.step_rates import Pace, PaceRules, Report, Track, begun, followed, hung_after, pace_of

RULES = PaceRules(hung_seconds=1200.0, hung_steps=20, slow_factor=0.5, window_seconds=600.0)


def trained(*rates: float, seconds: float = 600.0, every: float = 10.0) -> tuple[Track, float]:
    """A training with these steps per second, each for a while; and the time at its end."""
    track, at, step = begun(Report(step=0, at=0.0)), 0.0, 0.0
    for rate in rates:
        for _ in range(int(seconds / every)):
            at, step = at + every, step + rate * every
            track = followed(track, Report(step=int(step), at=at), RULES)
    return track, at


def test_a_training_that_halves_its_rate_is_slow_and_recovers() -> None:
    track, now = trained(2, 2, 2, 2)
    assert (pace_of(track, now, RULES), track.usual_rate) == (Pace.STEADY, 2)
    track, now = trained(2, 2, 2, 2, 0.9)
    assert (pace_of(track, now, RULES), track.present_rate, track.usual_rate) == (Pace.SLOW, 0.9, 2)
    track, now = trained(2, 2, 2, 2, 0.9, 2)
    assert pace_of(track, now, RULES) is Pace.STEADY


def test_too_few_windows_compare_nothing() -> None:
    track, now = trained(2, 2, 0.1)
    assert pace_of(track, now, RULES) is Pace.STEADY


def test_a_training_without_steps_hangs_after_the_limit_and_not_before() -> None:
    track, now = trained(2, 2)
    assert pace_of(track, now + 1199, RULES) is Pace.STEADY
    assert pace_of(track, now + 1200, RULES) is Pace.HUNG


def test_long_steps_get_more_time() -> None:
    track, now = trained(1 / 300, 1 / 300, seconds=3000)
    assert hung_after(track, RULES) >= 6000
    assert pace_of(track, now + 5000, RULES) is Pace.STEADY


def test_a_single_report_needs_four_times_as_long() -> None:
    track = begun(Report(step=5, at=100.0))
    assert pace_of(track, 100 + 4799, RULES) is Pace.STEADY
    assert pace_of(track, 100 + 4800, RULES) is Pace.HUNG


def test_a_program_that_counts_from_the_beginning_again_begins_anew() -> None:
    track, now = trained(2, 2, 2, 2)
    anew = followed(track, Report(step=3, at=now + 5), RULES)
    assert anew == begun(Report(step=3, at=now + 5))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0.1, 2000)), max_size=40),
    st.floats(0, 1e6),
)
def test_recent_step_is_never_a_hang(steps: list[tuple[int, float]], later: float) -> None:
    track = begun(Report(step=0, at=0.0))
    at, step = 0.0, 0
    for more, seconds in steps:
        at, step = at + seconds, step + more
        before = track
        track = followed(track, Report(step=step, at=at), RULES)
        assert track.last.step == step
        assert (track == before) == (more == 0), "a report without a new step changes nothing"
        assert all(rate >= 0 for rate in track.rates)
    is_hung = pace_of(track, track.last.at + later, RULES) is Pace.HUNG
    assert is_hung == (track.last.at + later - track.last.at >= hung_after(track, RULES))
    assert not is_hung or later >= RULES.hung_seconds * 0.999
    assert followed(track, track.last, RULES) == track, "the same report again changes nothing"
