"""Reservations of GPUs for users and groups."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from corral.control.scheduling import reservations
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import showing_new
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.scheduling.reservations import (
    ReservationCreate,
    ReservationEdit,
    ReservationView,
    draft_of,
    reservation_view,
)

router = resource_router("/reservations", "reservations")

FilterText = Annotated[str, Query(min_length=1, max_length=253)]


@router.get("", operation_id="list_reservations", responses=problems())
async def list_reservations(
    caller: AnyCaller,
    context: Context,
    pool: FilterText | None = None,
    since: Annotated[FilterText | None, Query(description="Only reservations that end later.")] = None,
    until: Annotated[FilterText | None, Query(description="Only reservations that begin earlier.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[ReservationView]:
    """All reservations, including those that ended lately."""
    found = await context.read(reservations.listed, pool, time_of("since", since), time_of("until", until))
    page = page_of(found, key=lambda record: (record.name,), limit=limit, cursor=cursor)
    facts = await context.inspect(reservations.reservation_views, page.items, context.clock.now())
    return ListView(items=[reservation_view(fact) for fact in facts], next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="create_reservation", responses=problems(403, 409))
async def create_reservation(body: ReservationCreate, caller: Operator, context: Context) -> ReservationView:
    """Reserve a number of GPUs, or named ones, for users and groups. Refused if they are not free in that window."""
    await context.execute(reservations.create, caller, body.name, body.pool, draft_of(body))
    with showing_new():
        return await _shown(context, body.name)


@router.get("/{name}", operation_id="get_reservation", responses=problems(404))
async def get_reservation(name: str, caller: AnyCaller, context: Context) -> ReservationView:
    """One reservation with its GPUs by node, and how many owners and others hold."""
    return await _shown(context, name)


@router.patch("/{name}", operation_id="edit_reservation", responses=problems(403, 404, 409))
async def edit_reservation(name: str, body: ReservationEdit, caller: Operator, context: Context) -> ReservationView:
    """Change a reservation. It keeps its GPUs if possible."""
    await context.execute(reservations.edit, caller, name, draft_of(body))
    return await _shown(context, name)


@router.delete("/{name}", status_code=204, operation_id="delete_reservation", responses=problems(403, 404))
async def delete_reservation(name: str, caller: Operator, context: Context) -> Response:
    """Delete a reservation. Jobs on its GPUs continue."""
    await context.execute(reservations.delete, caller, name)
    return Response(status_code=204)


async def _shown(context: ServerContext, name: str) -> ReservationView:
    record = await context.read(reservations.existing, name)
    (facts,) = await context.inspect(reservations.reservation_views, [record], context.clock.now())
    return reservation_view(facts)
