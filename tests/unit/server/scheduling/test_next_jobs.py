"""The jobs that are next, out of all lines: by the likely start, then by the place in their line."""

from __future__ import annotations

from corral.server.schemas.scheduling.estimates import EstimatedStartView
from corral.server.schemas.scheduling.queues import OrderedJobView, next_jobs


def at(hour: int) -> str:
    return f"2026-11-19T{hour:02}:00:00.000Z"


def place(job: str, position: int, planned: int | None = None, estimated: int | None = None) -> OrderedJobView:
    estimate = None
    if estimated is not None:
        estimate = EstimatedStartView.model_construct(p50=at(estimated), p90=at(23))
    return OrderedJobView.model_construct(
        id=job,
        position=position,
        planned_start=None if planned is None else at(planned),
        estimated_start=estimate,
    )


def test_the_likely_start_decides_then_the_place() -> None:
    jobs = [
        place("unknown-second", 2),
        place("unknown-first", 1),
        place("planned-late", 1, planned=9),
        place("estimated", 3, estimated=7),
        # A planned start is a bound: the job starts then at the latest.
        place("bounded", 2, planned=5, estimated=8),
        place("sooner-than-planned", 4, planned=8, estimated=6),
    ]
    order = ["bounded", "sooner-than-planned", "estimated", "planned-late", "unknown-first", "unknown-second"]
    assert [job.id for job in next_jobs(jobs, 6)] == order
    assert [job.id for job in next_jobs(jobs, 2)] == order[:2]
