"""Secrets of users and groups, which jobs get as environment variables or files."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from corral.control.people import secrets
from corral.server.auth.callers import AnyCaller, Context
from corral.server.auth.secret_box import SecretUnreadable
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.job_secrets import SecretPut, SecretView, secret_view

router = resource_router("/secrets", "secrets")

Group = Annotated[str | None, Query(max_length=253, description="The group's secret instead of the caller's own.")]


@router.get("", operation_id="list_secrets", responses=problems())
async def list_secrets(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[SecretView]:
    """The caller's secrets and those of the caller's group, without their values; operators see those of all groups."""
    found = await context.read(secrets.visible, caller)
    views = [secret_view(secret) for secret in found]
    return page_of(views, key=lambda view: (view.name, view.group or ""), limit=limit, cursor=cursor)


@router.put("/{secret}", operation_id="put_secret", responses=problems(403, 404, 409, 503))
async def put_secret(secret: str, body: SecretPut, caller: AnyCaller, context: Context) -> SecretView:
    """Store a secret, or replace its value. Attempts that start later get the new value."""
    try:
        value = context.box.encrypt(body.value)
    except SecretUnreadable as error:
        raise Problem(503, "Secrets cannot be kept", f"{error}.", slug="secret-unreadable") from None
    return secret_view(await context.execute(secrets.put, caller, secret, value, group=body.group))


@router.delete("/{secret}", status_code=204, operation_id="delete_secret", responses=problems(403, 404))
async def delete_secret(secret: str, caller: AnyCaller, context: Context, group: Group = None) -> Response:
    """Delete a secret. Jobs that run keep it."""
    await context.execute(secrets.delete, caller, secret, group=group)
    return Response(status_code=204)
