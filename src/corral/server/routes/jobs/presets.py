"""Presets: list, show, add, remove and run."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from pydantic import ValidationError

from corral.control.jobs import jobs, presets
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.problems import Problem, invalid
from corral.server.http.strict_route import problems, resource_router
from corral.server.http.validation import Finding, findings
from corral.server.jobs.drafts import draft_of
from corral.server.jobs.preset_files import existing_preset, filled, load_presets, read_preset, shipped_presets
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.job_bodies import JobCreate
from corral.server.schemas.jobs.jobs import JobView, job_view
from corral.server.schemas.jobs.presets import PresetCreate, PresetRun, PresetView, preset_view
from corral.server.settings.config_file import ConfigError

router = resource_router("/presets", "presets")


@router.get("", operation_id="list_presets", responses=problems())
async def list_presets(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[PresetView]:
    """The built-in presets, and those that operators have added."""
    known = await context.read(load_presets)
    page = page_of(known.values(), key=lambda each: (each.preset.name,), limit=limit, cursor=cursor)
    return ListView(items=[preset_view(each.preset, each.record) for each in page.items], next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="add_preset", responses=problems(403, 409))
async def add_preset(body: PresetCreate, caller: Operator, context: Context) -> PresetView:
    """Add a preset. All problems of the file are reported at once, each with its line."""
    try:
        preset = read_preset(body.yaml)
    except ConfigError as error:
        raise _in_yaml(error) from None
    shipped = frozenset(shipped_presets())
    record = await context.execute(presets.add, caller, preset, body.yaml, shipped=shipped, replace=body.replace)
    return preset_view(preset, record, body.yaml)


@router.get("/{preset}", operation_id="get_preset", responses=problems(404))
async def get_preset(preset: str, caller: AnyCaller, context: Context) -> PresetView:
    """One preset with its parameters and their limits."""
    known = existing_preset(await context.read(load_presets), preset)
    return preset_view(known.preset, known.record, known.yaml)


@router.delete("/{preset}", status_code=204, operation_id="delete_preset", responses=problems(403, 404))
async def remove_preset(preset: str, caller: Operator, context: Context) -> Response:
    """Remove a preset. Jobs that were made from it are not changed."""
    await context.execute(presets.remove, caller, preset, shipped=frozenset(shipped_presets()))
    return Response(status_code=204)


@router.post("/{preset}/run", status_code=201, operation_id="run_preset", responses=problems(403, 404, 409))
async def run_preset(preset: str, body: PresetRun, caller: AnyCaller, context: Context) -> JobView:
    """Make a job of a preset and put it in its queue. The same as a job with `preset` and `parameters`."""
    existing_preset(await context.read(load_presets), preset)
    [whole] = await filled(context, [_submission(preset, body)])
    drafts = await context.git_sources.with_commits(caller, [draft_of(whole)])
    [record] = await context.execute(jobs.submit, caller, drafts)
    return job_view(record, caller)


def _submission(preset: str, body: PresetRun) -> JobCreate:
    own: dict[str, Any] = {"preset": preset, "parameters": body.parameters, "name": body.name}
    twice = [
        Finding(location=("overrides", field), message="is given as well") for field in own if field in body.overrides
    ]
    if twice:
        raise invalid(twice)
    try:
        return JobCreate.model_validate({**body.overrides, **own})
    except ValidationError as error:
        found = findings(error.errors(), JobCreate)
        raise invalid(
            [Finding(location=("overrides", *each.location), message=each.message) for each in found]
        ) from None


def _in_yaml(error: ConfigError) -> Problem:
    return invalid(
        [
            Finding(
                location=("yaml",), message=f"line {each.line or 1}: {f'{each.key}: ' * bool(each.key)}{each.message}"
            )
            for each in error.problems
        ]
    )
