"""The results of simulated runs as CSV (RFC 4180): every job, the utilisation over time, and the figures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from corral.core.model import WHOLE
from corral.reporting.csv import harmless
from corral.simulator.outcome import Outcome, Ran
from corral.simulator.summary import Summary, flat

JOB_COLUMNS = (
    "job",
    "name",
    "user",
    "nodes",
    "gpus",
    "submitted_seconds",
    "started_seconds",
    "ended_seconds",
    "wait_seconds",
    "completion_seconds",
    "slowdown",
    "cut",
    "preemptions",
    "lost_gpu_seconds",
)
UTILIZATION_COLUMNS = ("begin_seconds", "gpus_used", "utilization", "jobs_waiting")


class JobTable:
    """One line per job, written when the job is over; times are counted from the first arrival."""

    def __init__(self, file: TextIO, since: float) -> None:
        self._writer = csv.writer(file)
        self._since = since
        self._writer.writerow(JOB_COLUMNS)

    def add(self, ran: Ran) -> None:
        job = ran.job
        self._writer.writerow(
            (
                job.id,
                harmless(job.name),
                harmless(job.user),
                job.request.nodes,
                f"{job.request.total_gpu_milli / WHOLE:g}",
                *(repr(at - self._since) for at in (ran.queued_at, ran.started_at, ran.ended_at)),
                repr(ran.wait_seconds),
                repr(ran.completion_seconds),
                repr(ran.slowdown),
                "yes" if ran.is_cut else "no",
                ran.preemptions,
                repr(ran.lost_gpu_seconds),
            )
        )


def write_utilization(file: TextIO, outcome: Outcome) -> None:
    writer = csv.writer(file)
    writer.writerow(UTILIZATION_COLUMNS)
    waiting = dict(outcome.waiting_jobs())
    for at, used in outcome.used_gpus():
        part = used / outcome.gpus if outcome.gpus else 0.0
        writer.writerow((repr(at), repr(used), repr(part), repr(waiting.get(at, 0.0))))


def write_summaries(file: TextIO, runs: Sequence[tuple[str, Summary]]) -> None:
    lines = [{"run": name, **flat(found)} for name, found in runs]
    writer = csv.DictWriter(file, fieldnames=list(lines[0]) if lines else ["run"])
    writer.writeheader()
    writer.writerows(lines)
