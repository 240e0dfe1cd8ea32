"""Admission of jobs to a queue: names, reach, rules, limits, quotas, and whether the fleet could ever run them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from corral.control.errors import InsufficientQuota, Invalid, OverLimit, Refusal, WrongState, about_item
from corral.control.live.state import State
from corral.control.records import JobSpec
from corral.control.scheduling import queue_choice
from corral.control.system.policies import ScalingPolicy
from corral.core.copies import replace
from corral.core.counts import counted, noun_for
from corral.core.fleet.resources import NOTHING, Amount, asked_by, gpus_text
from corral.core.model import WHOLE, Elastic, GpuHealth, Job, JobKind, JobState, Node, NodeState, Queue, Request, Taken
from corral.core.names import JOB_NAME, SETTING_NAME
from corral.core.people.quota import quota_kinds
from corral.core.quantities import format_bytes, format_duration
from corral.core.scheduling.limits.hold_rules import limit_below
from corral.core.scheduling.placement.search import could_ever_fit, domains_for
from corral.core.snapshot.node_index import Fleet

#: Characters of the command and the environment of a job, and of all jobs of one submission: a list of jobs shows them,
#: and an array repeats them.
MOST_LENGTH = 128 << 10
MOST_LENGTH_OF_ALL = 32 << 20
#: The names of jobs that were submitted without a name. No user may choose such a name, so that they are always free.
GIVEN_NAME = re.compile(r"job-\d+")


def given_name(job_id: str) -> str:
    return f"job-{job_id.removeprefix('j-'):0>3}"


def check_texts(specs: Sequence[JobSpec]) -> None:
    """Checks the jobs of one submission. Members of an array share their environment, and are measured once."""
    lengths: dict[tuple[int, int], int] = {}
    total = 0
    for number, spec in enumerate(specs):
        shared = (id(spec.env), id(spec.command))
        if (length := lengths.get(shared)) is None:
            length = lengths[shared] = spec.length
        if length > MOST_LENGTH:
            with about_item(number):
                raise _too_long(spec, "the command and the environment", length, MOST_LENGTH)
        total += length
    if total > MOST_LENGTH_OF_ALL:
        texts = f"the commands and environments of {counted(len(specs), 'job')}"
        raise _too_long(specs[0], texts, total, MOST_LENGTH_OF_ALL)


def _too_long(spec: JobSpec, texts: str, length: int, limit: int) -> Invalid:
    field = "env" if spec.env else "command"
    detail = f"{texts} have {length} characters together, and at most {limit} are allowed: put the rest into a file"
    return Invalid(detail, field=field, length=length, limit=limit)


def check_name(name: str) -> None:
    if GIVEN_NAME.fullmatch(name):
        raise Invalid(f"names like {name!r} are given to jobs without a name: choose another", field="name")
    if not JOB_NAME.fullmatch(name):
        raise Invalid(
            f"the name {name!r} is not allowed: 4 to 63 letters, digits, - and _", field="name", length=len(name)
        )


def check_queue_name(name: str) -> None:
    """Queues are few and named by operators: short names are fine."""
    if not SETTING_NAME.fullmatch(name):
        raise Invalid(
            f"the name {name!r} is not allowed: up to 63 letters, digits, - and _", field="name", length=len(name)
        )


def elastic_size(policy: ScalingPolicy, least: int | None, most: int | None) -> Elastic:
    """How many GPUs an elastic job may have, of which one number at least is given."""
    if not policy.rules.enabled:
        raise Invalid(
            "there are no elastic jobs here: scaling.enabled is false; name a number of GPUs", field="min_gpus"
        )
    elastic = Elastic(
        min_gpus=policy.min_gpus if least is None else least, max_gpus=policy.max_gpus if most is None else most
    )
    if elastic.min_gpus < policy.min_gpus:
        raise Invalid(
            f"an elastic job has at least {counted(policy.min_gpus, 'GPU')}: asked {elastic.min_gpus}",
            field="min_gpus",
            asked=elastic.min_gpus,
            limit=policy.min_gpus,
        )
    if elastic.max_gpus > policy.max_gpus:
        raise OverLimit(
            f"an elastic job has at most {counted(policy.max_gpus, 'GPU')} (scaling.max_gpus): "
            f"asked {elastic.max_gpus}",
            field="max_gpus",
            asked=elastic.max_gpus,
            limit=policy.max_gpus,
        )
    if elastic.min_gpus > elastic.max_gpus:
        raise Invalid(f"min_gpus ({elastic.min_gpus}) is more than max_gpus ({elastic.max_gpus})", field="min_gpus")
    return elastic


def admit(state: State, jobs: Sequence[Job]) -> None:
    """Refuse, with the numbers, unless every one of these jobs may wait in its queue from now on."""
    if not jobs:
        return
    for number, job in enumerate(jobs):
        with about_item(number):
            check_queue_rules(state, job)
    check_lengths(state, jobs)
    check_quota(state, jobs)
    check_fleet(state, jobs)


def settled(state: State, job: Job) -> Job:
    """The job with what the installation decides: the right queue if it names none, and the longest run time."""
    if not job.queue:
        job = replace(job, queue=right_queue(state, job).name)
    return bounded(state, job)


def right_queue(state: State, job: Job) -> Queue:
    """Chooses the queue of a job without one. If none can take the job, refuses it with the reason of the last
    candidate.
    """
    queues = queue_choice.reach(state.snapshot, job.user)
    if not queues:
        raise _no_reachable_queue(state, job.user)
    refusals = {queue.name: queue_refusal(state, queue, job) for queue in queues}
    member = queue_choice.membership_of(state.snapshot, job.user)
    taking = queue_choice.ranked([queue for queue in queues if refusals[queue.name] is None], member, job)
    if not taking:
        last = refusals[queue_choice.ranked(queues, member, job)[-1].name]
        assert last is not None
        raise last
    if len({queue.pool for queue in taking}) == 1:
        return taking[0]
    return next(iter(_able(state, taking, job)), taking[0])


def bounded(state: State, job: Job) -> Job:
    """The job with the longest run time that its queue and the installation allow, if it named none itself.

    A workbench keeps running until it is stopped.
    """
    if job.time_limit_seconds is not None or job.kind is JobKind.WORKBENCH:
        return job
    longest = _longest(state, state.snapshot.queues.get(job.queue))
    return replace(job, time_limit_seconds=longest) if longest is not None else job


def check_queue_rules(state: State, job: Job) -> None:
    queue = state.snapshot.queues.get(job.queue)
    if queue is None or not queue_choice.is_within_reach(state.snapshot, job.user, queue):
        raise _out_of_reach(state, job, queue)
    refusal = queue_refusal(state, queue, job)
    if refusal is not None:
        raise refusal


def queue_refusal(state: State, queue: Queue, job: Job) -> Refusal | None:
    """The reason why a queue would refuse the job, or None."""
    if queue.kinds and job.kind not in queue.kinds:
        allowed = ", ".join(queue.kinds)
        return Invalid(f"queue {queue.name} takes only {allowed} jobs, not {job.kind}", field="kind")
    asked, smallest = job.request.total_gpu_milli, state.policies.smallest_share_milli
    if 0 < job.request.gpu_milli < smallest:
        return Invalid(
            f"the smallest share of a GPU is {gpus_text(smallest)}: asked {gpus_text(job.request.gpu_milli)}",
            field="gpus",
            asked=job.request.gpu_milli / WHOLE,
            limit=smallest / WHOLE,
        )
    if queue.min_job_gpus is not None and asked < queue.min_job_gpus * WHOLE:
        return Invalid(
            f"queue {queue.name} takes jobs of at least {counted(queue.min_job_gpus, 'GPU')}: asked {gpus_text(asked)}",
            field="gpus",
            asked=asked / WHOLE,
            limit=queue.min_job_gpus,
        )
    for limit, whose in (
        (queue.max_job_gpus, f"a job of queue {queue.name}"),
        (state.policies.limits.max_gpus_per_job, "a job"),
    ):
        if limit is not None and asked > limit * WHOLE:
            return OverLimit(
                f"{whose} may have {counted(limit, 'GPU')}: asked {gpus_text(asked)}",
                field="gpus",
                asked=asked / WHOLE,
                limit=limit,
            )
    if (reason := limit_below(state.snapshot, replace(job, queue=queue.name), 0.0)) is not None:
        return OverLimit(reason.detail, field="gpus", rule=reason.rule, **reason.numbers)
    longest = _longest(state, queue)
    if longest is not None and job.time_limit_seconds is not None and job.time_limit_seconds > longest:
        return OverLimit(
            f"queue {queue.name} allows {format_duration(longest)} at most: "
            f"asked {format_duration(job.time_limit_seconds)}",
            field="time",
            asked=job.time_limit_seconds,
            limit=longest,
        )
    return None


def check_lengths(state: State, jobs: Sequence[Job]) -> None:
    """Queues have a longest length, each and together."""
    waiting = state.snapshot.count(JobState.QUEUED)
    most = state.policies.max_queue_length
    if most is not None and waiting + len(jobs) > most:
        raise OverLimit(
            f"at most {counted(most, 'job')} may wait: {waiting} {noun_for(waiting, 'does', 'do')} already",
            asked=len(jobs),
            held=waiting,
            limit=most,
        )
    check_queue_lengths(state, jobs)


def check_queue_lengths(state: State, jobs: Sequence[Job]) -> None:
    arriving: dict[str, int] = defaultdict(int)
    for job in jobs:
        arriving[job.queue] += 1
    for name, count in arriving.items():
        limit = state.snapshot.queues[name].max_length
        queued = state.snapshot.queued_in(name)
        if limit is not None and queued + count > limit:
            raise OverLimit(
                f"queue {name} is full: {queued} of {counted(limit, 'job')} {noun_for(queued, 'waits', 'wait')} in it",
                field="queue",
                asked=count,
                held=queued,
                limit=limit,
            )


def check_quota(state: State, jobs: Sequence[Job]) -> None:
    """All unfinished jobs of a kind count, so that two submissions can never exceed a quota together."""
    asked: dict[tuple[str, JobKind], Amount] = {}
    for job in jobs:
        for kind in quota_kinds(job):
            key = (job.user, kind)
            asked[key] = asked.get(key, NOTHING) + asked_by(job.request)
    for (user, kind), amount in asked.items():
        quota = state.snapshot.quotas.get((user, kind))
        if quota is None:
            continue
        held = state.snapshot.active.of_kind(user, kind)
        for name, wants, has, limit, unit in (
            ("gpus", amount.gpu_milli, held.gpu_milli, quota.gpu_milli, WHOLE),
            ("cpus", amount.cpu_milli, held.cpu_milli, quota.cpu_milli, WHOLE),
            ("memory_bytes", amount.memory_bytes, held.memory_bytes, quota.memory_bytes, 1),
        ):
            if limit is not None and wants > 0 and has + wants > limit:
                raise InsufficientQuota(
                    f"insufficient quota for {kind} {name}: asked {wants / unit:g}, held {has / unit:g}, "
                    f"limit {limit / unit:g}",
                    field="gpus" if name == "gpus" else name.removesuffix("_bytes"),
                    resource=name,
                    asked=wants / unit,
                    held=has / unit,
                    limit=limit / unit,
                )


def check_fleet(state: State, jobs: Sequence[Job]) -> None:
    """Refuse what no node, or set of nodes, could hold even when all of them are healthy and empty."""
    if not state.snapshot.nodes:
        return  # nothing was observed yet: the job waits, and says why
    whole: Fleet | None = None
    first_of = {(job.request, job.queue): number for number, job in reversed([*enumerate(jobs)])}
    for number in sorted(first_of.values()):
        job = jobs[number]
        pool = state.snapshot.queues[job.queue].pool
        if could_ever_fit(state.snapshot.fleet, job, pool):
            continue
        whole = whole or _whole_fleet(state)
        if not could_ever_fit(whole, job, pool):
            with about_item(number):
                raise _never_fits(state, whole, job, pool)


def _able(state: State, queues: Sequence[Queue], job: Job) -> list[Queue]:
    """The queues whose pool could hold the job now, otherwise those that could if all nodes were healthy."""
    able = [queue for queue in queues if could_ever_fit(state.snapshot.fleet, job, queue.pool)]
    if not able:
        whole = _whole_fleet(state)
        able = [queue for queue in queues if could_ever_fit(whole, job, queue.pool)]
    return able


def _whole_fleet(state: State) -> Fleet:
    return Fleet(_at_its_best(node) for node in state.snapshot.nodes.values())


def _at_its_best(node: Node) -> Node:
    """The node with every GPU healthy, and in the pool that it is or moves to."""
    gpus = tuple(
        replace(gpu, health=GpuHealth.HEALTHY, pool=gpu.next_pool or gpu.pool, next_pool="") for gpu in node.gpus
    )
    return replace(node, state=NodeState.READY, gpus=gpus, taken=Taken())


def _never_fits(state: State, whole: Fleet, job: Job, pool: str) -> Invalid:
    """Names the field that is at fault: the first one without which the job would fit."""
    request = job.request
    counts: dict[str, list[int]] = defaultdict(list)
    for slot in whole.slots:
        for model in {gpu.model for gpu in slot.node.gpus if gpu.pool == pool}:
            counts[model].append(sum(gpu.model == model and gpu.pool == pool for gpu in slot.node.gpus))
    models = sorted(counts)
    if request.models and not set(request.models) & set(models):
        there = ", ".join(models) or "none"
        asked = " or ".join(request.models)
        return Invalid(
            f"there is no GPU of model {asked} in pool {pool}; there are: {there}", field="model", known=models
        )
    usable = sorted({index.domain[1] for index in domains_for(whole, request, pool)})
    if request.gpu_milli and not usable and models:
        slices = ", ".join(model for model in models if not request.models or model in request.models)
        return Invalid(
            f"a slice of a GPU is not shared, and pool {pool} has nothing else for it ({slices}): ask for 1",
            field="gpus",
            known=models,
        )
    nodes = state.snapshot.nodes.values()
    cpus, memory = max(node.cpu_milli for node in nodes) / WHOLE, max(node.memory_bytes for node in nodes)
    labels = ", ".join(f"{key}={value}" for key, value in request.labels)
    for field, without, detail in (
        ("label", replace(request, labels=()), f"no node that could hold it has the labels {labels}"),
        (
            "memory",
            replace(request, memory_bytes=0),
            _too_much(request, f"{format_bytes(request.memory_bytes)} of memory", format_bytes(memory)),
        ),
        (
            "cpus",
            replace(request, cpu_milli=0),
            _too_much(request, counted(request.cpu_milli / WHOLE, "CPU"), f"{cpus:g}"),
        ),
    ):
        if without != request and could_ever_fit(whole, replace(job, request=without), pool):
            return Invalid(f"{detail} (pool {pool})", field=field)
    wanted = [count for model in usable for count in counts.get(model, [])]
    largest = max(wanted, default=0)
    gpus = counted(request.total_gpu_milli // request.nodes / WHOLE, "GPU")
    if request.is_gang:
        detail = f"there are no {request.nodes} nodes with {gpus} each in pool {pool}: {len(wanted)} have GPUs"
    else:
        detail = f"no node in pool {pool} has {gpus}"
    return Invalid(
        f"{detail}, the largest has {largest}",
        field="nodes" if request.is_gang else "gpus",
        asked=request.total_gpu_milli / WHOLE,
        largest_node=largest,
    )


def _out_of_reach(state: State, job: Job, queue: Queue | None) -> Refusal:
    """A queue that does not exist, or is not for this user."""
    known = [item.name for item in queue_choice.reach(state.snapshot, job.user)]
    if not known:
        return _no_reachable_queue(state, job.user)
    problem = "there is no queue" if queue is None else f"{job.user} may not use the queue"
    return Invalid(f"{problem} {job.queue!r}; there are: {', '.join(known)}", field="queue", known=known)


def _no_reachable_queue(state: State, user: str) -> WrongState:
    member = queue_choice.membership_of(state.snapshot, user)
    if member.group is None:
        detail = f"user {user} is in no group, and so has no pool"
    elif member.pool is None:
        detail = f"{user}'s group {member.group} has no pool"
    else:
        detail = f"pool {member.pool} of {user}'s group {member.group} has no queue"
    return WrongState(f"{detail}: ask an operator", field="queue", known=[])


def _too_much(request: Request, asked: str, largest: str) -> str:
    each = f" on each of {request.nodes} nodes" if request.is_gang else ""
    return f"no node that could hold the rest has {asked}{each}: the largest has {largest}"


def _longest(state: State, queue: Queue | None) -> float | None:
    limits = [limit for limit in (queue.max_seconds if queue else None, state.policies.limits.max_seconds) if limit]
    return min(limits, default=None)
