"""The settings that this server runs with, for operators; read-only."""

from __future__ import annotations

from corral.server.auth.callers import Context, Operator
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.system.settings import SettingsView, settings_view

router = resource_router("/settings", "system")


@router.get("", operation_id="get_settings", responses=problems(403))
async def get_settings(caller: Operator, context: Context) -> SettingsView:
    """Every setting with its value and the source of the value; secrets are masked."""
    return settings_view(context.settings)
