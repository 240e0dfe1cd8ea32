"""Usage rows for reports, on whole minutes of one week, so that a test can walk through them minute by minute."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from corral.control.ports import Point
from corral.control.records import UsageRecord
from corral.core.model import EndReason, JobKind, JobState
from corral.core.monitoring.attempt_usage import Measured
from tests.unit.searching import between, pick

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
#: A Monday, midnight.
MONDAY = 1_788_739_200.0


def row(
    number: int,
    begin: float,
    end: float | None,
    *,
    gpus: float = 1,
    waited: float = 0.0,
    use: float | None = 0.5,
    watts: float = 300.0,
    outcome: JobState | None = JobState.COMPLETED,
    reason: EndReason | None = EndReason.EXIT_CODE,
    now: float = MONDAY + 8 * DAY,
    **values: Any,
) -> UsageRecord:
    """An attempt from `begin` to `end`, in minutes after Monday."""
    planned = MONDAY + begin * MINUTE
    ended = None if end is None else MONDAY + end * MINUTE
    held = ((now if ended is None else ended) - planned) * gpus
    idle = 1.0 if use == 0 else 0.1
    measured = Measured(
        gpu_seconds=held * 0.9,
        busy_gpu_seconds=held * 0.9 * (use or 0.0),
        idle_gpu_seconds=held * 0.9 * idle,
        energy_joules=held * watts,
        memory_peak_bytes=1 << 33,
    )
    fields: dict[str, Any] = {
        "attempt_id": f"j-{number}.1",
        "job_id": f"j-{number}",
        "job_name": f"train-{number}",
        "user": "ann",
        "group": "vision",
        "kind": JobKind.TRAINING,
        "queue": "default",
        "pool": "default",
        "model": "A100" if gpus else "",
        "nodes": 1,
        "gpu_milli": round(gpus * 1000),
        "queued_at": planned - waited,
        "planned_at": planned,
        "started_at": planned + 1,
        "ended_at": ended,
        "end_reason": reason if ended is not None else None,
        "outcome": outcome if ended is not None else None,
        **({"measured": measured} if use is not None and held else {}),
    }
    return UsageRecord(**{**fields, **values})


def gpu_counts(gpus: float, since: float, until: float) -> list[Point]:
    hours = range(int((until - since) // HOUR))
    return [Point(at=since + hour * HOUR, mean=gpus, least=gpus, most=gpus, count=720) for hour in hours]


@st.composite
def rows(draw: st.DrawFn) -> list[UsageRecord]:
    """Attempts anywhere in nine days around the week, some still running."""
    made = []
    for number in range(draw(between(0, 12))):
        begin = draw(between(-1440, 8 * 1440 - 1))
        length = draw(between(0, 3000))
        end = begin + length if begin + length < 8 * 1440 else None
        made.append(
            row(
                number + 1,
                begin,
                end,
                gpus=draw(pick(0, 0.5, 1, 4)),
                waited=draw(between(0, 100_000)),
                use=draw(pick(None, 0.0, 0.3, 1.0)),
                outcome=draw(pick(JobState.COMPLETED, JobState.FAILED, JobState.STOPPED, JobState.QUEUED)),
                user=draw(pick("ann", "bob", "cho")),
                group=draw(pick("vision", "speech", None)),
                queue=draw(pick("default", "night")),
            )
        )
    return made
