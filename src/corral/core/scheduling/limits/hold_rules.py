"""The rules that can hold a job back although there may be room for it: other jobs, limits, quotas, back-off.

Each rule is a function from a snapshot and a job to a reason, or None. The scheduler stops at the first reason; an
explanation lists all of them. A rule that is added here applies to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from corral.core.counts import counted
from corral.core.fleet.resources import asked_by, counted_gpus, gpus_text
from corral.core.model import WHOLE, Job, JobKind, JobState, NodeState
from corral.core.people.budgets import Budget, Unit, accounts_of, amount_text, with_unit
from corral.core.people.quota import Quota, quota_kinds
from corral.core.quantities import format_duration
from corral.core.scheduling.limits.guarantees import counts, is_entitled, owed_to_others_milli
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a job waits: the rule, a description, and the numbers in the description."""

    rule: str
    detail: str
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)
    #: the jobs that the job waits for
    jobs: tuple[str, ...] = ()

    @property
    def is_permanent(self) -> bool:
        """Whether the job alone asks for more than the limit: it never starts while the limit stays, whatever ends."""
        asked, limit = self.numbers.get("asked"), self.numbers.get("limit")
        return asked is not None and limit is not None and float(asked) > float(limit)


#: The end of the description of a reason that lasts.
NEVER = "it can never start under this limit"

TOTAL_LIMIT = "total-gpus"
QUEUE_LIMIT = "queue-gpus"
MOUNT = "mount"

#: how many jobs a description names; the number in it always counts all of them
MOST_NAMED = 5

Rule = Callable[[ClusterSnapshot, Job, float], Reason | None]


