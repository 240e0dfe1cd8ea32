"""Run times that are known when a server starts: the latest completed runs in the store."""

from __future__ import annotations

from corral.control.ports import Transaction
from corral.control.records import UsageRecord
from corral.core.scheduling.forecast.run_time_model import Features, RunTimes

#: Enough to fill what is kept of some hundred names, and read in a moment.
READ_RUNS = 5000


def run_times_known(tx: Transaction) -> RunTimes:
    """Learned from the table of usage, whose rows outlive their jobs.

    A row describes one attempt. What a job ran before it was resized or preempted is not in it, so only jobs that
    completed in their first attempt teach here; while a server runs, all that complete do.
    """
    run_times = RunTimes()
    for features, seconds in runs_known(tx):
        run_times.observe(features, seconds)
    return run_times


def runs_known(tx: Transaction, before: float | None = None) -> list[tuple[Features, float]]:
    """The runs that teach, the latest last; those that had ended before a time."""
    return [
        (_features(record), max(0.0, record.ended_at - record.started_at))
        for record in tx.usage.completed(READ_RUNS, before)
        if record.attempt_id.endswith(".1") and record.started_at is not None and record.ended_at is not None
    ]


def _features(record: UsageRecord) -> Features:
    return Features(
        user=record.user,
        name=record.job_name,
        kind=record.kind,
        nodes=record.nodes,
        gpu_milli=record.gpu_milli,
        model=record.model or None,
    )
