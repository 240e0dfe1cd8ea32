"""Why a job waits: every rule that holds it, with numbers, the jobs in its way, and its position in the line.

The explanation is made from the same snapshot, rules and plan as the decision, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from corral.core.counts import counted
from corral.core.fleet.free_gpus import closed_gpus
from corral.core.fleet.resources import NOTHING, gpus_text, held_by
from corral.core.jobs.lifecycle import NOT_TAKEN
from corral.core.model import WHOLE, Blocking, GpuHealth, Job, JobState, NodeState, Queue, Request
from corral.core.quantities import format_duration
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.limits.claims import Claim
from corral.core.scheduling.limits.hold_rules import MOST_NAMED, Reason, all_reasons
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.placement.search import could_ever_fit, domains_for, find_place
from corral.core.scheduling.plan.plan import Plan, PlannedStart
from corral.core.scheduling.preemption.rules import is_ranked, preempts_from
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place, reserved_reason
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import DomainIndex, places
from corral.core.snapshot.trial import Trial
from corral.core.snapshot.waiting_lines import LineKey, line_of

#: how many jobs in the way are listed; their number always counts all of them
NAMED = 20
#: Sums of times are exact to less than this.
ROUNDING_SECONDS = 0.001


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    job_id: str
    summary: str
    reasons: tuple[Reason, ...] = ()
    #: position in its line, counted from 1
    position: int | None = None
    #: the first jobs in front of it, and the number of all of them
    ahead: tuple[str, ...] = ()
    ahead_count: int = 0
    #: why it has this position, as text
    place: str = ""
    planned: PlannedStart | None = None


def explain(snapshot: ClusterSnapshot, plan: Plan, job: Job, now: float) -> Explanation:
    """The explanation for one job, from the snapshot that `plan` was made from (its starts may be applied or not)."""
    if job.state is not JobState.QUEUED:
        return Explanation(job_id=job.id, summary=_not_waiting(job))
    if any(start.job_id == job.id for start in plan.starts):
        return Explanation(job_id=job.id, summary="it starts now")
    if job.after:
        return _order_reasons_of(snapshot, job, now)
    queue = snapshot.queues.get(job.queue)
    with snapshot.trial() as trial:
        # A start of this plan can be the one that reaches a limit or takes the last room.
        for start in plan.starts:
            starting = snapshot.jobs.get(start.job_id)
            if starting is not None and starting.state is JobState.QUEUED:
                trial.start(starting, start.allocation)
        reasons = all_reasons(snapshot, job, now)
        if queue is not None:
            reasons += _resource_reasons(snapshot, trial, plan, queue, job, now)
            reasons += _order_reasons(plan, queue, job)
    reasons += _claim_reasons(snapshot, plan, job, now)
    ahead, ahead_count = _ahead(snapshot, plan, job, now)
    planned = plan.planned_start(job.id)
    return Explanation(
        job_id=job.id,
        summary=_summary(reasons, ahead_count),
        reasons=tuple(reasons),
        position=ahead_count + 1,
        ahead=ahead,
        ahead_count=ahead_count,
        place=place_text(snapshot, job, snapshot.score(job.user, line_of(job).model, now)),
        planned=planned,
    )


def _order_reasons_of(snapshot: ClusterSnapshot, job: Job, now: float) -> Explanation:
    """A job that waits for other jobs has no position in a line yet."""
    reasons = all_reasons(snapshot, job, now)
    return Explanation(job_id=job.id, summary=_summary(reasons, 0), reasons=tuple(reasons))


def line_order(snapshot: ClusterSnapshot, key: LineKey, now: float) -> Iterator[Job]:
    """The jobs of a line in order. The snapshot must not change meanwhile."""
    return snapshot.lines[key].in_order(lambda user: snapshot.score(user, key.model, now), few=True)


def place_text(snapshot: ClusterSnapshot, job: Job, score: float) -> str:
    """Why a job has its position in the line; `score` is its user's score for the model of the line."""
    if job.pinned_at is not None:
        return "pinned by an operator"
    queue = snapshot.queues.get(job.queue)
    # A line of a deleted queue is ordered by age.
    return POLICIES[queue.policy if queue else "fcfs"].place_text(job, score, snapshot.ordering)


