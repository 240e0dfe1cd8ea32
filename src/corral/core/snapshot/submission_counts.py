"""Counts submitted and ended requests by pool, for the mixes in the snapshot. Used by the server and the simulator."""

from __future__ import annotations

from corral.core.model import DEFAULT_POOL, Job
from corral.core.snapshot.changes import PutMix
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.request_mix import Mix, MixCounter


def count_submitted(snapshot: ClusterSnapshot, counters: dict[str, MixCounter], job: Job) -> PutMix | None:
    """Count a submitted job. Returns the change of the snapshot, if a new mix is due."""
    pool, counter = _counter(snapshot, counters, job)
    mix = counter.count(job.request)
    return None if mix is None else PutMix(pool=pool, mix=mix)


def count_ended(snapshot: ClusterSnapshot, counters: dict[str, MixCounter], job: Job) -> None:
    """Count a job that held resources and has ended; `job` is as it was before."""
    _, counter = _counter(snapshot, counters, job)
    counter.count_ended(job.request)


def _counter(snapshot: ClusterSnapshot, counters: dict[str, MixCounter], job: Job) -> tuple[str, MixCounter]:
    queue = snapshot.queues.get(job.queue)
    pool = queue.pool if queue else DEFAULT_POOL
    counter = counters.get(pool)
    if counter is None:
        counter = counters[pool] = MixCounter(snapshot.mixes.get(pool, Mix()))
    return pool, counter
