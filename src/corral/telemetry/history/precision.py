"""The precision with which each metric is stored.

A reading is stored as a whole number of small units, because whole numbers compress well and add up without error. The
unit is below the resolution of the devices, so that no information is lost: NVML gives whole percents, degrees and MHz,
and memory changes in pages of 2 MiB. A stored reading is off by half a unit at most, and so is every mean of stored
readings.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from corral.control.ports import Metric

Ints = npt.NDArray[np.int64]

#: Units per 1 of the metric. Powers of two below 1 divide exactly, so that bytes stay whole.
PER_UNIT: Mapping[Metric, float] = {
    Metric.GPU_UTILIZATION: 1000,
    Metric.GPU_MEMORY_USED: 1 / (1 << 20),
    Metric.GPU_TEMPERATURE: 10,
    Metric.GPU_POWER: 10,
    Metric.GPU_ENERGY: 1,
    Metric.GPU_SM_CLOCK: 1,
    Metric.GPU_MEMORY_CLOCK: 1,
    Metric.GPU_THROTTLED: 1,
    Metric.NODE_CPU: 1000,
    Metric.NODE_MEMORY_USED: 1 / (1 << 20),
    Metric.NODE_DISK_USED: 1 / (1 << 20),
    Metric.NODE_NETWORK_RECEIVE: 1 / (1 << 10),
    Metric.NODE_NETWORK_SEND: 1 / (1 << 10),
    Metric.QUEUE_LENGTH: 1,
    Metric.QUEUE_WAIT: 1,
    Metric.CLUSTER_ALLOCATION: 1000,
    Metric.CLUSTER_UTILIZATION: 1000,
    Metric.CLUSTER_POWER: 10,
    Metric.CLUSTER_TEMPERATURE: 10,
    Metric.CLUSTER_GPUS: 1,
    Metric.CLUSTER_GPUS_HELD: 1000,
    Metric.CLUSTER_RUNNING: 1,
    Metric.CLUSTER_QUEUED: 1,
}
#: A reading beyond this is invalid; an hour of readings below it can be summed in 64 bits.
GREATEST = 1 << 48
#: Stands for a missing reading.
MISSING = np.iinfo(np.int64).min


def quantise(values: npt.NDArray[np.float64], per_unit: float) -> Ints:
    """Whole units; MISSING for a value that is not a number."""
    with np.errstate(invalid="ignore", over="ignore"):
        units = np.rint(values * per_unit)
        known = np.abs(units) < GREATEST  # false for NaN and infinity, too
    return np.where(known, units, 0).astype(np.int64) + np.where(known, 0, MISSING)