def _ahead(snapshot: ClusterSnapshot, plan: Plan, job: Job, now: float) -> tuple[tuple[str, ...], int]:
    """The first jobs in front of the job, and how many there are, without the starts of this plan."""
    line = snapshot.lines[line_of(job)]

    def score_of(user: str) -> float:
        return snapshot.score(user, line.key.model, now)

    starting = {start.job_id for start in plan.starts if start.job_id in line.jobs}
    # A few hundred comparisons instead of a walk over thousands of jobs.
    count = line.count_before(job, score_of)
    count -= sum(line.goes_before(line.jobs[job_id], job, score_of) for job_id in starting)
    waiting = (other.id for other in line.cursor(score_of) if other.id not in starting)
    return tuple(islice(waiting, min(count, NAMED))), count


def _resource_reasons(
    snapshot: ClusterSnapshot, trial: Trial, plan: Plan, queue: Queue, job: Job, now: float
) -> list[Reason]:
    fleet, reserved, ends_at = snapshot.fleet, Reserved(snapshot, now), end_if_started(job, now)
    if not could_ever_fit(fleet, job, queue.pool):
        return [_impossible(snapshot, queue, job)]
    if find_open_place(reserved, fleet, job, queue, ends_at) is None:
        closed = reserved_reason(snapshot, reserved, job, queue.pool, now, ends_at)
        if closed is not None and find_place(fleet, job, queue.pool, queue.placement) is not None:
            return [closed]
        beside = [closed] if closed is not None else []
        room = _no_room(snapshot, queue, job, now)
        planned = plan.planned_start(job.id)
        more = _planned_text(snapshot, planned, now) + _cost_text(planned) + _patience_text(snapshot, queue, job, now)
        room = replace(room, detail=room.detail + more)
        return [*_victims_stopping(snapshot, plan, job), room, *beside, *_shrinking_reasons(snapshot, queue, job)]
    others = [planned for planned in plan.planned if planned.job_id != job.id]
    for planned in others:
        trial.hold(planned.job_id, planned.held)
    if find_open_place(reserved, fleet, job, queue, ends_at) is None:
        return [_kept_for_others(others, job)]
    return []


def _order_reasons(plan: Plan, queue: Queue, job: Job) -> list[Reason]:
    """The reason of a strict queue, in which the first waiting job blocks the rest of its line."""
    if queue.blocking is not Blocking.STRICT:
        return []
    first = next((planned for planned in plan.planned if planned.line == line_of(job)), None)
    if first is None or first.job_id == job.id:
        return []
    return [
        Reason(
            rule="order",
            detail=f"queue {queue.name} is strict: {first.job_id} waits in front, and nothing passes it",
            jobs=(first.job_id,),
        )
    ]


def _claim_reasons(snapshot: ClusterSnapshot, plan: Plan, job: Job, now: float) -> list[Reason]:
    """The rest of a shared limit is kept for the job that has a claim on it."""
    blocking = [
        claim for claim in plan.claims if claim.concerns(job) and not claim.can_be_passed(end_if_started(job, now))
    ]
    return [
        Reason(
            rule="mount-kept" if claim.volume else "limit-kept",
            detail=f"{_limit_text(snapshot, claim)} is kept for {claim.job_id}, which came first",
            jobs=(claim.job_id,),
        )
        for claim in blocking
    ]


def _limit_text(snapshot: ClusterSnapshot, claim: Claim) -> str:
    if claim.volume:
        volume = snapshot.volumes.get(claim.volume)
        return f"volume {volume.name if volume else claim.volume}"
    limit = f"the limit of queue {claim.queue}" if claim.queue else "the limit on all GPUs together"
    return f"what is left of {limit}"


