"""Datasets: their versions, tags and lineage. Files are in `dataset_files`, long operations in `operations`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response

from corral.control.datasets import datasets, operations, targets
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.ports import Transaction
from corral.control.records import DatasetRecord, MetadataKind, VersionRecord
from corral.control.storage.sharing import Circle
from corral.server.auth.callers import AnyCaller, Context
from corral.server.datasets.dataset_problems import looked_up
from corral.server.http.paging import Cursor, Limit, page_of, read_cursor, write_cursor
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import own_record
from corral.server.schemas.base import ListView, rfc3339
from corral.server.schemas.datasets.datasets import (
    DatasetCreate,
    DatasetEdit,
    DatasetSharesPut,
    DatasetView,
    JobDatasetView,
    JobLineageView,
    LineageJobView,
    LineageView,
    TagPut,
    TagView,
    VersionLineageView,
    VersionView,
    dataset_view,
    lineage_job_view,
    operation_view,
    shares_of,
    version_view,
)

router = resource_router("/datasets", "datasets")
job_router = resource_router("/jobs", "datasets")

FilterText = Annotated[str, Query(min_length=1, max_length=253)]


@router.get("", operation_id="list_datasets", responses=problems())
async def list_datasets(
    caller: AnyCaller,
    context: Context,
    name: FilterText | None = None,
    owner: FilterText | None = None,
    target: FilterText | None = None,
    mine: bool = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[DatasetView]:
    """Datasets of the caller and those that are shared with the caller; operators see all."""
    wanted = {"name": name, "owner": owner, "target": target}

    def read(tx: Transaction) -> ListView[DatasetView]:
        found = [
            dataset
            for dataset in datasets.visible(tx, caller)
            if all(value in (None, getattr(dataset, field)) for field, value in wanted.items())
            and (not mine or dataset.owner == caller.name)
        ]
        page = page_of(found, key=lambda dataset: (dataset.name, dataset.owner), limit=limit, cursor=cursor)
        return ListView(items=_views(tx, caller, page.items), next_cursor=page.next_cursor)

    return await context.read(read)


@router.post("", status_code=201, operation_id="create_dataset", responses=problems(403, 404, 409))
async def create_dataset(body: DatasetCreate, caller: AnyCaller, context: Context) -> DatasetView:
    """Create an empty dataset; `commits` add versions."""
    made = await context.execute(
        datasets.create, caller, name=body.name, target=body.target, description=body.description
    )
    if await context.read(_is_in_git, made.target):
        # The repository may already have a history of that name: it is imported.
        await context.execute(operations.request_pull, caller, made.id)
        context.operation_runner.wake()
    return await context.read(_shown, caller, made.id)


@router.get("/{dataset}", operation_id="get_dataset", responses=problems(404))
async def get_dataset(dataset: str, caller: AnyCaller, context: Context) -> DatasetView:
    """A dataset by its id or its name: the caller's own, or the only one of that name that the caller sees."""
    return await context.read(_shown, caller, dataset)


@router.patch("/{dataset}", operation_id="edit_dataset", responses=problems(403, 404))
async def edit_dataset(dataset: str, body: DatasetEdit, caller: AnyCaller, context: Context) -> DatasetView:
    """Change the description or the settings of a dataset. Versions never change."""
    edited = await context.execute(datasets.edit, caller, dataset, description=body.description)
    return await context.read(_shown, caller, edited.id)


@router.put("/{dataset}/shares", operation_id="share_dataset", responses=problems(403, 404))
async def share_dataset(dataset: str, body: DatasetSharesPut, caller: AnyCaller, context: Context) -> DatasetView:
    """Share the dataset with exactly these users and groups. `rw` may commit and tag."""
    shared = await context.execute(datasets.share, caller, dataset, shares_of(body))
    return await context.read(_shown, caller, shared.id)


