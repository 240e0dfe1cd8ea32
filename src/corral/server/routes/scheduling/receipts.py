"""Receipts of preemptions: who gave way to whom, by which rule, and what came of it. Both sides see theirs."""

from __future__ import annotations

from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import Page, ReceiptFilter, ReceiptRecord
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Filter, Limit
from corral.server.http.problems import invalid_field
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import find_job
from corral.server.schemas.base import ListView, rfc3339
from corral.server.schemas.scheduling.receipts import (
    ExpectedBackView,
    JobReceiptView,
    ReceiptView,
    job_receipt_view,
    receipt_view,
)

router = resource_router("", "receipts")

#: More than these nobody reads of one job; the whole list has pages.
TOLD = 200


@router.get("/receipts", operation_id="list_receipts", responses=problems())
async def list_receipts(
    caller: AnyCaller,
    context: Context,
    since: Filter = None,
    rule: PreemptionRule | None = None,
    user: Filter = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[ReceiptView]:
    """Newest first. Scientists see those in which a job of theirs is on either side."""
    where = ReceiptFilter(
        of=None if caller.is_operator else caller.name, user=user, rule=rule, since=time_of("since", since)
    )

    def read(tables: Transaction) -> Page[ReceiptRecord]:
        return tables.receipts.page(where, cursor=cursor, limit=limit)

    try:
        page = await context.read(read)
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    items = [receipt_view(receipt, _expected(receipt, context)) for receipt in page.items]
    return ListView(items=items, next_cursor=page.next_cursor)


@router.get("/jobs/{job}/receipts", operation_id="list_job_receipts", responses=problems(404))
async def list_job_receipts(job: str, caller: AnyCaller, context: Context) -> ListView[JobReceiptView]:
    """Where the job gave way, and where others gave way to it, newest first; the last 200."""

    def read(tables: Transaction) -> tuple[str, list[ReceiptRecord]]:
        job_id = find_job(tables, caller, job).job.id
        return job_id, [item for item in tables.receipts.of_job(job_id, TOLD) if _concerns(item, caller)]

    job_id, receipts = await context.read(read)
    return ListView(items=[job_receipt_view(receipt, job_id, _expected(receipt, context)) for receipt in receipts])


def _expected(receipt: ReceiptRecord, context: ServerContext) -> ExpectedBackView | None:
    """When a job that gave way and waits is expected to run again."""
    if receipt.ended_at is None or receipt.back_at is not None:
        return None
    current = context.estimate_worker.of_wait((receipt.job_id, receipt.attempt + 1))
    if current is None:
        return None
    return ExpectedBackView(p50=rfc3339(current.estimate.p50), p90=rfc3339(current.estimate.p90))


def _concerns(receipt: ReceiptRecord, caller: Caller) -> bool:
    return caller.is_operator or caller.name in (receipt.user, receipt.for_user)
