"""What a search has found, on the wire."""

from __future__ import annotations

from pydantic import Field

from corral.control.system.search import Found, Type
from corral.server.schemas.base import View


class FoundView(View):
    type: Type
    id: str = Field(description="What its own route knows it by; of an image that somebody owns `owner/name`.")
    title: str
    detail: str = Field(description="A few words that tell it from its namesakes.")


class SearchView(View):
    items: list[FoundView]


def found_view(found: Found) -> FoundView:
    return FoundView(type=found.type, id=found.id, title=found.title, detail=found.detail)
