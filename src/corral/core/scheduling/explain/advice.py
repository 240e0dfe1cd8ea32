"""Proposals: what the owner of a waiting job could change so that it starts sooner. None of them is tried here.

Each proposal is the smallest change of its kind for which there is room now, the least restrictive first; if no change
of a kind has room, the one with which the job could start sooner than its planned start. Whether it helps is decided by
running the scheduler: limits, the order of the line and held resources are not considered here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from corral.core.counts import counted
from corral.core.model import Elastic, Job, JobKind, JobState, Queue, Request
from corral.core.quantities import format_duration
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.scheduling.plan.plan import Plan
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: A shorter time limit is proposed only if it is at least this long, and at least this part of the present one.
LEAST_SECONDS = 300.0
LEAST_PART = 0.25
#: The least time between the end of a backfilled job and the planned start of another one.
SPARE_SECONDS = 60.0
#: The most proposals of one kind.
_MOST_ALIKE = 2


class Operation(StrEnum):
    EDIT = "edit"
    START = "start"


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    title: str
    detail: str
    operation: Operation = Operation.EDIT
    #: the fields as in a job submission
    change: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """The options of the job's user."""

    queues: Sequence[Queue] = ()
    #: by package that suits the kind of the job: its request
    packages: Mapping[str, Request] = field(default_factory=dict)
    #: the bounds of elastic jobs; None if they are not allowed
    elastic: Elastic | None = None


def proposals(snapshot: ClusterSnapshot, plan: Plan, job: Job, now: float, choices: Choices) -> list[Proposal]:
    """The proposals for a waiting job, or one that was never started; `plan` is the present plan, in which the job
    waits.
    """
    if job.state is JobState.CREATED:
        held = "It is held until it is started."
        return [Proposal(title="Start it", detail=held, operation=Operation.START, change={})]
    if job.state is not JobState.QUEUED or job.after or job.not_before > now:
        return []
    queue = snapshot.queues.get(job.queue)
    if queue is None:
        return []
    found = [*_other_queues(snapshot, job, choices.queues, now)]
    if not job.attempt:
        room, space = _room_in(snapshot, queue, now), _space_in(snapshot, queue)
        found += [*_other_models(snapshot, job, queue, room, space)]
        found += [*_other_packages(job, choices.packages, room), *_shorter(plan, job, now)]
        found += [*_elastic(job, choices.elastic, room), *_smaller(job, room, space)]
    else:
        # After the first attempt the size is fixed: checkpoints may depend on it.
        found += _shorter(plan, job, now)
    return found


#: Whether there is room for such a job now.
_Room = Callable[[Job], bool]


def _room_in(snapshot: ClusterSnapshot, queue: Queue, now: float) -> _Room:
    reserved = Reserved(snapshot, now)
    return lambda job: find_open_place(reserved, snapshot.fleet, job, queue, end_if_started(job, now)) is not None


def _space_in(snapshot: ClusterSnapshot, queue: Queue) -> _Room:
    """Whether there would be room if all resources were free."""
    return lambda job: could_ever_fit(snapshot.fleet, job, queue.pool)


def _other_queues(snapshot: ClusterSnapshot, job: Job, queues: Sequence[Queue], now: float) -> Iterator[Proposal]:
    """Queues with room first, then those with fewer waiting jobs."""
    others = [queue for queue in queues if queue.name != job.queue and (not queue.kinds or job.kind in queue.kinds)]
    ranked = sorted(others, key=lambda queue: (not _room_in(snapshot, queue, now)(job), snapshot.queued_in(queue.name)))
    for queue in ranked[:_MOST_ALIKE]:
        waiting = snapshot.queued_in(queue.name)
        yield Proposal(
            title=f"Move it to queue {queue.name}",
            detail=f"Queue {queue.name} takes such jobs, and {waiting or 'none'} wait there.",
            change={"queue": queue.name},
        )


def _other_models(snapshot: ClusterSnapshot, job: Job, queue: Queue, room: _Room, space: _Room) -> Iterator[Proposal]:
    models = job.request.models
    if not models or not job.request.wants_gpu:
        return
    there = {gpu.model for node in snapshot.nodes.values() for gpu in node.gpus if gpu.pool == queue.pool}
    asked = " or ".join(models)
    others = sorted(there - set(models))
    now = next((model for model in others if room(_with(job, models=(model,)))), None)
    if now is not None:
        yield Proposal(
            title=f"Take {now} GPUs as well",
            detail=f"It asks for {asked} only, and there is room on {now} GPUs.",
            change={"model": sorted({*models, now})},
        )
        return
    later = [model for model in others if space(_with(job, models=(model,)))]
    if later:
        yield Proposal(
            title=f"Take {' or '.join(later)} GPUs as well",
            detail=f"It asks for {asked} only, and others come back sooner.",
            change={"model": sorted({*models, *later})},
        )


