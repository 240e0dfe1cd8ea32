"""API schemas: search results."""

from __future__ import annotations

from pydantic import Field

from corral.control.system.search import Found, Type
from corral.server.schemas.base import View


class FoundView(View):
    type: Type
    id: str = Field(description="Id for the item's own route; `owner/name` of an image that has an owner.")
    title: str
    detail: str = Field(description="A short text that distinguishes items of the same name.")


class SearchView(View):
    items: list[FoundView]


def found_view(found: Found) -> FoundView:
    return FoundView(type=found.type, id=found.id, title=found.title, detail=found.detail)
