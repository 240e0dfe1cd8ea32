"""Checks access to the app of a job: its owner, users with whom it is shared, and operators as for workbenches."""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.ports import Transaction
from corral.control.records import JobRecord
from corral.control.workbenches import apps
from corral.control.workbenches.workbenches import base_url
from corral.core.model import Job, JobState
from corral.server.auth.identity import Identity
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem
from corral.server.routes.jobs.logs import job_now
from corral.server.routes.workbenches.jupyter import RELOAD_SECONDS, check_operator, running_workbench
from corral.server.workbenches.proxy import Unreachable

_MAX_KNOWN = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """The workbench or app at the origin of a job."""

    job_id: str
    is_app: bool

    @property
    def base(self) -> str:
        """The path below which the program answers at its own origin."""
        return "/" if self.is_app else base_url(self.job_id)

    @property
    def console_base(self) -> str:
        """The path at the console that leads there."""
        return apps.address_of(self.job_id) if self.is_app else base_url(self.job_id)


async def site_of(context: ServerContext, job_id: str) -> Site:
    """The site of a job. A job that does not exist counts as a workbench, which is then refused."""
    known = context.workbenches.app_sites.get(job_id)
    if known is None:
        # A job never changes from one to the other; jobs that do not exist are not remembered.
        record = await context.read(_record, job_id)
        known = record is not None and record.spec.has_app
        if record is not None:
            if len(context.workbenches.app_sites) >= _MAX_KNOWN:
                context.workbenches.app_sites.clear()
            context.workbenches.app_sites[job_id] = known
    return Site(job_id=job_id, is_app=known)


async def running_site(context: ServerContext, identity: Identity, site: Site, link: str = "") -> Job:
    """The job, if this visitor may use what it serves and it runs. Raises Problem."""
    if site.is_app:
        return await running_app(context, identity, site.job_id, link)
    return await running_workbench(context, identity, site.job_id)


async def running_app(context: ServerContext, identity: Identity, job_id: str, link: str = "") -> Job:
    """The job, if this visitor may use its app and it runs. Raises Problem."""
    job = await job_now(context, job_id) if job_id.startswith("j-") else None
    is_app = job is not None and (await site_of(context, job.id)).is_app
    if job is None or not is_app or not await _may_open(context, identity, job, link):
        check_operator(context, identity, job_id, "app of job")
    if job is None or not is_app:
        raise Problem(404, "Not found", f"There is no job {job_id} with an app.", slug="not-found")
    if job.state is JobState.STARTING:
        raise app_not_ready(job_id)
    if job.state is not JobState.RUNNING:
        raise Problem(
            409,
            "Not running",
            f"The job {job.name} is {job.state}, so its app does not answer.",
            slug="wrong-state",
            numbers={"state": job.state.value},
        )
    if job.user != identity.user:
        context.audit.note(identity.caller(), "app.opened", job.id, owner=job.user)
    return job


def app_not_ready(job_id: str, error: Unreachable | None = None) -> Problem:
    cause = f" ({error})" if error is not None and str(error) else ""
    return Problem(
        503,
        "Not ready yet",
        f"The app of job {job_id} does not answer: it is starting, or its program does not listen at its port{cause}.",
        slug="not-ready",
        headers={"Retry-After": RELOAD_SECONDS},
    )


async def _may_open(context: ServerContext, identity: Identity, job: Job, link: str) -> bool:
    if job.user == identity.user:
        return True
    return await context.read(apps.is_shared_with, job.id, identity.user, link, context.clock.now())


def _record(tables: Transaction, job_id: str) -> JobRecord | None:
    return tables.jobs.get(job_id)
