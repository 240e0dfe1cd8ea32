"""The resource panel, and the users' scores with their history."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from corral.control.errors import NotFound
from corral.control.fleet import panel
from corral.control.people import groups
from corral.control.ports import Transaction
from corral.control.records import ScorePoint
from corral.control.scheduling import views
from corral.core.model import JobKind
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.paging import Cursor, Filter, Limit, page_of
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView, parse_time
from corral.server.schemas.fleet.panel import (
    PanelPage,
    ScorePointView,
    ScoreView,
    panel_kind_view,
    panel_model_view,
    panel_view,
    score_point_view,
    score_view,
)

router = resource_router("", "fleet")

MAX_POINTS = 500
#: The time constant of the fair-share scores.
DEFAULT_HISTORY_SECONDS = 86_400.0


@router.get("/panel", operation_id="get_panel", responses=problems(404))
async def get_panel(
    caller: AnyCaller,
    context: Context,
    user: Filter = None,
    group: Filter = None,
    kind: JobKind | None = None,
    model: Filter = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PanelPage:
    """The resource panel of one user, of one group, or of the whole installation."""
    if user is not None and group is not None:
        raise invalid_field("group", "give either user or group")
    if group is not None:
        await context.read(groups.existing, group)
    now = context.clock.now()
    found = await context.inspect(panel.panel, now, user=user, group=group, kind=kind, model=model)
    page = page_of(found.rows, key=lambda row: (row.kind.value, row.model), limit=limit, cursor=cursor)
    return PanelPage(
        items=[panel_view(row) for row in page.items],
        next_cursor=page.next_cursor,
        kinds=[panel_kind_view(row) for row in found.kinds],
        models=[panel_model_view(row) for row in found.models],
    )


@router.get("/scores", operation_id="list_scores", responses=problems())
async def list_scores(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ScoreView]:
    """The weighted usage behind the fair-share order."""
    found = await context.inspect(views.score_views, context.clock.now())
    page = page_of(found, key=lambda view: (view.user, view.model), limit=limit, cursor=cursor)
    return ListView(items=[score_view(view) for view in page.items], next_cursor=page.next_cursor)


@router.get("/scores/{user}", operation_id="get_score_history", responses=problems(404))
async def get_score_history(
    user: str,
    caller: AnyCaller,
    context: Context,
    model: Filter = None,
    since: Annotated[str | None, Query(max_length=64, description="Default: 24 hours ago.")] = None,
    points: Annotated[int, Query(ge=2, le=MAX_POINTS, description="Maximum number of points per model.")] = 200,
) -> ListView[ScorePointView]:
    """The history of a user's score per GPU model, oldest first; exact at every point."""
    now = context.clock.now()
    begin = now - DEFAULT_HISTORY_SECONDS
    if since is not None:
        try:
            begin = parse_time(since)
        except ValueError as error:
            raise invalid_field("since", str(error)) from None
    histories = await context.read(_histories, user, model, begin)
    constant = context.settings.control_policies.score_time_constant
    series = [panel.score_history(history, begin, now, constant, points) for history in histories]
    return ListView(items=[score_point_view(point) for points_of_model in series for point in points_of_model])


def _histories(tables: Transaction, user: str, model: str | None, since: float) -> list[list[ScorePoint]]:
    """The history for each model that the user ever used, or for one model."""
    models = sorted(known for name, known in tables.scores.all() if name == user and model in (None, known))
    if not models and tables.people.user(user) is None:
        raise NotFound(f"there is no user {user!r}", field="user")
    return [tables.scores.history(user, known, since) for known in models]
