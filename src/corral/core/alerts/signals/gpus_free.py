"""`gpus-free`: GPUs of a pool that a job could have now."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value


def measure(facts: Facts) -> dict[str, Value]:
    return {
        pool.name: Value(value=float(pool.free), text=f"{pool.free} of {pool.gpus} GPUs of pool {pool.name} are free")
        for pool in facts.pools
        if pool.gpus
    }