def _impossible(snapshot: ClusterSnapshot, queue: Queue, job: Job) -> Reason:
    request = job.request
    indexes = domains_for(snapshot.fleet, request, queue.pool)
    usable = sum(bits.bit_count() * count for index in indexes for count, bits in enumerate(index.whole))
    largest = max(
        (len(slot.domains.get(index.domain, ())) for index in indexes for slot in snapshot.fleet.slots), default=0
    )
    nodes = sum(index.members.bit_count() for index in indexes)
    return Reason(
        rule="impossible",
        detail=(
            f"no set of ready nodes in pool {queue.pool} can ever hold {_request_text(request)}: "
            f"{counted(nodes, 'node')} could be used, the largest has {counted(largest, 'GPU')}"
            f"{_out_of_use(snapshot, queue, job)}"
        ),
        numbers={
            "asked_nodes": request.nodes,
            "asked_gpus": _per_node(request),
            "nodes": nodes,
            "largest_node": largest,
            "free_gpus": usable,
        },
    )


def _out_of_use(snapshot: ClusterSnapshot, queue: Queue, job: Job) -> str:
    """GPUs that could hold the job but are out of use, as text: that may change at any time."""
    models, nodes = job.request.models, snapshot.nodes.values()
    in_reach = [
        (node, gpu)
        for node in nodes
        for gpu in node.gpus
        if gpu.pool == queue.pool and (not models or gpu.model in models)
    ]
    faulty = sum(node.state is NodeState.READY and gpu.health is not GpuHealth.HEALTHY for node, gpu in in_reach)
    away = sum(node.state is not NodeState.READY for node, _ in in_reach)
    taken = sum(node.state is NodeState.READY and gpu.id in node.taken.gpus for node, gpu in in_reach)
    leaving = sum(bool(gpu.next_pool) for _, gpu in in_reach)
    coming = sum(
        gpu.next_pool == queue.pool and (not models or gpu.model in models) for node in nodes for gpu in node.gpus
    )
    avoided = sum(gpu.id in job.avoid_gpus or node.id in job.avoid_nodes for node, gpu in in_reach)
    parts = [
        f"{counted(count, 'GPU is', 'GPUs are')} {state}"
        for count, state in (
            (faulty, "suspect or failed"),
            (away, "on nodes that are not ready"),
            (taken, "held by others outside corral"),
            (leaving, "about to move to another pool"),
            (coming, "about to come from another pool"),
            (avoided, "avoided because it failed there before"),
        )
        if count and job.request.wants_gpu
    ]
    return f"; {', '.join(parts)}" if parts else ""


def _open_gpus(snapshot: ClusterSnapshot, indexes: Sequence[DomainIndex], job: Job, now: float) -> tuple[int, int]:
    """Free GPUs that are not reserved for other users: in total, and the most on one node."""
    closed = closed_gpus(snapshot, now, job.user)
    if not closed or not job.request.wants_gpu:
        # The index has the numbers: no node is looked at.
        fullest = max((count for index in indexes for count, bits in enumerate(index.whole) if bits), default=0)
        return sum(index.free_gpus for index in indexes), fullest
    by_node = [
        sum(gpu not in closed for gpu in snapshot.fleet.slots[place].whole_gpus(index.domain))
        for index in indexes
        for place in places(index.members)
    ]
    return sum(by_node), max(by_node, default=0)


def _no_room(snapshot: ClusterSnapshot, queue: Queue, job: Job, now: float) -> Reason:
    fleet, request = snapshot.fleet, job.request
    indexes = domains_for(fleet, request, queue.pool)
    free, fullest = _open_gpus(snapshot, indexes, job, now)
    # CPUs and memory can be held by jobs on any GPU model and by jobs without GPUs.
    models = {index.domain[1] for index in indexes} if request.wants_gpu else {*snapshot.holders}
    holding = (job_id for _, _, job_id in snapshot.releases if _model_of(snapshot.jobs[job_id]) in models)
    numbers: dict[str, float | int | str] = {
        "asked_nodes": request.nodes,
        "asked_gpus": _per_node(request),
        "free_gpus": free,
        "most_free_on_a_node": fullest,
        "jobs_holding": sum(snapshot.holders[model] for model in models),
    }
    are = "GPU is" if free == 1 else "GPUs are"
    detail = f"needs {_request_text(request)}; {free} {are} free in pool {queue.pool}, at most {fullest} on one node"
    if request.cpu_milli or request.memory_bytes:
        cpu = max((slot.free_cpu_milli for slot in fleet.slots), default=0) / WHOLE
        memory = max((slot.free_memory_bytes for slot in fleet.slots), default=0)
        numbers |= {"most_free_cpus_on_a_node": cpu, "most_free_memory_bytes_on_a_node": memory}
        detail += f", and at most {counted(cpu, 'CPU')} and {memory / 2**30:.1f} GiB of memory"
    return Reason(rule="resources", detail=detail, numbers=numbers, jobs=tuple(islice(holding, NAMED)))


