"""Counting what is submitted, pool by pool, for the mixes in the picture. The server and the simulator do it alike."""

from __future__ import annotations

from corral.core.model import DEFAULT_POOL, Job
from corral.core.snapshot.changes import PutMix
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.request_mix import Mix, MixCounter


def count_submitted(snapshot: ClusterSnapshot, counters: dict[str, MixCounter], job: Job) -> PutMix | None:
    """A job was submitted. The change to the picture, if it is time for one."""
    queue = snapshot.queues.get(job.queue)
    pool = queue.pool if queue else DEFAULT_POOL
    counter = counters.get(pool)
    if counter is None:
        counter = counters[pool] = MixCounter(snapshot.mixes.get(pool, Mix()))
    mix = counter.count(job.request)
    return None if mix is None else PutMix(pool=pool, mix=mix)
