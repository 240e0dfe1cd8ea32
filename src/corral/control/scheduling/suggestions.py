"""Suggestions for waiting jobs. Each is tried: the scheduler plans the snapshot with the change, and only changes that
let the job start now, or at an earlier planned start, are shown.

Trying costs time of the thread that also decides: the number of trials is bounded, and the caller says when to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from corral.control.errors import Refusal
from corral.control.fleet.catalog import Catalog, request_of
from corral.control.jobs.admission import admit, settled
from corral.control.jobs.job_edit import edited
from corral.control.jobs.jobs import JobChange, JobDraft
from corral.control.live.state import State
from corral.control.records import JobSpec
from corral.control.scheduling import queue_choice
from corral.core.jobs.lifecycle import StartRequested, advance
from corral.core.model import Elastic, Job, JobState, Request
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.advice import Choices, Operation, Proposal, proposals
from corral.core.scheduling.plan.plan import Plan, PlannedStart
from corral.core.snapshot.changes import DropJob, PutJob

MOST_SHOWN = 4
#: Beside the one that says what happens without any change.
MOST_TRIED = 8
#: Less is not worth a change.
EARLIER_SECONDS = 60.0


class Outcome(StrEnum):
    START = "start"
    EARLIER = "earlier"


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    proposal: Proposal
    outcome: Outcome
    start_at: float


def suggestions(
    state: State, now: float, job: Job, spec: JobSpec, catalog: Catalog, *, may_go_on: Callable[[], bool]
) -> list[Suggestion]:
    """The changes that would let the job start, the best first. `may_go_on` is called before every trial."""
    live = state.snapshot.jobs.get(job.id, job)
    if live.state not in (JobState.QUEUED, JobState.CREATED) or live.after:
        return []
    plan = schedule(state.snapshot, now)
    if any(start.job_id == live.id for start in plan.starts):
        return []
    helping = []
    for proposal in proposals(state.snapshot, plan, live, now, _choices(state, live, catalog))[:MOST_TRIED]:
        if not may_go_on():
            break
        changed = _changed(state, now, live, spec, proposal, catalog)
        if changed is not None:
            helped = _judged(proposal, _planned(state, now, live, changed), plan.planned_start(live.id), live, now)
            helping += [helped] if helped is not None else []
    return sorted(helping, key=lambda item: (item.outcome is not Outcome.START, item.start_at))[:MOST_SHOWN]


def change_for(proposal: Proposal) -> JobChange:
    """The edit that a proposal means."""
    change = proposal.change
    draft = JobDraft(
        spec=JobSpec(command=()),
        request=Request(
            nodes=change.get("nodes", 1), gpus=change.get("gpus", 0), models=tuple(change.get("model", ()))
        ),
        package=change.get("package"),
        min_gpus=change.get("min_gpus"),
        max_gpus=change.get("max_gpus"),
        queue=change.get("queue"),
        time_limit_seconds=change.get("time"),
    )
    return JobChange(given=frozenset(change), draft=draft)


def _choices(state: State, job: Job, catalog: Catalog) -> Choices:
    scaling = state.policies.scaling
    bounds = Elastic(min_gpus=scaling.min_gpus, max_gpus=scaling.max_gpus) if scaling.rules.enabled else None
    return Choices(
        queues=queue_choice.reach(state.snapshot, job.user), packages=_packages(job, catalog), elastic=bounds
    )


def _packages(job: Job, catalog: Catalog) -> dict[str, Request]:
    found: dict[str, Request] = {}
    for name, package in catalog.packages.items():
        if not package.kinds or job.kind in package.kinds:
            flavor = catalog.flavors.get(package.flavor) if package.flavor is not None else None
            found[name] = request_of(package, flavor, job.request.nodes)
    return found


def _changed(state: State, now: float, job: Job, spec: JobSpec, proposal: Proposal, catalog: Catalog) -> Job | None:
    """The job as it would wait then; None if it would be refused."""
    try:
        if proposal.operation is Operation.START:
            fitting = settled(state, job)
            admit(state, [fitting])
            return advance(fitting, StartRequested(at=now)).job
        changed, _ = edited(state, job, spec, change_for(proposal), catalog)
    except Refusal:
        return None
    # Another kind may need a permission that its owner lacks.
    return changed if changed.kind is job.kind else None


def _planned(state: State, now: float, job: Job, changed: Job) -> Plan:
    """The scheduler's plan if the job were changed like this."""
    was_there = job.id in state.snapshot.jobs
    state.snapshot.apply([PutJob(job=changed)])
    try:
        return schedule(state.snapshot, now)
    finally:
        state.snapshot.apply([PutJob(job=job) if was_there else DropJob(id=job.id)])


def _judged(proposal: Proposal, plan: Plan, before: PlannedStart | None, job: Job, now: float) -> Suggestion | None:
    if any(start.job_id == job.id for start in plan.starts):
        return Suggestion(proposal=proposal, outcome=Outcome.START, start_at=now)
    after = plan.planned_start(job.id)
    # Without a planned start before, the new one cannot be compared.
    if before is None or after is None or not after.is_known:
        return None
    if after.soonest_at > before.soonest_at - EARLIER_SECONDS:
        return None
    return Suggestion(proposal=proposal, outcome=Outcome.EARLIER, start_at=after.at)
