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
    queue_length,
    queue_wait,
)

#: every signal by the name that rules use
SIGNALS: dict[str, Signal] = {
    "gpu-temperature": Signal(
        scope=Scope.GPU, words="temperature of a GPU", unit="°C", measure=gpu_temperature.measure, step=2.0
    ),
    "gpu-power": Signal(
        scope=Scope.GPU, words="part of its power limit that a GPU draws", unit="%", measure=gpu_power.measure, step=5.0
    ),
    "gpu-utilization": Signal(
        scope=Scope.GPU, words="how busy a GPU is", unit="%", measure=gpu_utilization.measure, step=5.0
    ),
    "gpu-memory": Signal(
        scope=Scope.GPU, words="how full a GPU's memory is", unit="%", measure=gpu_memory.measure, step=5.0
    ),
    "gpu-errors": Signal(
        scope=Scope.GPU, words="errors that a GPU reported in the last 10 minutes", unit="", measure=gpu_errors.measure
    ),
    "gpu-health": Signal(
        scope=Scope.GPU, words="health of a GPU: 1 is suspect, 2 is failed", unit="", measure=gpu_health.measure
    ),
    "gpu-idle": Signal(
        scope=Scope.GPU, words="minutes without use under a job", unit="min", measure=gpu_idle.measure, step=15.0
    ),
    "node-lost": Signal(scope=Scope.NODE, words="1 while a node is lost", unit="", measure=node_lost.measure),
    "queue-length": Signal(
        scope=Scope.QUEUE, words="jobs that wait in a queue", unit="jobs", measure=queue_length.measure, step=10.0
    ),
    "queue-wait": Signal(
        scope=Scope.QUEUE, words="longest wait in a queue", unit="min", measure=queue_wait.measure, step=30.0
    ),
    "job-failed": Signal(
        scope=Scope.JOB,
        words="1 for a job that failed in the last 10 minutes",
        unit="",
        measure=job_failed.measure,
        gone="it failed a while ago",
    ),
    "gpus-free": Signal(
        scope=Scope.POOL, words="GPUs of a pool that are free", unit="GPUs", measure=gpus_free.measure, step=4.0
    ),
}
