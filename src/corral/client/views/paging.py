"""A page of anything."""

from __future__ import annotations

from typing import Generic, TypedDict, TypeVar

Item = TypeVar("Item")


class PageView(TypedDict, Generic[Item]):
    items: list[Item]
    next_cursor: str | None