def _model_of(job: Job) -> str:
    return job.allocation.model if job.allocation is not None else ""


def _shrinking_reasons(snapshot: ClusterSnapshot, queue: Queue, job: Job) -> list[Reason]:
    """Elastic jobs that are shrinking: their GPUs are released when they have saved."""
    models = {index.domain[1] for index in domains_for(snapshot.fleet, job.request, queue.pool)}
    releasing = {
        other.id: len(other.allocation.gpus) - len(other.next_allocation.gpus)
        for other in (snapshot.jobs[job_id] for job_id in sorted(snapshot.elastic))
        if other.allocation is not None and other.next_allocation is not None and other.allocation.model in models
    }
    releasing = {job_id: gpus for job_id, gpus in releasing.items() if gpus > 0}
    if not releasing:
        return []
    grace = max(snapshot.jobs[job_id].grace_seconds for job_id in releasing)
    listed = ", ".join(f"{job_id} gives back {gpus}" for job_id, gpus in releasing.items())
    return [
        Reason(
            rule="resizing",
            detail=f"{listed} of its GPUs, within {format_duration(max(1.0, grace))} at the latest",
            numbers={"coming_gpus": sum(releasing.values()), "grace_seconds": grace},
            jobs=tuple(releasing),
        )
    ]


def _victims_stopping(snapshot: ClusterSnapshot, plan: Plan, job: Job) -> list[Reason]:
    """Jobs that are preempted for the job, by this plan or an earlier one, and still hold their resources."""
    names = {
        *snapshot.victims_stopping.get(job.id, ()),
        *(preemption.job_id for preemption in plan.preemptions if preemption.for_job == job.id),
    }
    victims = sorted((snapshot.jobs[name] for name in names if name in snapshot.jobs), key=lambda victim: victim.serial)
    victims = [victim for victim in victims if victim.allocation is not None]
    if not victims:
        return []
    grace = max(victim.grace_seconds for victim in victims)
    listed = ", ".join(victim.id for victim in victims[:NAMED]) + (
        f" and {len(victims) - NAMED} more" * (len(victims) > NAMED)
    )
    are = "is" if len(victims) == 1 else "are"
    return [
        Reason(
            rule="giving-way",
            detail=f"{listed} {are} being preempted for it, within {format_duration(max(1.0, grace))}",
            numbers={
                "coming_gpus": sum(_released_milli(victim) for victim in victims) / WHOLE,
                "grace_seconds": grace,
            },
            jobs=tuple(victim.id for victim in victims[:NAMED]),
        )
    ]


def _released_milli(job: Job) -> int:
    """The GPUs that are released when the attempt ends: of a moved job, all but those of its next allocation."""
    held, kept = job.allocation, job.next_allocation
    return (held.total_gpu_milli if held else 0) - (kept.total_gpu_milli if kept else 0)


