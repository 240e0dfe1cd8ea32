"""Apps of jobs: list, show, share with groups and by links. `app_pages.py` leads browsers to them."""

from __future__ import annotations

import secrets as random
from typing import Literal

from fastapi import Request, Response

from corral.control.errors import NotFound
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import AppShare, AppShareKind, JobFilter, JobRecord
from corral.control.workbenches import apps
from corral.core.model import JobState
from corral.server.auth.callers import AnyCaller, Context
from corral.server.auth.secrets import secret_hash
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import find_job
from corral.server.routes.workbenches.app_pages import LINK
from corral.server.schemas.base import ListView
from corral.server.schemas.workbenches.apps import (
    AppLinkView,
    AppShareCreate,
    AppShareView,
    AppView,
    KnownAppView,
    app_share_view,
    app_view,
    known_app_views,
)

router = resource_router("/apps", "workbenches")

LINK_SECONDS = 86_400.0
_LIVE = (JobState.QUEUED, JobState.STARTING, JobState.RUNNING, JobState.STOPPING)
#: Live jobs are read in pages: few of them have an app.
_PAGE_JOBS = 500
_MAX_PAGES = 100


@router.get("", operation_id="list_apps", responses=problems())
async def list_apps(
    request: Request, caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[AppView]:
    """Apps of the caller's jobs that wait or run, and those that are shared with the caller's group; for operators,
    those of all users."""
    found = await context.read(_visible, caller, context.clock.now())
    page = page_of(found, key=lambda item: (item[0].job.serial,), limit=limit, cursor=cursor)
    shown = [await _shown(context, request, caller, record, shares) for record, shares in page.items]
    return ListView(items=shown, next_cursor=page.next_cursor)


@router.get("/known", operation_id="list_known_apps", responses=problems())
async def list_known_apps(caller: AnyCaller) -> ListView[KnownAppView]:
    """Web programs that the field `app` of a job can name."""
    return ListView(items=known_app_views(), next_cursor=None)


@router.get("/{job}", operation_id="get_app", responses=problems(404))
async def get_app(job: str, request: Request, caller: AnyCaller, context: Context) -> AppView:
    """The app of a job."""
    record, shares = await context.read(_one, caller, job, context.clock.now())
    return await _shown(context, request, caller, record, shares)


@router.post("/{job}/shares", status_code=201, operation_id="share_app", responses=problems(403, 404, 409))
async def share_app(
    job: str, body: AppShareCreate, request: Request, caller: AnyCaller, context: Context
) -> AppLinkView | AppShareView:
    """Share the app of one's own job with the members of a group, or with every user who has a link."""
    if body.group is not None:
        given = await context.execute(apps.share_with_group, caller, job, body.group, seconds=body.lasts)
        return app_share_view(given)
    secret = random.token_urlsafe(32)
    link_id = random.token_hex(4)
    lasts = LINK_SECONDS if body.lasts is None else body.lasts
    share = await context.execute(apps.share_by_link, caller, job, link_id, secret_hash(secret), seconds=lasts)
    address = f"{_server(context, request)}{apps.address_of(share.job_id)}?{LINK}={secret}"
    return AppLinkView(**app_share_view(share).model_dump(), address=address)


@router.delete(
    "/{job}/shares/{kind}/{share}", status_code=204, operation_id="delete_app_share", responses=problems(403, 404)
)
async def delete_app_share(
    job: str, kind: Literal["group", "link"], share: str, caller: AnyCaller, context: Context
) -> Response:
    """End a share. Browsers that are connected lose access within seconds."""
    await context.execute(apps.unshare, caller, job, AppShareKind(kind), share)
    return Response(status_code=204)


Found = tuple[JobRecord, list[AppShare]]


def _visible(tables: Transaction, caller: Caller, now: float) -> list[Found]:
    where = JobFilter(states=_LIVE, user=None if caller.is_operator else caller.name)
    records: dict[str, JobRecord] = {}
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = tables.jobs.page(where, sort="-id", cursor=cursor, limit=_PAGE_JOBS)
        records |= {record.job.id: record for record in page.items if record.spec.has_app}
        cursor = page.next_cursor
        if cursor is None:
            break
    user = tables.people.user(caller.name)
    for share in tables.app_shares.of_group(user.group) if user is not None and user.group else ():
        record = tables.jobs.get(share.job_id)
        if share.is_valid(now) and record is not None and record.job.state in _LIVE:
            records.setdefault(share.job_id, record)
    return [(record, _valid(tables, record, now)) for record in records.values()]


def _one(tables: Transaction, caller: Caller, ref: str, now: float) -> Found:
    record = tables.jobs.get(ref) if ref.startswith("j-") else None
    is_shared = record is not None and apps.is_shared_with(tables, record.job.id, caller.name, "", now)
    if record is None or not is_shared:
        record = find_job(tables, caller, ref)
    if not record.spec.has_app:
        raise NotFound(f"job {record.job.name} has no app", field="job")
    if not is_shared and record.job.user != caller.name and not caller.is_operator:
        raise NotFound(f"there is no app of job {ref!r} for you", field="job")
    return record, _valid(tables, record, now)


def _valid(tables: Transaction, record: JobRecord, now: float) -> list[AppShare]:
    return [share for share in tables.app_shares.of_job(record.job.id) if share.is_valid(now)]


async def _shown(
    context: ServerContext, request: Request, caller: Caller, record: JobRecord, shares: list[AppShare]
) -> AppView:
    status = await context.steps.do(caller.name, context.workbenches.status, record.job)
    is_own = caller.is_operator or caller.name == record.job.user
    return app_view(
        record,
        ready=status is not None and status.jupyter_ready,
        server=_server(context, request),
        shares=shares if is_own else [],
    )


def _server(context: ServerContext, request: Request) -> str:
    return context.settings.server.public_url or f"{request.url.scheme}://{request.url.netloc}"
