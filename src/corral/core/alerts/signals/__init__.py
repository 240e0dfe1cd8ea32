"""Signals: what alert rules can watch. One file per signal, one line in the registry."""

from __future__ import annotations

from corral.core.alerts.facts import Scope
from corral.core.alerts.signal import Signal
from corral.core.alerts.signals import (
    gpu_errors,
    gpu_health,
    gpu_idle,
    gpu_memory,
    gpu_power,
    gpu_temperature,
    gpu_utilization,
    gpus_free,
    job_failed,
    node_lost,
    plan_failed,
    queue_length,
    queue_wait,
    row_unreadable,
    volume_full,
)

#: every signal by the name that rules use
SIGNALS: dict[str, Signal] = {
    "gpu-temperature": Signal(
        scope=Scope.GPU,
        words="temperature of a GPU",
        unit="°C",
        read=gpu_temperature.read,
        describe=gpu_temperature.describe,
        step=2.0,
    ),
    "gpu-power": Signal(
        scope=Scope.GPU,
        words="part of its power limit that a GPU draws",
        unit="%",
        read=gpu_power.read,
        describe=gpu_power.describe,
        step=5.0,
    ),
    "gpu-utilization": Signal(
        scope=Scope.GPU,
        words="how busy a GPU is",
        unit="%",
        read=gpu_utilization.read,
        describe=gpu_utilization.describe,
        step=5.0,
    ),
    "gpu-memory": Signal(
        scope=Scope.GPU,
        words="how full a GPU's memory is",
        unit="%",
        read=gpu_memory.read,
        describe=gpu_memory.describe,
        step=5.0,
    ),
    "gpu-errors": Signal(
        scope=Scope.GPU,
        words="errors that a GPU reported in the last 10 minutes",
        unit="",
        read=gpu_errors.read,
        describe=gpu_errors.describe,
    ),
    "gpu-health": Signal(
        scope=Scope.GPU,
        words="health of a GPU: 1 is suspect, 2 is failed",
        unit="",
        read=gpu_health.read,
        describe=gpu_health.describe,
    ),
    "gpu-idle": Signal(
        scope=Scope.GPU,
        words="minutes without use under a job",
        unit="min",
        read=gpu_idle.read,
        describe=gpu_idle.describe,
        step=15.0,
    ),
    "node-lost": Signal(
        scope=Scope.NODE, words="1 while a node is lost", unit="", read=node_lost.read, describe=node_lost.describe
    ),
    "plan-failed": Signal(
        scope=Scope.QUEUE,
        words="1 while planning a queue fails",
        unit="",
        read=plan_failed.read,
        describe=plan_failed.describe,
    ),
    "queue-length": Signal(
        scope=Scope.QUEUE,
        words="jobs that wait in a queue",
        unit="jobs",
        read=queue_length.read,
        describe=queue_length.describe,
        step=10.0,
    ),
    "queue-wait": Signal(
        scope=Scope.QUEUE,
        words="longest wait in a queue",
        unit="min",
        read=queue_wait.read,
        describe=queue_wait.describe,
        step=30.0,
    ),
    "job-failed": Signal(
        scope=Scope.JOB,
        words="1 for a job that failed in the last 10 minutes",
        unit="",
        read=job_failed.read,
        describe=job_failed.describe,
        gone="it failed a while ago",
    ),
    "gpus-free": Signal(
        scope=Scope.POOL,
        words="GPUs of a pool that are free",
        unit="GPUs",
        read=gpus_free.read,
        describe=gpus_free.describe,
        step=4.0,
    ),
    "row-unreadable": Signal(
        scope=Scope.STORE,
        words="1 for a row of the store that is damaged",
        unit="",
        read=row_unreadable.read,
        describe=row_unreadable.describe,
        gone="the row can be read, or is gone",
    ),
    "volume-full": Signal(
        scope=Scope.VOLUME,
        words="how full a volume is",
        unit="%",
        read=volume_full.read,
        describe=volume_full.describe,
        step=5.0,
        gone="the volume is gone",
    ),
}
