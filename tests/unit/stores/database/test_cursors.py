"""Cursors come back as they were made, and nothing else passes for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.stores.database.cursors import Position, Sort, decode_cursor, encode_cursor, parse_sort

IDS = st.integers(1, 2**63 - 1)
POSITIONS = st.one_of(
    st.tuples(st.just(int), st.integers(-(2**63) + 1, 2**63 - 1)),
    st.tuples(st.just(float), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(str), st.text(max_size=63)),
)


@given(POSITIONS, IDS, st.booleans())
def test_a_cursor_comes_back(typed: tuple[type, object], row_id: int, descending: bool) -> None:
    kind, key = typed
    sort = Sort(field="field", descending=descending, type=kind)
    position = Position(key=key, id=row_id)  # type: ignore[arg-type]
    cursor = encode_cursor(sort, position)
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?# ")
    assert decode_cursor(cursor, sort) == position
    with pytest.raises(ValueError, match="made for sort"):
        decode_cursor(cursor, Sort(field="field", descending=not descending, type=kind))


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]+", fullmatch=True))
def test_noise_is_no_cursor(noise: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        decode_cursor(noise, Sort(field="id", descending=False, type=int))


def test_sorts() -> None:
    assert parse_sort("-name", {"name": str}) == Sort(field="name", descending=True, type=str)
    assert parse_sort("name", {"name": str}).text == "name"
    with pytest.raises(ValueError, match="cannot sort by 'size'; known: id, name"):
        parse_sort("size", {"id": int, "name": str})
