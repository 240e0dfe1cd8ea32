"""How many cases a property test generates where the profile's number is not the right one, and cheap strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

#: For tests whose cases are whole histories: a fifth of the cases of others.
DEAR = settings(max_examples=settings().max_examples // 5)


# To make a strategy and to check it costs more than to draw from it, and a cluster is drawn with a hundred of them:
# those that are asked for again and again while drawing are made once. And a draw costs more than what is done with
# it: what one thing is made of is drawn at once.


@lru_cache(maxsize=None, typed=True)
def pick(*choices: Any) -> st.SearchStrategy[Any]:
    """One of these; a case that fails is made simpler towards the first."""
    return st.sampled_from(choices)


@cache
def between(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


def every(**fields: Sequence[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One of every field's choices, at most 256 each; a case that fails is made simpler field by field, towards the
    first choices."""
    assert all(len(choices) <= 256 for choices in fields.values())
    return _bytes(len(fields)).map(lambda drawn: _chosen(fields, drawn))


def each(draw: Callable[[st.SearchStrategy[bytes]], bytes], **fields: Sequence[Any]) -> dict[str, Any]:
    """Draws like `every`, when the choices are known only while drawing."""
    return _chosen(fields, draw(_bytes(len(fields))))


@cache
def _bytes(count: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=count, max_size=count)


def _chosen(fields: Mapping[str, Sequence[Any]], drawn: bytes) -> dict[str, Any]:
    return {name: choices[byte % len(choices)] for (name, choices), byte in zip(fields.items(), drawn, strict=True)}


def seconds(least: int, most: int) -> tuple[float, ...]:
    """Full seconds to choose from."""
    return tuple(map(float, range(least, most + 1)))