@router.get("/{dataset}/versions", operation_id="list_dataset_versions", responses=problems(404))
async def list_dataset_versions(
    dataset: str, caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[VersionView]:
    """Versions of a dataset, the newest first."""
    before = _before(cursor)

    def read(tx: Transaction) -> ListView[VersionView]:
        found = datasets.found(tx, caller, dataset)
        versions, following = _page(tx, found, before, limit)
        tags = tx.datasets.tags([found.id])
        return ListView(items=[version_view(version, tags) for version in versions], next_cursor=following)

    return await context.read(read)


@router.get("/{dataset}/versions/{version}", operation_id="get_dataset_version", responses=problems(404))
async def get_dataset_version(dataset: str, version: str, caller: AnyCaller, context: Context) -> VersionView:
    """A version by a tag, the first digits of its id (at least 4), or `latest`."""

    def read(tx: Transaction) -> VersionView:
        found = datasets.found(tx, caller, dataset)
        return version_view(datasets.version_meant(tx, found, version), tx.datasets.tags([found.id]))

    return await context.read(read)


@router.put("/{dataset}/tags/{tag}", operation_id="tag_dataset", responses=problems(403, 404, 409))
async def tag_dataset(dataset: str, tag: str, body: TagPut, caller: AnyCaller, context: Context) -> TagView:
    """Set a tag to a version; a tag that exists already is moved."""

    def read(tx: Transaction) -> tuple[DatasetRecord, VersionRecord]:
        found = datasets.writable(tx, caller, dataset)
        datasets.check_tag(tag)
        return found, datasets.version_meant(tx, found, body.version)

    found, meant = await context.read(read)
    # The Git repository first, if there is one: it is authoritative.
    await looked_up(context.readers, caller.name, context.library.tag, found, tag, meant.id)
    record = await context.execute(datasets.tag, caller, found.id, tag, meant.id)
    return TagView(tag=record.tag, version=record.version)


@router.delete("/{dataset}/tags/{tag}", status_code=204, operation_id="untag_dataset", responses=problems(403, 404))
async def untag_dataset(dataset: str, tag: str, caller: AnyCaller, context: Context) -> Response:
    """Remove a tag. The version that it named stays."""
    found = await context.read(datasets.writable, caller, dataset)
    await looked_up(context.readers, caller.name, context.library.untag, found, tag)
    await context.execute(datasets.untag, caller, found.id, tag)
    return Response(status_code=204)


@router.delete("/{dataset}", status_code=204, operation_id="delete_dataset", responses=problems(403, 404, 409))
async def delete_dataset(dataset: str, caller: AnyCaller, context: Context) -> Response:
    """Delete a dataset with all its versions. Refused while a job mounts it. In a Git repository it is removed from the
    branch; Git's own history keeps it."""
    gone = await context.execute(datasets.delete, caller, dataset)
    await looked_up(context.readers, caller.name, context.library.forget, gone)
    return Response(status_code=204)


@router.get("/{dataset}/lineage", operation_id="get_dataset_lineage", responses=problems(404))
async def get_dataset_lineage(
    dataset: str,
    caller: AnyCaller,
    context: Context,
    version: Annotated[str | None, Query(min_length=1, max_length=64, description="Only this one.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> LineageView:
    """The job that made each version, and the jobs that used it; the newest version first."""
    before = _before(cursor)

    def read(tx: Transaction) -> LineageView:
        found = datasets.found(tx, caller, dataset)
        if version is None:
            versions, following = _page(tx, found, before, limit)
        else:
            versions, following = [datasets.version_meant(tx, found, version)], None
        views = _lineages(tx, caller, found, versions)
        return LineageView(dataset=found.id, name=found.name, versions=views, next_cursor=following)

    return await context.read(read)


@job_router.get("/{job}/datasets", operation_id="get_job_datasets", responses=problems(403, 404))
async def get_job_datasets(job: str, caller: AnyCaller, context: Context) -> JobLineageView:
    """The versions that a job's attempts used, and those that the job made."""

    def read(tx: Transaction) -> JobLineageView:
        job_id = own_record(tx, caller, job).job.id
        used: dict[tuple[str, str], list[tuple[int, float]]] = {}
        for use in tx.datasets.uses_of_job(job_id):
            used.setdefault((use.dataset, use.version), []).append((use.attempt, use.at))
        made = {(version.dataset, version.id): [(0, version.at)] for version in tx.datasets.produced_by(job_id)}
        seen = {dataset.id: dataset for dataset in datasets.visible(tx, caller)}
        return JobLineageView(
            job=job_id,
            used=[_of_job(seen.get(dataset), dataset, version, when) for (dataset, version), when in used.items()],
            produced=[_of_job(seen.get(dataset), dataset, version, when) for (dataset, version), when in made.items()],
            commits=[operation_view(commit) for commit in operations.commits_of_job(tx, job_id)],
        )

    return await context.read(read)


def _of_job(
    dataset: DatasetRecord | None, dataset_id: str, version: str, when: Sequence[tuple[int, float]]
) -> JobDatasetView:
    return JobDatasetView(
        dataset=dataset_id,
        name=None if dataset is None else dataset.name,
        owner=None if dataset is None else dataset.owner,
        version=version,
        short=version[:12],
        attempts=sorted(attempt for attempt, _ in when if attempt),
        at=rfc3339(max(at for _, at in when)),
    )


# ------------------------------------------------------------------------------------------------ answers


def _is_in_git(tx: Transaction, target: str) -> bool:
    return targets.existing(tx, target).metadata is MetadataKind.GIT


def _shown(tx: Transaction, caller: Caller, ref: str) -> DatasetView:
    return _views(tx, caller, [datasets.found(tx, caller, ref)])[0]


def _views(tx: Transaction, caller: Caller, found: Sequence[DatasetRecord]) -> list[DatasetView]:
    circle = Circle(tx, caller)
    ids = [dataset.id for dataset in found]
    heads, tags = tx.datasets.heads(ids), tx.datasets.tags(ids)
    return [
        dataset_view(
            dataset,
            head=heads.get(dataset.id),
            tags=tags,
            is_mine=dataset.owner == caller.name,
            may_write=circle.writes(dataset.owner, dataset.shares),
            sees_shares=caller.is_operator or dataset.owner == caller.name,
        )
        for dataset in found
    ]


def _page(
    tx: Transaction, dataset: DatasetRecord, before: int | None, limit: int
) -> tuple[list[VersionRecord], str | None]:
    versions = tx.datasets.log(dataset.id, before=before, limit=limit + 1)
    shown = versions[:limit]
    return shown, write_cursor((shown[-1].number,)) if len(versions) > limit else None


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    key = read_cursor(cursor)
    if len(key) != 1 or type(key[0]) is not int or not 0 < key[0] < 2**62:
        raise invalid_field("cursor", "is not a cursor of this list")
    return key[0]


def _lineages(
    tx: Transaction, caller: Caller, dataset: DatasetRecord, versions: Sequence[VersionRecord]
) -> list[VersionLineageView]:
    tags = tx.datasets.tags([dataset.id])
    shown = versions[0].id if len(versions) == 1 else None
    used = datasets.used_by(tx.datasets.uses(dataset.id, version=shown, limit=datasets.MOST_USES))
    makers = tx.jobs.some([version.produced_by for version in versions if version.produced_by])
    found = []
    for version in versions:
        view = version_view(version, tags)
        maker = makers.get(version.produced_by or "")
        is_known = maker is not None and may_see_job(caller, maker.user)
        made = LineageJobView(
            id=version.produced_by or "",
            name=maker.name if maker is not None and is_known else None,
            user=maker.user if maker is not None and is_known else None,
            attempts=[],
            last_at=view.at,
        )
        found.append(
            VersionLineageView(
                version=view.id,
                short=view.short,
                tags=view.tags,
                message=view.message,
                at=view.at,
                produced_by=made if version.produced_by else None,
                used_by=[
                    lineage_job_view(use, is_hidden=not may_see_job(caller, use.user))
                    for use in used.get(version.id, [])
                ],
            )
        )
    return found
