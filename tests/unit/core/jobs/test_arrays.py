"""Indexes of arrays, as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.arrays import MAX_ARRAY_SIZE, parse_array


@pytest.mark.parametrize(
    ("text", "indexes"),
    [
        ("0", [0]),
        ("0-3", [0, 1, 2, 3]),
        ("0-10:5", [0, 5, 10]),
        ("1,3,7", [1, 3, 7]),
        ("7, 1-2", [1, 2, 7]),
        ("999999-1000000", [999999, 1000000]),
    ],
)
def test_indexes(text: str, indexes: list[int]) -> None:
    assert list(parse_array(text)) == indexes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not an array"),
        ("a-b", "is not an array"),
        ("1-", "is not an array"),
        ("-3", "is not an array"),
        ("1:2", "is not an array"),
        ("٣", "is not an array"),
        ("1,,2", "is not an array"),
        ("0-9%3", "is not an array"),
        ("5-1", "backwards"),
        ("0-9:0", "step of 0"),
        ("1-3,2", "twice"),
        ("0-1000", f"at most {MAX_ARRAY_SIZE}"),
        ("0-9999999", "largest index"),
        ("0-99999999999", "is not an array"),
    ],
)
def test_invalid_array_has_a_message(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_array(text)


@given(st.sets(st.integers(0, 500), min_size=1, max_size=50))
def test_any_set_of_indexes_can_be_written(indexes: set[int]) -> None:
    assert parse_array(",".join(map(str, indexes))) == tuple(sorted(indexes))
