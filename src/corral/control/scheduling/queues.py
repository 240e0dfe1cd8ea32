"""Queues, managed by operators and by the configuration file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from corral.control.errors import InUse, Invalid, NotFound, Taken
from corral.control.jobs.admission import check_queue_name
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.scheduling.guarantees import check_promise
from corral.control.scheduling.queue_choice import is_default_of_pool
from corral.core.counts import counted
from corral.core.model import DEFAULT_QUEUE, Blocking, Queue
from corral.core.scheduling.ordering import POLICIES as ORDERINGS
from corral.core.scheduling.placement import POLICIES as PLACEMENTS
from corral.core.snapshot.changes import DropQueue, PutQueue

#: orders in which one job can stand strictly before another that runs already
RANKED = tuple(name for name, policy in ORDERINGS.items() if policy.rank is not None)
#: where the store keeps the settings that the default queue has followed already
FOLLOWED = "default-queue-settings"


def create(work: Work, caller: Caller, queue: Queue) -> Queue:
    _check(work, caller, queue)
    if queue.name in work.state.snapshot.queues:
        raise Taken(f"there is a queue {queue.name!r} already", field="name", name=queue.name)
    return _save(work, caller, queue, "queue.created")


def edit(work: Work, caller: Caller, queue: Queue) -> Queue:
    """Replace a queue's settings. What waits in it is ordered by the new ones from now on."""
    existing(work, queue.name)
    _check(work, caller, queue)
    return _save(work, caller, queue, "queue.edited")


def delete(work: Work, caller: Caller, name: str) -> None:
    delete_many(work, caller, [name])


def delete_many(work: Work, caller: Caller, names: Sequence[str]) -> list[str]:
    """All of them or none: not while a job is in one, and never the default queue of a pool."""
    require_operator(caller, "manage queues")
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        queue = existing(work, name)
        if is_default_of_pool(queue):
            raise InUse(f"queue {name} is the default queue of its pool and cannot be deleted", field="name")
        users = sorted(job.id for job in work.state.snapshot.jobs.values() if job.queue == name)
        if users:
            raise InUse(
                f"queue {name} has {counted(len(users), 'job')}: {', '.join(users[:5])}{' …' * (len(users) > 5)}",
                field="name",
                jobs=users[:20],
            )
    for name in wanted:
        work.tx.fleet.delete_queue(name)
        work.change(DropQueue(name=name))
        work.record(caller, "queue.deleted", name)
    return wanted


def follow_settings(work: Work) -> None:
    """Updates the default queue when the installation's settings have changed.

    Between two changes of the file, an operator's edits stay: the last change counts.
    """
    policies = work.state.policies
    wanted = " ".join((policies.ordering, policies.blocking, policies.placement))
    if work.tx.meta.get(FOLLOWED) == wanted:
        return
    work.tx.meta.put(FOLLOWED, wanted)
    queue = replace(
        existing(work, DEFAULT_QUEUE),
        policy=policies.ordering,
        blocking=Blocking(policies.blocking),
        placement=policies.placement,
    )
    if queue.policy not in RANKED:
        queue = replace(queue, preempts=False)
    if queue != existing(work, DEFAULT_QUEUE):
        _save(work, SYSTEM, queue, "queue.edited")


def existing(work: Work, name: str) -> Queue:
    queue = work.state.snapshot.queues.get(name)
    if queue is None:
        raise NotFound(f"there is no queue {name!r}", field="queue")
    return queue


def _save(work: Work, caller: Caller, queue: Queue, action: str) -> Queue:
    work.tx.fleet.save_queue(queue)
    work.change(PutQueue(queue=queue))
    work.record(caller, action, queue.name)
    return queue


def _check(work: Work, caller: Caller, queue: Queue) -> None:
    require_operator(caller, "manage queues")
    check_queue_name(queue.name)
    for field, value, known in (
        ("policy", queue.policy, ORDERINGS),
        ("placement", queue.placement, PLACEMENTS),
    ):
        if value not in known:
            raise Invalid(
                f"there is no {field} {value!r}; there are: {', '.join(known)}", field=field, known=list(known)
            )
    for field, asked, there in (
        ("pool", [queue.pool], sorted(pool.name for pool in work.tx.fleet.pools())),
        ("groups", list(queue.groups), sorted(group.name for group in work.tx.people.groups()) if queue.groups else []),
    ):
        unknown = [name for name in asked if name not in there]
        if unknown:
            raise Invalid(
                f"there is no {field.removesuffix('s')} {unknown[0]!r}; there are: {', '.join(there)}",
                field=field,
                known=there,
            )
    for setting in fields(queue):
        value = getattr(queue, setting.name)
        if isinstance(value, int | float) and value < 0:
            raise Invalid(f"{setting.name} cannot be negative", field=setting.name, asked=value)
    if not queue.weight > 0:
        raise Invalid("the weight must be above 0", field="weight", asked=queue.weight)
    if queue.max_gpus is not None and queue.guaranteed_gpus > queue.max_gpus:
        raise Invalid(
            f"{counted(queue.guaranteed_gpus, 'GPU')} cannot be guaranteed, because the maximum is {queue.max_gpus}",
            field="guaranteed_gpus",
            asked=queue.guaranteed_gpus,
            limit=queue.max_gpus,
        )
    if queue.preempts and queue.policy not in RANKED:
        raise Invalid(
            f"the order {queue.policy} cannot preempt: under it no job stands strictly before one that runs; "
            f"{', '.join(RANKED)} can",
            field="preempts",
            known=list(RANKED),
        )
    check_promise(work.state.snapshot, queue)
    if queue.min_job_gpus is not None and queue.max_job_gpus is not None and queue.min_job_gpus > queue.max_job_gpus:
        raise Invalid("min_job_gpus is above max_job_gpus", field="min_job_gpus", asked=queue.min_job_gpus)
