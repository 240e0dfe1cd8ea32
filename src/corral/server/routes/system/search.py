"""Search over jobs, users, nodes and the objects that operators manage."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from corral.control.system.search import MAX_FOUND, search, search_fleet
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.system.search import SearchView, found_view

router = resource_router("/search", "system")


@router.get("", operation_id="search", responses=problems())
async def search_everything(
    caller: AnyCaller,
    context: Context,
    q: Annotated[str, Query(min_length=1, max_length=253, description="A part of an id or a name.")],
    limit: Annotated[int, Query(ge=1, le=MAX_FOUND)] = 20,
) -> SearchView:
    """Results that the caller may see, the best matches first, with some of every kind."""
    fleet = await context.inspect(search_fleet, q)
    found = await context.read(search, caller, q, fleet, limit)
    return SearchView(items=[found_view(item) for item in found])
