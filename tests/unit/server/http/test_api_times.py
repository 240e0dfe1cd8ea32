"""Times as the API writes and reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corral.server.schemas.base import parse_time, rfc3339


@given(st.floats(min_value=0, max_value=4e9))
@example(1_700_000_000.0016)
@example(1_700_000_000.9996)
def test_a_shown_time_as_since_includes_what_it_was_shown_for(at: float) -> None:
    assert at - 0.0011 < parse_time(rfc3339(at)) <= at


@given(st.integers(min_value=0, max_value=4_000_000_000_000))
def test_whole_milliseconds_are_shown_as_they_are(millis: int) -> None:
    assert parse_time(rfc3339(millis / 1000)) == millis / 1000


@given(st.floats(allow_nan=True, allow_infinity=True))
@example(math.nan)
@example(-1e14)
@example(1e12)
def test_every_number_has_a_text(at: float) -> None:
    """Programs set the times of their files as they like."""
    assert rfc3339(at) == rfc3339(parse_time(rfc3339(at))) if abs(at) < 6e10 else rfc3339(at).endswith("Z")


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "9999-06-01T00:00:00Z"])
def test_times_at_the_ends_of_the_calendar_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="between the years"):
        parse_time(text)
