"""Choices that this server offers, such as ordering policies, for forms and for programs."""

from __future__ import annotations

from corral.server.auth.callers import AnyCaller
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.system.options import OptionsView, options_view

router = resource_router("/options", "system")


@router.get("", operation_id="get_options", responses=problems())
async def get_options(caller: AnyCaller) -> OptionsView:
    """Ordering policies, placement policies and functions of permission groups, each with a description. They change
    with the server's version only."""
    return options_view()
