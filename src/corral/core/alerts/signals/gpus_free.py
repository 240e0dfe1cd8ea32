"""`gpus-free`: GPUs of a pool that a job could have now."""

from __future__ import annotations

from corral.core.alerts.facts import PoolFact
from corral.core.alerts.signal import Finding


def read(pool: PoolFact) -> float | None:
    return float(pool.free) if pool.gpus else None


def describe(pool: PoolFact, value: float) -> Finding:
    return Finding(text=f"{value:.0f} of {pool.gpus} GPUs of pool {pool.id} are free")
