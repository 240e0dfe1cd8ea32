"""A month of a busy cluster: 12 users, 44 GPUs of two models, some 1,300 jobs. The same every time."""

from __future__ import annotations

import math
import random

from corral.control.ports import Store
from corral.control.records import UsageRecord
from corral.core.alerts.model import Alert, AlertState, Severity
from corral.core.model import EndReason, JobKind, JobState
from corral.core.monitoring.attempt_usage import Measured

HOUR, DAY = 3600.0, 86400.0
DAYS = 30
USERS = (
    ("maria.keller", "vision", 9.0),
    ("li.wei", "speech", 7.0),
    ("张伟", "speech", 6.0),
    ("tom", "vision", 5.0),
    ("ana_sofia", "robotics", 4.0),
    ("j.smith", "robotics", 3.0),
    ("olga", "language", 3.0),
    ("raj", "language", 2.0),
    ("chen.yu", "language", 2.0),
    ("pierre", "vision", 1.0),
    ("noor", None, 1.0),
    ("sam", "vision", 0.5),
)
WATTS = {"A10": (60.0, 90.0), "A100-80G": (60.0, 300.0)}
QUEUE_OF = {"A10": "default", "A100-80G": "a100"}
ENDS = (
    (82, JobState.COMPLETED, EndReason.EXIT_CODE),
    (5, JobState.FAILED, EndReason.EXIT_CODE),
    (3, JobState.FAILED, EndReason.OOM_KILLED),
    (7, JobState.STOPPED, EndReason.STOPPED_BY_USER),
    (2, JobState.QUEUED, EndReason.GPU_FAILED),
    (1, JobState.QUEUED, EndReason.NODE_LOST),
)


def month(until: float, seed: int = 4) -> list[UsageRecord]:
    """Attempts of two months, the last of which ends at `until`."""
    chance = random.Random(seed)
    at, rows = until - 2 * DAYS * DAY, list[UsageRecord]()
    while True:
        at += chance.expovariate(_jobs_per_hour(at) / HOUR)
        if at >= until:
            return rows
        rows.append(_attempt(len(rows) + 1, at, until, chance))


def _jobs_per_hour(at: float) -> float:
    is_day, is_weekend = 8 <= at % DAY / HOUR < 19, (at // DAY + 3) % 7 >= 5
    return (3.4 if is_day else 1.2) * (0.35 if is_weekend else 1.0)


def _attempt(number: int, queued: float, until: float, chance: random.Random) -> UsageRecord:
    user, group, _ = chance.choices(USERS, [weight for _, _, weight in USERS])[0]
    model = chance.choices(("A10", "A100-80G"), (6, 4))[0]
    gpus = chance.choices((1, 2, 4, 8), (6, 3, 2, 1))[0]
    planned = queued + chance.lognormvariate(math.log(40 if model == "A10" else 600), 1.7)
    ended = planned + min(60 * HOUR, chance.lognormvariate(math.log(2.2 * HOUR), 1.1))
    _, outcome, reason = chance.choices(ENDS, [weight for weight, _, _ in ENDS])[0]
    use = chance.betavariate(5, 2) if chance.random() > 0.15 else chance.betavariate(1, 30)
    held = (min(ended, until) - planned) * gpus * 0.985
    floor, more = WATTS[model]
    return UsageRecord(
        attempt_id=f"j-{number}.1",
        job_id=f"j-{number}",
        job_name=f"train-{number}",
        user=user,
        group=group,
        kind=JobKind.TRAINING,
        queue=QUEUE_OF[model],
        pool="default",
        model=model,
        nodes=1,
        gpu_milli=gpus * 1000,
        queued_at=queued,
        planned_at=planned,
        started_at=planned + 2,
        ended_at=ended if ended < until else None,
        end_reason=reason if ended < until else None,
        outcome=outcome if ended < until else None,
        measured=Measured(
            gpu_seconds=max(0.0, held),
            busy_gpu_seconds=max(0.0, held * use),
            idle_gpu_seconds=max(0.0, held * (0.85 if use < 0.08 else 0.03)),
            energy_joules=max(0.0, held * (floor + use * more)),
            memory_peak_bytes=1 << 34,
        ),
    )


def fill(store: Store, rows: list[UsageRecord], until: float) -> None:
    """Put the month into a store that no server has yet, with a few alerts."""
    fired = [
        Alert(
            rule=("gpu-temperature", "gpu-idle")[number % 2],
            subject=f"gpu-{number}",
            scope="gpu",
            severity=Severity.WARNING,
            state=AlertState.RESOLVED,
            pending_since=until - number * DAY - 60,
            fired_at=until - number * DAY,
            resolved_at=until - number * DAY + 600,
        )
        for number in range(1, 8)
    ]
    with store.write() as tx:
        tx.usage.save(rows)
        tx.usage.save_measured({row.attempt_id: row.measured for row in rows})
        tx.alerts.add(fired)
