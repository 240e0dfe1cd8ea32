"""The settings that this server runs with, for operators to look at."""

from __future__ import annotations

from corral.server.auth.callers import Context, Operator
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.system.settings import SettingsView, settings_view

router = resource_router("/settings", "system")


@router.get("", operation_id="get_settings", responses=problems(403))
async def get_settings(caller: Operator, context: Context) -> SettingsView:
    """Every setting with its value and where that came from; secrets are masked."""
    return settings_view(context.settings)
