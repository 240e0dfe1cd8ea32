"""`gpus-free`: GPUs of a pool that a job could have now."""

from __future__ import annotations

from corral.core.alerts.facts import PoolFact
from corral.core.alerts.signal import Finding
from corral.core.counts import counted, noun_for


def read(pool: PoolFact) -> float | None:
    return float(pool.free) if pool.gpus else None


def describe(pool: PoolFact, value: float) -> Finding:
    free = round(value)
    return Finding(text=f"{free} of {counted(pool.gpus, 'GPU')} of pool {pool.id} {noun_for(free, 'is', 'are')} free")
