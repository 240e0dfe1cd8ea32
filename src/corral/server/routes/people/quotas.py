"""Quotas: the limits of each user, and the resources that count against them."""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.people import quotas, user_accounts
from corral.control.ports import Transaction
from corral.core.storage.volumes import VolumeType
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.quotas import (
    QuotasBatch,
    QuotasPut,
    QuotaUsageView,
    edit_of,
    quotas_of,
    usage_view,
    volumes_of,
)

router = resource_router("", "quotas")

VolumeQuotas = dict[tuple[str, VolumeType], quotas.VolumeUsage]


@router.get("/me/quota", operation_id="get_my_quota", responses=problems())
async def get_my_quota(caller: AnyCaller, context: Context) -> QuotaUsageView:
    """The caller's own quota, with the resources held."""
    return await _shown(context, caller.name)


@router.get("/users/{name}/quota", operation_id="get_quota", responses=problems(403, 404))
async def get_quota(name: str, caller: AnyCaller, context: Context) -> QuotaUsageView:
    """A user's quota per job kind and type of volume; users may see their own."""
    if name != caller.name and not caller.is_operator:
        raise Problem(403, "Not allowed", "Only operators see the quota of others.", slug="forbidden")
    return await _shown(context, name)


@router.put("/users/{name}/quota", operation_id="set_quota", responses=problems(403, 404))
async def set_quota(name: str, body: QuotasPut, caller: Operator, context: Context) -> QuotaUsageView:
    """Replace the whole quota. Running jobs are not affected."""
    await context.execute(quotas.set_quota, caller, name, quotas_of(body), volumes_of(body))
    return await _shown(context, name)


@router.get("/quotas", operation_id="list_quotas", responses=problems(403))
async def list_quotas(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[QuotaUsageView]:
    """The quotas of all users, with the resources held."""
    names, volumes = await context.read(_everybody)
    page = page_of(names, key=lambda name: (name,), limit=limit, cursor=cursor)
    usages = await context.inspect(quotas.usage_of, page.items, volumes)
    return ListView(items=[usage_view(usage) for usage in usages], next_cursor=page.next_cursor)


@router.post("/quotas:batch", operation_id="edit_quotas", responses=problems(403, 404))
async def edit_quotas(body: QuotasBatch, caller: Operator, context: Context) -> ListView[QuotaUsageView]:
    """Change the quotas of many users in the same way, of all of them or of none. Returns the new quotas."""
    names = await context.execute(quotas.edit_quotas, caller, body.users, edit_of(body.quota))
    return ListView(items=await _usages(context, names))


async def _shown(context: ServerContext, name: str) -> QuotaUsageView:
    await context.read(user_accounts.existing, name)
    (usage,) = await _usages(context, [name])
    return usage


async def _usages(context: ServerContext, names: Sequence[str]) -> list[QuotaUsageView]:
    volumes = await context.read(quotas.volume_quotas_of)
    return [usage_view(usage) for usage in await context.inspect(quotas.usage_of, names, volumes)]


def _everybody(tables: Transaction) -> tuple[list[str], VolumeQuotas]:
    return [user.name for user in tables.people.users()], quotas.volume_quotas_of(tables)
