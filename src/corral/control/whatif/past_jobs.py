"""The jobs of a window of time, as a replay needs them: out of the table of usage, whose rows outlive their jobs, and
of the jobs themselves, as far as they are still there.

A job that its owner started again counts as several. Jobs that held GPUs or waited when the window
began are included but not measured, so that the cluster is as full as it was. The run time of jobs that have not ended
is predicted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from corral.control.records import UsageRecord
from corral.core.model import WHOLE, Job, JobKind, Request
from corral.core.whatif.past_jobs import PastJob

#: More would take too long, and too much memory.
MOST_JOBS = 50_000

NO_QUEUE = "its queue is gone"
NEVER_UP = "it never came up"
UNKNOWN_RUN_TIME = "it waits, and nothing is known of how long jobs like it run"


class TooManyJobs(Exception):
    """The window has more jobs than can be replayed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    since: float
    until: float
    #: as of when the history was read
    now: float
    #: that there are now
    queues: Container[str]


@dataclass(slots=True)
class Past:
    """Gathers attempts page by page, in the order of their planning."""

    window: Window
    left_out: Counter[str] = field(default_factory=Counter)
    _attempts: dict[str, list[UsageRecord]] = field(default_factory=lambda: defaultdict(list))

    def add(self, attempts: Iterable[UsageRecord]) -> None:
        """Raises TooManyJobs."""
        for attempt in attempts:
            self._attempts[attempt.job_id].append(attempt)
        if len(self._attempts) > MOST_JOBS:
            raise TooManyJobs(f"more than {MOST_JOBS:,} jobs ran in that time: choose a shorter one")

    @property
    def job_ids(self) -> list[str]:
        return list(self._attempts)

    def jobs(self, known: Mapping[str, Job], waiting: Iterable[Job]) -> list[PastJob]:
        """All of them in the order of their arrival, numbered anew. `known` are jobs that are still there, `waiting`
        those that wait now."""
        found: list[tuple[int, PastJob]] = []
        for job_id, attempts in self._attempts.items():
            for run in _runs(attempts):
                past = self._ran(run, known.get(job_id))
                if past is not None:
                    found.append((past.job.serial, past))
        for job in waiting:
            past = None if job.id in self._attempts else self._waits(job)
            if past is not None:
                found.append((job.serial, past))
        found.sort(key=lambda item: (item[1].job.created_at, item[0]))
        return [
            replace(past, job=replace(past.job, id=f"j-{number}")) for number, (_, past) in enumerate(found, start=1)
        ]

    def _ran(self, run: list[UsageRecord], job: Job | None) -> PastJob | None:
        first, window = run[0], self.window
        if first.queue not in window.queues:
            self.left_out[NO_QUEUE] += 1
            return None
        is_over = run[-1].outcome is not None and (run[-1].outcome.is_ended or job is None or not job.state.is_active)
        if is_over and not any(attempt.started_at for attempt in run):
            self.left_out[NEVER_UP] += 1
            return None
        replayed = _from_job(job, first) if job is not None else _from_usage(first)
        is_measured = first.queued_at >= window.since
        if is_measured:
            arrives_at = first.queued_at
        else:
            # It held something already: from then on, so that it holds it when the window begins. Or it waited.
            arrives_at = first.planned_at if first.planned_at <= window.since else window.since
        ran = self._run_seconds(run, replayed)
        measured = [attempt.measured for attempt in run]
        gpu_seconds = sum(part.gpu_seconds for part in measured)
        return PastJob(
            job=replace(replayed, created_at=arrives_at),
            run_seconds=ran if is_over else _expected(job, ran),
            group=first.group or "",
            is_measured=is_measured,
            is_estimated=not is_over,
            waited_seconds=first.wait_seconds if is_measured else None,
            busy=min(1.0, sum(part.busy_gpu_seconds for part in measured) / gpu_seconds) if gpu_seconds else None,
        )

    def _run_seconds(self, run: list[UsageRecord], job: Job) -> float:
        """The run time of all attempts; an elastic job counts as if it always had its minimum."""
        total = 0.0
        for attempt in run:
            if attempt.started_at is None:
                continue
            ended_at = self.window.now if attempt.ended_at is None else attempt.ended_at
            seconds = max(0.0, ended_at - attempt.started_at)
            least = None if job.elastic is None else job.elastic.min_gpus * job.request.nodes * WHOLE
            total += seconds if least is None else seconds * attempt.gpu_milli / least
        return total

    def _waits(self, job: Job) -> PastJob | None:
        """The past of a waiting job that has never run; None if it is left out."""
        queued_at = job.created_at if job.queued_at is None else job.queued_at
        if queued_at >= self.window.until:
            return None
        if job.queue not in self.window.queues:
            self.left_out[NO_QUEUE] += 1
            return None
        run_seconds = _predicted(job)
        if run_seconds is None:
            self.left_out[UNKNOWN_RUN_TIME] += 1
            return None
        is_measured = queued_at >= self.window.since
        return PastJob(
            job=replace(_asked(job), created_at=max(queued_at, self.window.since)),
            run_seconds=run_seconds,
            is_measured=is_measured,
            is_estimated=True,
        )


def _runs(attempts: list[UsageRecord]) -> Iterator[list[UsageRecord]]:
    """The attempts of each submission until its end, with retries, resizes and preemptions."""
    run: list[UsageRecord] = []
    for attempt in attempts:
        run.append(attempt)
        if attempt.outcome is not None and attempt.outcome.is_ended:
            yield run
            run = []
    if run:
        yield run


def _from_job(job: Job, attempt: UsageRecord) -> Job:
    return replace(_asked(job), queue=attempt.queue)


def _asked(job: Job) -> Job:
    """The job as its owner submitted it, without later changes."""
    request = job.request
    if job.elastic is not None:
        request = replace(request, gpus=job.elastic.min_gpus)
    return Job(
        id=job.id,
        name=job.name,
        user=job.user,
        kind=job.kind,
        queue=job.queue,
        request=request,
        priority=job.priority,
        time_limit_seconds=job.time_limit_seconds,
        grace_seconds=job.grace_seconds,
        elastic=job.elastic,
        restart_unsaved=job.restart_unsaved,
        preemptible=job.preemptible,
    )


def _from_usage(attempt: UsageRecord) -> Job:
    """The request of a deleted job, estimated from what its attempt held."""
    each = attempt.gpu_milli // max(1, attempt.nodes)
    return Job(
        id=attempt.job_id,
        name=attempt.job_name,
        user=attempt.user,
        kind=attempt.kind,
        queue=attempt.queue,
        request=Request(
            nodes=attempt.nodes,
            gpus=each // WHOLE,
            gpu_milli=each if each < WHOLE else 0,
            models=(attempt.model,) if attempt.model else (),
        ),
        preemptible=attempt.kind is not JobKind.WORKBENCH,
    )


def _expected(job: Job | None, so_far: float) -> float:
    """The expected run time of a running job. If nothing is known, the job is assumed to be half done."""
    known = None if job is None else _predicted(job)
    return 2 * so_far if known is None else max(so_far, known)


def _predicted(job: Job) -> float | None:
    return job.time_limit_seconds if job.predicted is None else job.predicted.p50_seconds