def dependency(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """The job comes after jobs that have not completed. Such jobs stand in no line, so that the scheduler never
    asks."""
    if not job.after:
        return None
    others = [(job_id, snapshot.jobs.get(job_id)) for job_id in job.after]
    names = ", ".join(f"{job_id} ({_progress(other, now)})" for job_id, other in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    numbers: dict[str, float | int | str] = {"jobs": len(others)}
    last = max(_latest_end(other) for _, other in others)
    if math.isfinite(last):
        numbers["seconds_left"] = max(0.0, last - now)
    return Reason(rule="dependency", detail=f"it comes after {names}{more}", numbers=numbers, jobs=job.after)


def backing_off(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    left = job.not_before - now
    if left <= 0:
        return None
    if job.given_back:
        return Reason(
            rule="given-back",
            detail=(
                f"its cluster gave it back {job.given_back} times in a row before it began, and it is tried again in "
                f"{format_duration(max(1.0, left))}: {job.message or '?'}"
            ),
            numbers={"seconds_left": left, "times": job.given_back, "said": job.message or "?"},
        )
    return Reason(
        rule="back-off",
        detail=(
            f"after platform failure {job.faults} in a row it is tried again in "
            f"{format_duration(max(1.0, left))}: {job.message or '?'}"
        ),
        numbers={"seconds_left": left, "faults": job.faults},
    )


def queue_missing(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    if job.queue in snapshot.queues:
        return None
    return Reason(rule="queue-missing", detail=f"its queue {job.queue!r} does not exist any more", numbers={})


def membership(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """A user's jobs run in the pool of the user's group. A job queued before the group changed waits and is kept."""
    member, queue = snapshot.memberships.get(job.user), snapshot.queues.get(job.queue)
    if member is None or queue is None or member.may_use(queue):
        return None
    if member.group is None:
        detail = f"user {job.user} is in no group, and so has no pool; queue {queue.name} is in pool {queue.pool}"
    else:
        has = f"has pool {member.pool}" if member.pool else "has no pool"
        detail = f"queue {queue.name} is in pool {queue.pool}, but {job.user}'s group {member.group} {has}"
    return Reason(rule="membership", detail=detail)


def job_too_large(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    return _over("gpus-per-job", "one job", 0, job, snapshot.limits.max_gpus_per_job)


def user_limit(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    held = snapshot.held.by_user.get(job.user, 0)
    return _over("gpus-per-user", f"user {job.user}", held, job, snapshot.limits.max_gpus_per_user)


def total_limit(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    return _over(TOTAL_LIMIT, "all jobs together", snapshot.held.total_gpu_milli, job, snapshot.limits.max_total_gpus)


def queue_limit(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    queue = snapshot.queues.get(job.queue)
    held = snapshot.held.by_queue.get(job.queue, 0)
    return _over(QUEUE_LIMIT, f"queue {job.queue}", held, job, queue.max_gpus if queue else None)


def quota(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """The present quota applies to the next start, also of a job that was queued under a larger one."""
    for kind in quota_kinds(job):
        if (limit := snapshot.quotas.get((job.user, kind))) is not None and (
            reason := _over_quota(snapshot, job, kind, limit)
        ):
            return reason
    return None


def _over_quota(snapshot: ClusterSnapshot, job: Job, kind: JobKind, limit: Quota) -> Reason | None:
    held, asked = snapshot.held.of_kind(job.user, kind), asked_by(job.request)
    for name, has, wanted, most in (
        ("gpus", held.gpu_milli / WHOLE, asked.gpu_milli / WHOLE, _per_whole(limit.gpu_milli)),
        ("cpus", held.cpu_milli / WHOLE, asked.cpu_milli / WHOLE, _per_whole(limit.cpu_milli)),
        ("memory_bytes", held.memory_bytes, asked.memory_bytes, limit.memory_bytes),
    ):
        if most is not None and wanted > 0 and has + wanted > most:
            never = f"; {NEVER}" if wanted > most else ""
            return Reason(
                rule="quota",
                detail=f"insufficient quota for {kind} {name}: asks {wanted:g}, holds {has:g}, limit {most:g}{never}",
                numbers={"resource": name, "asked": wanted, "held": has, "limit": most},
            )
    return None


def over_budget(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """Holds a job whose user or group has spent what its hard limit allows in this period. Running jobs continue."""
    if not snapshot.budgets or not job.request.total_gpu_milli:
        return None
    member = snapshot.memberships.get(job.user)
    for account in accounts_of(job.user, member.group if member else None):
        for unit in Unit:
            budget = snapshot.budgets.get((account, unit))
            if budget is not None and budget.holds_at(now):
                return _over_budget(budget, now)
    return None


def _over_budget(budget: Budget, now: float) -> Reason:
    spent, limit = budget.spent_at(now), budget.hard_micro or 0
    numbers: dict[str, float | int | str] = {
        "account": str(budget.account),
        "unit": budget.unit,
        "spent_micro": spent,
        "limit_micro": limit,
        "over_micro": spent - limit,
    }
    until = ""
    if budget.end is not None:
        numbers["seconds_left"] = budget.end - now
        until = f"; the next {budget.period} begins in {format_duration(max(1.0, budget.end - now))}"
    return Reason(
        rule="over-budget",
        detail=(
            f"{budget.account} is over budget by {with_unit(spent - limit, budget.unit)}: "
            f"spent {amount_text(spent)} of {amount_text(limit)}{until}"
        ),
        numbers=numbers,
    )


def owed(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """GPUs that other queues are owed cannot be reclaimed from a job that is not preemptible: it may not use them."""
    queue, asked = snapshot.queues.get(job.queue), job.request.total_gpu_milli
    if job.preemptible or queue is None or not asked or not snapshot.guaranteeing:
        return None
    others = owed_to_others_milli(snapshot, queue)
    if not others or is_entitled(snapshot, job):
        return None
    free = sum(index.free_gpus for index in snapshot.fleet.domains_of(queue.pool, job.request.models)) * WHOLE
    if free - asked >= others:
        return None
    return Reason(
        rule="owed",
        detail=(
            f"it cannot be preempted, and so leaves {counted_gpus(others)} to queues that they are guaranteed to: "
            f"asks {gpus_text(asked)}, free {gpus_text(free)}"
        ),
        numbers={"asked": asked / WHOLE, "free": free / WHOLE, "owed": others / WHOLE},
    )


def too_large_beside_guarantees(snapshot: ClusterSnapshot, job: Job) -> Reason | None:
    """The job cannot be preempted, and asks for more than its queue is guaranteed and than the guarantees of all other
    queues leave of the pool's GPUs, used or not, healthy or not."""
    queue, asked = snapshot.queues.get(job.queue), job.request.total_gpu_milli
    if job.preemptible or queue is None or not asked or not counts(snapshot):
        return None
    names = snapshot.guaranteeing.get(queue.pool, ())
    others = sum(snapshot.queues[name].guaranteed_gpus for name in names if name != queue.name)
    models = job.request.models
    known = sum(
        gpu.pool == queue.pool and (not models or gpu.model in models)
        for node in snapshot.nodes.values()
        for gpu in node.gpus
    )
    most = max(queue.guaranteed_gpus, known - others)
    if not others or not known or asked <= most * WHOLE:
        return None
    return Reason(
        rule="owed",
        detail=(
            f"it cannot be preempted, and {counted(others, 'GPU')} of {known} in pool {queue.pool} are guaranteed to "
            f"other queues: asks {gpus_text(asked)}, at most {most} for such a job; {NEVER}"
        ),
        numbers={"asked": asked / WHOLE, "limit": most, "owed": others},
    )


def volume_missing(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """The volume was deleted before the job started, or is not ready yet."""
    for mount in job.mounts:
        volume = snapshot.volumes.get(mount.volume)
        if volume is None or volume.not_ready:
            name = f"{volume.name} {volume.not_ready}" if volume else f"{mount.volume} does not exist any more"
            return Reason(rule="volume-missing", detail=f"volume {name}", numbers={"volume": mount.volume})
    return None


def volume_full(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """Jobs that would write to a full volume do not start, because the file system itself may set no limit."""
    for mount in job.mounts:
        volume = snapshot.volumes.get(mount.volume)
        if volume is not None and volume.is_full and mount.writes:
            return Reason(
                rule="volume-full",
                detail=f"volume {volume.name} is full, and the job would write to it: free some of it, or resize it",
                numbers={"volume": volume.id},
            )
    return None


def mounts(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """A volume of a type with one writer takes one writer or any number of readers, never both."""
    for mount in job.mounts:
        volume = snapshot.volumes.get(mount.volume)
        if volume is None or not volume.type.has_one_writer:
            continue
        others = [job_id for job_id in snapshot.mounted.conflicting_jobs(mount) if job_id != job.id]
        if others:
            is_written = others[0] in snapshot.mounted.writers(volume.id)
            names = ", ".join(_named(snapshot, job_id) for job_id in others[:MOST_NAMED])
            more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            held = "written" if is_written else "read"
            access = "would write to it" if mount.writes else "would read it"
            return Reason(
                rule=MOUNT,
                detail=f"volume {volume.name} is {held} by {names}{more}, and this job {access}",
                numbers={"volume": volume.id, "jobs": len(others)},
                jobs=tuple(others),
            )
    return None


def checked_gpus(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """A check waits until its GPUs are free; it never stands in the way of another job."""
    fleet = snapshot.fleet
    for gpu in job.only_gpus:
        place = fleet.place_of.get(fleet.gpu_home.get(gpu, ""))
        if place is None:
            return Reason(rule="check", detail=f"GPU {gpu}, which it checks, does not exist any more")
        slot = fleet.slots[place]
        if slot.node.state is not NodeState.READY:
            return Reason(
                rule="check", detail=f"GPU {gpu}, which it checks, is on node {slot.node.id}, which is not ready"
            )
        if slot.free_milli[gpu] != WHOLE or gpu in slot.node.taken.gpus:
            held = [job.id for job in snapshot.jobs.values() if job.allocation and gpu in job.allocation.gpus]
            by = f" by {', '.join(held[:MOST_NAMED])}" if held else ""
            return Reason(rule="check", detail=f"GPU {gpu}, which it checks, is in use{by}", jobs=tuple(held))
    return None


#: More GPUs than any node has.
_NO_LIMIT = 1_000_000

#: The rules for mounts: they are skipped for a job without mounts.
MOUNT_RULES: tuple[Rule, ...] = (volume_missing, volume_full, mounts)

#: The limits on what jobs hold together.
GPU_LIMITS: tuple[Rule, ...] = (job_too_large, user_limit, total_limit, queue_limit)

#: in the order in which they are checked
RULES: tuple[Rule, ...] = (
    dependency,
    backing_off,
    queue_missing,
    membership,
    *GPU_LIMITS,
    quota,
    over_budget,
    owed,
)


#: The rules for checks of GPUs. Limits, quotas and budgets are for the work of users.
CHECK_RULES: tuple[Rule, ...] = (backing_off, queue_missing, checked_gpus)


def spare_gpus(snapshot: ClusterSnapshot, job: Job) -> int:
    """How many more GPUs than now the job may have under all limits, whether that many are free or not."""
    limits, queue, held = snapshot.limits, snapshot.queues.get(job.queue), snapshot.held
    own = job.request.total_gpu_milli
    quotas = [(kind, quota) for kind in quota_kinds(job) if (quota := snapshot.quotas.get((job.user, kind)))]
    left = [
        most - has
        for has, most in (
            (own, _milli(limits.max_gpus_per_job)),
            (own, _milli(queue.max_job_gpus if queue else None)),
            (held.by_user.get(job.user, 0), _milli(limits.max_gpus_per_user)),
            (held.total_gpu_milli, _milli(limits.max_total_gpus)),
            (held.by_queue.get(job.queue, 0), _milli(queue.max_gpus if queue else None)),
            *((held.of_kind(job.user, kind).gpu_milli, quota.gpu_milli) for kind, quota in quotas),
        )
        if most is not None
    ]
    return max(0, min(left) // WHOLE) if left else _NO_LIMIT


def limit_below(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    """The first limit on GPUs that is smaller than what the job asks for: the job could never start. Guarantees of
    other queues are no limit of this kind: a job is accepted beside them, and `too_large_beside_guarantees` explains
    it."""
    if job.only_gpus:
        return None
    found = (rule(snapshot, job, now) for rule in GPU_LIMITS)
    return next((reason for reason in found if reason is not None and reason.is_permanent), None)


def first_reason(snapshot: ClusterSnapshot, job: Job, now: float) -> Reason | None:
    for rule in _rules_for(job):
        reason = rule(snapshot, job, now)
        if reason is not None:
            return reason
    return None


def all_reasons(snapshot: ClusterSnapshot, job: Job, now: float) -> list[Reason]:
    found = (rule(snapshot, job, now) for rule in _rules_for(job))
    return [_with_limit(snapshot, job, reason) if reason.rule == "owed" else reason for reason in found if reason]


def _with_limit(snapshot: ClusterSnapshot, job: Job, reason: Reason) -> Reason:
    """The same reason, with its limit if it lasts. Found out only where every reason is wanted: it takes a walk over
    all GPUs."""
    never = too_large_beside_guarantees(snapshot, job)
    return reason if never is None else replace(never, numbers={**reason.numbers, **never.numbers})


def _rules_for(job: Job) -> tuple[Rule, ...]:
    if job.only_gpus:
        return CHECK_RULES
    return (*RULES, *MOUNT_RULES) if job.mounts else RULES


def _named(snapshot: ClusterSnapshot, job_id: str) -> str:
    job = snapshot.jobs.get(job_id)
    return job_id if job is None else f"{job_id} ({job.name})"


def _progress(job: Job | None, now: float) -> str:
    """The state of a job that another one waits for. A job that is not in the snapshot was never started."""
    if job is None:
        return "not started"
    if job.state is JobState.QUEUED:
        return "queued, waits for others itself" if job.after else "queued"
    end = _latest_end(job)
    return f"{job.state}, {format_duration(max(1.0, end - now))} at most" if math.isfinite(end) else job.state


def _latest_end(job: Job | None) -> float:
    return job.expected_end if job is not None and job.state.holds_resources else math.inf


def _over(rule: str, holder: str, held_milli: int, job: Job, limit: int | None) -> Reason | None:
    asked_milli = job.request.total_gpu_milli
    if limit is None or asked_milli == 0 or held_milli + asked_milli <= limit * WHOLE:
        return None
    never = f"; {NEVER}" if asked_milli > limit * WHOLE else ""
    asks, holds = gpus_text(asked_milli), gpus_text(held_milli)
    return Reason(
        rule=rule,
        detail=f"{holder} may hold {counted(limit, 'GPU')}: asks {asks}, holds {holds}{never}",
        numbers={"asked": asked_milli / WHOLE, "held": held_milli / WHOLE, "limit": limit},
    )


def _milli(gpus: int | None) -> int | None:
    return None if gpus is None else gpus * WHOLE


def _per_whole(milli: int | None) -> float | None:
    return None if milli is None else milli / WHOLE
