"""Pages of lists that are in memory, in the same form as those of the store."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Query

from corral.server.http.problems import invalid_field
from corral.server.schemas.base import ListView

Item = TypeVar("Item")

#: A filter of a list; None: no filter.
Filter = Annotated[str | None, Query(min_length=1, max_length=253)]

Limit = Annotated[int, Query(ge=1, le=500, description="Items on a page.")]
Cursor = Annotated[str | None, Query(max_length=512, description="`next_cursor` of the page before.")]


def page_of(
    items: Iterable[Item], *, key: Callable[[Item], Sequence[str | int]], limit: int, cursor: str | None
) -> ListView[Item]:
    """The items after the cursor, in the order of their keys; a key belongs to one item only."""
    ordered = sorted(items, key=lambda item: tuple(key(item)))
    if cursor is not None:
        after = read_cursor(cursor)
        try:
            ordered = [item for item in ordered if tuple(key(item)) > after]
        except TypeError:
            raise invalid_field("cursor", "is not a cursor of this list") from None
    shown = ordered[:limit]
    more = len(ordered) > limit
    return ListView(items=shown, next_cursor=write_cursor(key(shown[-1])) if more else None)


def page_from(items: list[Item], *, key: Callable[[Item], Sequence[str | int]], limit: int) -> ListView[Item]:
    """A page of items that were read in their order, from behind the cursor on: one more than the limit, if there are
    so many."""
    shown = items[:limit]
    return ListView(items=shown, next_cursor=write_cursor(key(shown[-1])) if len(items) > limit else None)


def cursor_of(cursor: str | None, *types: type) -> tuple[Any, ...] | None:
    """The key that a cursor was made of, whose parts have these types."""
    if cursor is None:
        return None
    key = read_cursor(cursor)
    if [type(part) for part in key] != list(types):
        raise invalid_field("cursor", "is not a cursor of this list")
    return key


def write_cursor(key: Sequence[str | int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(key)).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[Any, ...]:
    """The key that the cursor was made of. Any other text is refused."""
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        raise invalid_field("cursor", "is not a cursor of this list") from None
    if not isinstance(key, list):
        raise invalid_field("cursor", "is not a cursor of this list")
    return tuple(key)
