"""Time travel: rebuilds a past snapshot from the journal, to explain why a job waited then.

The journal has an entry for every cycle that decided something, with the changes since the entry before. Of a moment
between two entries the first is known, and of the changes that came after it those that bear a time: they happened in
order, so that everything before one that is early enough had happened too.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.control.errors import Invalid, NotFound
from corral.control.live.journal import JournalBroken
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.control.records import CycleRecord
from corral.core.model import Job
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import NAMED, Explanation, explain
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutLastNode, PutMix, PutScore
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import Digest, condensed, decode_changes, seen_at, times_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Tail:
    """The changes since the last entry, which no entry contains yet."""

    #: None while the next entry will be a whole snapshot
    changes: tuple[Change, ...] | None
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PastSnapshot:
    snapshot: ClusterSnapshot
    cycle: CycleRecord
    #: up to when everything that happened is surely in it
    known_until: float
    #: changes of which it is not known whether they happened before the moment or after it; they are not in it
    uncertain: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PastAnswer:
    explanation: Explanation
    #: as it was then
    job: Job
    #: other jobs that the explanation mentions, as they were
    mentioned: Mapping[str, Job]
    cycle_id: int
    cycle_at: float
    known_until: float
    uncertain: int


def tail_of(state: State) -> Tail:
    changes = None if state.unjournaled is None else tuple(state.unjournaled)
    return Tail(changes=changes, digest=state.digest_text())


def read_run(tx: Transaction, at: float, now: float) -> list[CycleRecord]:
    """The entries that lead to a moment, and the next one. Raises Invalid or NotFound."""
    if at > now:
        raise Invalid("that moment is in the future: leave out `at` for now", field="at")
    run = tx.cycles.run_until(at)
    if not run:
        begins = tx.cycles.first_base_at()
        if begins is None:
            raise NotFound("the journal is empty: nothing was started yet", field="at")
        raise NotFound(f"the journal begins at {clock(begins)}", field="at", journal_begins=clock(begins))
    return run


def snapshot_at(run: Sequence[CycleRecord], at: float, tail: Tail) -> PastSnapshot:
    """Raises JournalBroken."""
    following = run[-1] if run[-1].at > at else None
    entries = run if following is None else run[:-1]
    cycle = entries[-1]
    try:
        changes = condensed(entry.changes for entry in entries)
        after = _after(following, tail)
    except ValueError as error:
        raise JournalBroken(f"cycle {cycle.id}: {error}") from error
    digest = Digest()
    digest.add(changes)
    if digest.hex() != cycle.digest:
        raise JournalBroken(f"cycle {cycle.id}: digest {digest.hex()}, recorded {cycle.digest}")
    if following is None:
        # What is in memory follows on the last entry, unless one was written since; then it leads elsewhere.
        digest.add(after)
        after = after if digest.hex() == tail.digest else []
    snapshot = ClusterSnapshot(changes)
    included, uncertain, known_until = _happened(after, snapshot.jobs, cycle.at, at)
    snapshot.apply(included)
    return PastSnapshot(snapshot=snapshot, cycle=cycle, known_until=known_until, uncertain=uncertain)


def _after(following: CycleRecord | None, tail: Tail) -> list[Change]:
    """The changes between the last entry and the moment, as far as they are stored."""
    if following is None:
        return list(tail.changes or ())
    return [] if following.is_base else decode_changes(following.changes)


def _happened(
    changes: Sequence[Change], before: Mapping[str, Job], since: float, at: float
) -> tuple[Sequence[Change], int, float]:
    """The changes that had surely happened, how many others may have, and up to when all are known."""
    sure, later, known_until = 0, len(changes), since
    jobs = ChainMap[str, Job]({}, dict(before))
    for place, change in enumerate(changes):
        seen = seen_at(change)
        if isinstance(change, PutJob):
            known = jobs.get(change.job.id)
            if known is not None and times_of(known) == times_of(change.job):
                seen = None  # its times are those that it had before: the time of the edit is unknown
            jobs[change.job.id] = change.job
        elif isinstance(change, DropJob) and place + 1 < len(changes):
            seen = _ended_at(jobs.get(change.id), changes[place + 1])
        if seen is None or seen < since:
            continue
        if seen > at:
            later = place
            break
        sure, known_until = place + 1, max(known_until, seen)
    # The placement of a job does not change which jobs wait.
    uncertain = sum(not isinstance(change, PutMix | PutLastNode) for change in changes[sure:later])
    return changes[:sure], uncertain, known_until


def _ended_at(job: Job | None, following: Change) -> float | None:
    """A job that held GPUs leaves the snapshot together with what its user is charged for, which bears a time."""
    if job is None or job.allocation is None or not isinstance(following, PutScore) or following.user != job.user:
        return None
    return seen_at(following)


def why_then(past: PastSnapshot, at: float, job: Job) -> PastAnswer:
    """Why the job waited at that moment; `job` is the stored one. Raises NotFound where it was not there yet."""
    jobs = past.snapshot.jobs
    then = jobs.get(job.id)
    if then is None:
        explanation = _gone(past, at, job)
    elif then.state.holds_resources:
        explanation = Explanation(job_id=job.id, summary=f"it did not wait then: it was {then.state}")
    else:
        explanation = explain(past.snapshot, schedule(past.snapshot, at), then, at)
    mentioned = {other for reason in explanation.reasons for other in reason.jobs}.union(explanation.ahead[:NAMED])
    return PastAnswer(
        explanation=explanation,
        job=then or job,
        mentioned={other: jobs[other] for other in mentioned if other in jobs},
        cycle_id=past.cycle.id,
        cycle_at=past.cycle.at,
        known_until=past.known_until,
        uncertain=past.uncertain,
    )


def _gone(past: PastSnapshot, at: float, job: Job) -> Explanation:
    if job.created_at > at:
        created_at = clock(job.created_at)
        raise NotFound(f"job {job.id} did not exist then: it was created at {created_at}", field="at")
    if job.ended_at is not None and job.ended_at <= at:
        return Explanation(job_id=job.id, summary=f"it did not wait then: it had ended ({job.end_reason})")
    if job.queued_at is None or job.queued_at > at:
        # What became of an earlier start of it stands in no snapshot; it waited in none either.
        return Explanation(job_id=job.id, summary="it did not wait then: it was created, and not started")
    raise NotFound(
        f"the journal has no entry of job {job.id} at that moment: what is known ends with cycle {past.cycle.id} "
        f"at {clock(past.known_until)}",
        field="at",
        cycle=past.cycle.id,
    )


def clock(at: float) -> str:
    """A moment as text, to the second."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