def _other_packages(job: Job, packages: Mapping[str, Request], room: _Room) -> Iterator[Proposal]:
    """Packages with as many GPUs of another kind."""
    asked = job.request
    alike = 0
    for name, request in packages.items():
        differs = (request.models, request.labels) != (asked.models, asked.labels)
        same_size = (request.gpus, request.gpu_milli) == (asked.gpus, asked.gpu_milli)
        if differs and same_size and room(replace(job, request=replace(request, nodes=asked.nodes))):
            alike += 1
            yield Proposal(
                title=f"Take package {name}",
                detail=f"Package {name} has as many GPUs, and there is room for it.",
                change={"package": name},
            )
        if alike == _MOST_ALIKE:
            return


def _shorter(plan: Plan, job: Job, now: float) -> Iterator[Proposal]:
    """A shorter time limit, so that the job ends before a planned start, if enough time is left to be of use."""
    limit = job.time_limit_seconds
    if job.kind is JobKind.WORKBENCH or limit is None:
        return
    found = 0
    for at in sorted({planned.at for planned in plan.planned if planned.job_id != job.id}, reverse=True):
        if not math.isfinite(at):
            continue
        seconds = (at - now - job.grace_seconds - SPARE_SECONDS) // 60 * 60
        if max(LEAST_SECONDS, limit * LEAST_PART) <= seconds < limit:
            found += 1
            yield Proposal(
                title=f"Ask for {format_duration(seconds)} instead of {format_duration(limit)}",
                detail="It could run on what is kept for another job, and must be done before that one starts.",
                change={"time": seconds},
            )
        if found == _MOST_ALIKE:
            return


def _elastic(job: Job, bounds: Elastic | None, room: _Room) -> Iterator[Proposal]:
    """Start with the free GPUs, and grow later."""
    if bounds is None or job.kind not in (JobKind.TRAINING, JobKind.PRESET) or job.request.is_gang:
        return
    most = min(job.elastic.max_gpus if job.elastic is not None else job.request.gpus, bounds.max_gpus)
    least = next((gpus for gpus in _halves(job.request.gpus) if room(_with(job, gpus=gpus))), None)
    if least is not None and bounds.min_gpus <= least < most:
        yield Proposal(
            title=f"Begin with {_gpus(least)} and grow to {most}",
            detail="As an elastic job it begins with what is free. Its program must go on with any number of GPUs.",
            change={"min_gpus": least, "max_gpus": most},
        )


def _smaller(job: Job, room: _Room, space: _Room) -> Iterator[Proposal]:
    """The largest half, quarter, … for which there is room; otherwise the half, because fewer GPUs are free sooner."""
    request = job.request
    if job.elastic is not None:
        return
    fitting = [gpus for gpus in _halves(request.gpus) if room(_with(job, gpus=gpus))]
    each = " on each node" if request.is_gang else ""
    for gpus in fitting[:_MOST_ALIKE]:
        yield Proposal(
            title=f"Ask for {_gpus(gpus)}{each} instead of {request.gpus}",
            detail=f"There is room for {_gpus(gpus)}{each}.",
            change={"gpus": gpus},
        )
    half = next((gpus for gpus in _halves(request.gpus) if space(_with(job, gpus=gpus))), None)
    if not fitting and half is not None:
        yield Proposal(
            title=f"Ask for {_gpus(half)}{each} instead of {request.gpus}",
            detail=f"So many come back sooner than {request.gpus}.",
            change={"gpus": half},
        )
    nodes = next((half for half in _halves(request.nodes) if half > 1 and room(_with(job, nodes=half))), None)
    if nodes is not None:
        yield Proposal(
            title=f"Ask for {counted(nodes, 'node')} instead of {request.nodes}",
            detail=f"There is room on {counted(nodes, 'node')} with {_gpus(request.gpus)} each.",
            change={"nodes": nodes},
        )
        return
    fewer = next((half for half in _halves(request.nodes) if half > 1 and space(_with(job, nodes=half))), None)
    if fewer is not None:
        yield Proposal(
            title=f"Ask for {counted(fewer, 'node')} instead of {request.nodes}",
            detail=f"So many come back sooner than {request.nodes}.",
            change={"nodes": fewer},
        )


def _halves(number: int) -> list[int]:
    """Half of it, a quarter and so on, down to 1."""
    found = []
    while number > 1:
        number //= 2
        found.append(number)
    return found


def _with(job: Job, **values: Any) -> Job:
    return replace(job, request=replace(job.request, **values))


def _gpus(number: int) -> str:
    return counted(number, "GPU")
