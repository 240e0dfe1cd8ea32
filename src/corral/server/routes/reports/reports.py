"""Reports: created, downloaded, scheduled. For operators."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fastapi import Response
from starlette.responses import FileResponse

from corral.control.errors import NotFound, WrongState
from corral.control.records import ReportState
from corral.control.reports import reports
from corral.reporting import pdf
from corral.server.auth.callers import Context, Operator
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.reports.report_worker import new_report_id
from corral.server.schemas.base import ListView, parse_time
from corral.server.schemas.reports.reports import (
    ReportCreate,
    ReportView,
    ScheduleCreate,
    ScheduleEdit,
    ScheduleView,
    changes_of,
    report_view,
    schedule_of,
    schedule_view,
)

router = resource_router("", "reports")

MEDIA_TYPES = {"html": "text/html; charset=utf-8", "pdf": "application/pdf", "csv": "text/csv; charset=utf-8"}
#: A report needs only its own styles and must not act in the name of its reader. The console shows it in a frame;
#: other sites may not.
REPORT_HEADERS = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}


@router.get("/reports", operation_id="list_reports", responses=problems(403))
async def list_reports(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ReportView]:
    """Stored reports, the newest first."""
    try:
        page = await context.read(lambda tables: tables.reports.page(cursor=cursor, limit=limit))
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    return ListView(items=[report_view(report) for report in page.items], next_cursor=page.next_cursor)


@router.post("/reports", status_code=201, operation_id="create_report", responses=problems(403, 409))
async def create_report(body: ReportCreate, caller: Operator, context: Context) -> ReportView:
    """Request a report. It is `working` until it is `ready` to be downloaded, or has `failed`."""
    span = reports.span_asked(
        context.clock.now(),
        period_seconds=body.period,
        since=_time("since", body.since),
        until=_time("until", body.until),
    )
    report = await context.execute(reports.request, caller, new_report_id(), span)
    context.report_worker.wake()
    return report_view(report)


@router.get("/reports/{id}", operation_id="get_report", responses=problems(403, 404))
async def get_report(id: str, caller: Operator, context: Context) -> ReportView:
    """One stored report: its period, its state and its numbers."""
    return report_view(await context.read(reports.existing, id))


@router.delete("/reports/{id}", status_code=204, operation_id="delete_report", responses=problems(403, 404))
async def delete_report(id: str, caller: Operator, context: Context) -> Response:
    """Delete a stored report."""
    await context.execute(reports.delete, caller, id)
    context.report_worker.files.remove([id])
    return Response(status_code=204)


@router.get(
    "/reports/{id}/file",
    operation_id="get_report_file",
    response_class=FileResponse,
    responses={
        200: {
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "application/pdf": {"schema": {"type": "string", "format": "binary"}},
                "text/csv": {"schema": {"type": "string"}},
            },
            "description": "The report.",
        },
        **problems(403, 404, 409),
    },
)
async def get_report_file(
    id: str, caller: Operator, context: Context, format: Literal["html", "pdf", "csv"] = "html"
) -> FileResponse:
    """The report as HTML or PDF, or its data as CSV with one line per attempt."""
    report = await context.read(reports.existing, id)
    if report.state is not ReportState.READY:
        raise WrongState(f"report {id} is {report.state}", field="report", state=report.state)
    name = reports.file_name(report, format)
    path = context.report_worker.files.path(id, name)
    if path is None:
        if format == "pdf" and not pdf.is_installed():
            raise NotFound("corral was installed without PDF: pip install 'corral[reports]'", field="format")
        raise NotFound(f"report {id} has no {format} file any more", field="format")
    return _sent(path, name, format)


@router.get("/report-schedules", operation_id="list_report_schedules", responses=problems(403))
async def list_report_schedules(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ScheduleView]:
    """The schedules of reports, with the time of the next one."""
    found = await context.read(lambda tables: tables.reports.schedules())
    now = context.clock.now()
    page = page_of(found, key=lambda schedule: (schedule.name,), limit=limit, cursor=cursor)
    return ListView(items=[schedule_view(schedule, now) for schedule in page.items], next_cursor=page.next_cursor)


@router.post("/report-schedules", status_code=201, operation_id="create_report_schedule", responses=problems(403, 409))
async def create_report_schedule(body: ScheduleCreate, caller: Operator, context: Context) -> ScheduleView:
    """Create a schedule. The first report covers the first span that ends after now."""
    schedule = await context.execute(reports.create_schedule, caller, schedule_of(body))
    return schedule_view(schedule, context.clock.now())


@router.get("/report-schedules/{name}", operation_id="get_report_schedule", responses=problems(403, 404))
async def get_report_schedule(name: str, caller: Operator, context: Context) -> ScheduleView:
    """One schedule of reports, with the time of the next one."""
    return schedule_view(await context.read(reports.existing_schedule, name), context.clock.now())


@router.patch("/report-schedules/{name}", operation_id="edit_report_schedule", responses=problems(403, 404))
async def edit_report_schedule(name: str, body: ScheduleEdit, caller: Operator, context: Context) -> ScheduleView:
    """Change the given fields of a schedule."""
    schedule = await context.execute(reports.edit_schedule, caller, name, changes_of(body))
    return schedule_view(schedule, context.clock.now())


@router.delete(
    "/report-schedules/{name}", status_code=204, operation_id="delete_report_schedule", responses=problems(403, 404)
)
async def delete_report_schedule(name: str, caller: Operator, context: Context) -> Response:
    """Delete a schedule. Its reports stay."""
    await context.execute(reports.delete_schedule, caller, name)
    return Response(status_code=204)


def _sent(path: Path, name: str, form: str) -> FileResponse:
    if form != "html":
        return FileResponse(path, media_type=MEDIA_TYPES[form], filename=name)
    return FileResponse(
        path, media_type=MEDIA_TYPES[form], filename=name, content_disposition_type="inline", headers=REPORT_HEADERS
    )


def _time(field: str, text: str | None) -> float | None:
    try:
        return None if text is None else parse_time(text)
    except (ValueError, OverflowError):
        raise invalid_field(field, f"{text!r} is not a time such as 2026-01-03T10:00:00Z") from None
