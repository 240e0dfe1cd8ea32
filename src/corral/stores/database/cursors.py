"""Cursors of keyset paging: opaque to clients, checked when they are used.

A cursor contains its sort order and the key of the last row of its page, so that the next page begins right after that
row, whatever was inserted or deleted meanwhile.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from typing import Any

from corral.stores.database.row_codec import MAX_INTEGER, to_json

Key = str | int | float

#: No valid cursor is longer: the longest contains a name.
MAX_CURSOR_LENGTH = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Sort:
    """An order of rows: by one field, then by id in the same direction."""

    field: str
    descending: bool
    #: type of the ids, for checking cursors
    id_type: type[Key] = int
    #: and of the field's values
    type: type[Key]

    @property
    def text(self) -> str:
        return f"-{self.field}" if self.descending else self.field


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """The last row of a page: its value of the sorted field, and its id."""

    key: Key
    id: Key


def parse_sort(text: str, fields: dict[str, type[Key]]) -> Sort:
    descending = text.startswith("-")
    field = text[1:] if descending else text
    if field not in fields:
        raise ValueError(f"cannot sort by {text!r}; known: {', '.join(fields)}, each with - in front for descending")
    return Sort(field=field, descending=descending, type=fields[field])


def encode_cursor(sort: Sort, position: Position) -> str:
    document = to_json([sort.text, position.key, position.id])
    return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, sort: Sort) -> Position:
    """Raises ValueError for any text that `encode_cursor` did not make for this sort."""
    document = _read(cursor)
    if not (isinstance(document, list) and len(document) == 3 and isinstance(document[0], str)):
        raise ValueError("not a cursor")
    made_for, key, row_id = document
    if made_for != sort.text:
        raise ValueError(f"the cursor was made for sort {made_for!r}, not for {sort.text!r}")
    if not (_is_key(key, sort.type) and _is_key(row_id, sort.id_type)):
        raise ValueError("not a cursor")
    return Position(key=key, id=row_id)


def check_limit(limit: int) -> int:
    if limit < 1:
        raise ValueError("limit must be at least 1")
    return limit


def _read(cursor: str) -> Any:
    if len(cursor) > MAX_CURSOR_LENGTH:
        raise ValueError("not a cursor")
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except (binascii.Error, UnicodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("not a cursor") from None


def _is_key(value: object, wanted: type[Key]) -> bool:
    if isinstance(value, bool):
        return False
    if wanted is str:
        return isinstance(value, str)
    if isinstance(value, int):
        return -MAX_INTEGER <= value <= MAX_INTEGER
    return wanted is float and isinstance(value, float) and math.isfinite(value)
