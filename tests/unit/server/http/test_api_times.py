"""Times as the API writes and reads them."""

from __future__ import annotations

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