def _planned_text(snapshot: ClusterSnapshot, planned: PlannedStart | None, now: float) -> str:
    """The jobs that its planned start waits for: those that end until then on its nodes, as text."""
    if planned is None or not planned.is_known:
        return ""
    ending = []
    for end, _, job_id in snapshot.ends(now):
        if end > planned.soonest_at + ROUNDING_SECONDS:
            break
        allocation = snapshot.jobs[job_id].allocation
        if allocation is not None and any(grant.node in planned.nodes for grant in allocation.grants):
            ending.append(job_id)
    if not ending:
        return ""
    more = f" and {len(ending) - MOST_NAMED} more" if len(ending) > MOST_NAMED else ""
    soonest = format_duration(max(1.0, planned.soonest_at - now))
    when = f"{soonest} at the latest" if planned.is_firm else f"{soonest} as far as can be foreseen"
    if planned.slack_seconds:
        when = (
            f"{soonest}, and in {format_duration(max(1.0, planned.at - now))} at the latest: until it has waited for "
            f"{snapshot.backfill.slack:g} times as long as its time limit, jobs that end by then may pass it"
        )
    return (
        f"; it will run on {', '.join(planned.nodes[:MOST_NAMED])} when {', '.join(ending[:MOST_NAMED])}{more} "
        f"{'has' if len(ending) == 1 else 'have'} ended, in {when}"
    )


def _patience_text(snapshot: ClusterSnapshot, queue: Queue, job: Job, now: float) -> str:
    """When the job may preempt, if it has not waited for long enough yet, as text."""
    if not snapshot.preemption.enabled or not is_ranked(queue):
        return ""
    left = preempts_from(snapshot, queue, job) - now
    if left <= 0.0:
        return ""
    patience, left_text = (format_duration(max(1.0, value)) for value in (snapshot.preemption.patience_seconds, left))
    return f"; jobs of queue {queue.name} wait for {patience} before they preempt, and it waits for {left_text} more"


def _cost_text(planned: PlannedStart | None) -> str:
    """The idle GPU hours that the planned start costs, as text."""
    if planned is None or not planned.idle_gpu_seconds:
        return ""
    hours = f"{planned.idle_gpu_seconds / 3600:.3g} GPU-hours"
    if planned.held.gpus:
        gpus = gpus_text(planned.held.total_gpu_milli)
        return f"; {gpus} free {'GPU is' if gpus == '1' else 'GPUs are'} held for it, which costs {hours} of idle GPUs"
    return f"; nothing is held for it yet: that would cost {hours} of idle GPUs"


def _kept_for_others(others: list[PlannedStart], job: Job) -> Reason:
    keeping = [planned for planned in others if held_by(planned.held) != NOTHING]
    names = ", ".join(planned.job_id for planned in keeping[:NAMED])
    return Reason(
        rule="kept",
        detail=(
            f"there is room for {_request_text(job.request)}, but it is kept for {names}: "
            "this job could run longer than until that one's planned start"
        ),
        numbers={"kept_gpus": sum(planned.held.total_gpu_milli for planned in keeping) / WHOLE},
        jobs=tuple(planned.job_id for planned in keeping[:NAMED]),
    )


def _request_text(request: Request) -> str:
    models = " or ".join(request.models)
    count = gpus_text(request.gpus * WHOLE + request.gpu_milli)
    gpus = f"{count} {models + ' ' if models else ''}{'GPU' if count == '1' else 'GPUs'}"
    text = gpus if request.wants_gpu else "CPUs and memory"
    if request.labels:
        text += " with " + ", ".join(f"{key}={value}" for key, value in request.labels)
    return f"{text} on each of {request.nodes} nodes" if request.is_gang else f"{text} on one node"


def _per_node(request: Request) -> float:
    return (request.gpus * WHOLE + request.gpu_milli) / WHOLE


def _summary(reasons: list[Reason], ahead: int) -> str:
    if reasons:
        return reasons[0].detail
    if ahead:
        return f"{counted(ahead, 'job is', 'jobs are')} in front of it"
    return "it starts with the next cycle"


def _not_waiting(job: Job) -> str:
    if job.state is JobState.CREATED:
        return "it is created but not started: start it to put it in the queue"
    if job.state is JobState.STARTING and job.message.startswith(NOT_TAKEN):
        return f"it does not wait for others: it has its place, but {job.message}"
    if job.state.holds_resources:
        return f"it does not wait: it is {job.state}"
    return f"it does not wait: it has ended ({job.end_reason})"
