"""Attempts of which only the Slurm jobs are left: after a backup was restored, the records of the engine are gone.

The names of these jobs hold the engine's id, the attempt's id and a secret that only this engine can make (both are in
every backup). From the jobs the records are made anew, once, before the first observation: programs go on, and no job
runs twice. Jobs that have not begun are cancelled: the files that they would read are gone.
"""

from __future__ import annotations

import hmac
import logging
import os
import pwd
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from corral.control.ports import EngineUnavailable
from corral.engines.attempts.instance_messages import Owner
from corral.engines.slurm.attempts import run_directory, slurm_attempt
from corral.engines.slurm.attempts.installation import job_secret
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.submissions import Submissions
from corral.engines.slurm.attempts.submitters import give_place
from corral.engines.slurm.attempts.tracking import asked
from corral.engines.slurm.cluster.nodes import gpu_id
from corral.engines.slurm.slurm_api.job_comments import remark
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob

log = logging.getLogger("corral.engines.slurm")

_LOG_LINE = (
    "corral: the server was restored from a backup while this program ran; its output is in the files of the former "
    "server\n"
)


class JobAdoption:
    """`add` is called with each attempt that is taken up."""

    def __init__(self, submissions: Submissions, add: Callable[[Attempt], None]) -> None:
        self._slurm = submissions.slurm
        self._layout = submissions.layout
        self._mark = submissions.mark
        self._key = submissions.key
        self._top = submissions.top or submissions.layout.root
        self._add = add
        self._is_over = not self._layout.may_adopt
        self._lock = threading.Lock()

    def take_up(self) -> None:
        """Raises EngineUnavailable until all jobs that are cancelled are gone: then their attempts can be launched
        again."""
        if self._is_over:
            return
        with self._lock:
            if not self._is_over:
                self._take_up()

    def _take_up(self) -> None:
        jobs = asked(self._slurm.jobs)
        doomed = list[int]()
        for attempt_id, job in self._own(jobs):
            if self._layout.was_ordered(attempt_id):
                continue
            if _has_begun(job):
                log.warning("attempt %s has no record, but Slurm job %d: it is taken up again", attempt_id, job.id)
                self._add(self._adopt(attempt_id, job))
            elif not job.is_over:
                doomed.append(job.id)
        doomed += self._unknown(jobs)
        if doomed:
            asked(lambda: self._slurm.cancel(*doomed))
            raise EngineUnavailable(f"the Slurm jobs {doomed} of the former server are cancelled first")
        self._layout.note_adopted()
        self._is_over = True

    def _own(self, jobs: Iterable[SlurmJob]) -> Iterator[tuple[str, SlurmJob]]:
        """The first job of each attempt: until it was submitted, no user could know its name."""
        found = set[str]()
        for job in sorted(jobs, key=lambda job: job.id):
            attempt_id = self._attempt_of(job.name)
            if attempt_id and attempt_id not in found:
                found.add(attempt_id)
                yield attempt_id, job

    def _attempt_of(self, name: str) -> str:
        """ "" if the name is not of this engine's making."""
        attempt_id, _, secret = name.removeprefix(self._mark).rpartition("-")
        if not name.startswith(self._mark) or not run_directory.is_safe_id(attempt_id):
            return ""
        is_own = hmac.compare_digest(secret.encode(), job_secret(self._key, attempt_id).encode())
        return attempt_id if is_own else ""

    def _unknown(self, jobs: Sequence[SlurmJob]) -> list[int]:
        """Jobs of the server's own account that an older version submitted: their names cannot be checked. Those of
        other accounts may not be corral's."""
        marked = [
            job
            for job in jobs
            if job.name.startswith(self._mark) and not job.is_over and not self._attempt_of(job.name)
        ]
        if not marked:
            return []
        own = asked(self._slurm.submitter)
        for job in marked:
            if not own.owns(job):
                log.warning("Slurm job %d is named %s, but may not be corral's: it is left", job.id, job.name)
        return [job.id for job in marked if own.owns(job)]

    def _adopt(self, attempt_id: str, job: SlurmJob) -> Attempt:
        known = remark(job)
        nodes = tuple(known.gpus) or job.nodes
        attempt = Attempt(
            id=attempt_id,
            nodes=nodes,
            gpus=dict(known.gpus) or {node: _gpus_of(job, node) for node in nodes},
            grace_seconds=known.grace_seconds,
            limit_seconds=known.limit_seconds,
            created_at=job.submitted_at,
            owner=JobOwner(uid=job.uid, name=job.user),
            secret=job_secret(self._key, attempt_id),
            job_id=job.id,
            was_adopted=True,
        )
        if job.started_at is not None:
            attempt.up = dict.fromkeys(range(len(nodes)), job.started_at)
        for rank in range(len(nodes)):
            self._lay_out(attempt, rank)
        slurm_attempt.record(self._layout, attempt)
        return attempt

    def _lay_out(self, attempt: Attempt, rank: int) -> None:
        """The directory in which the node reports the end, if the root has the same path as before."""
        place = self._layout.place(attempt.id, rank)
        os.makedirs(place, exist_ok=True)
        if not os.path.exists(f"{place}/{run_directory.LOG}"):
            run_directory.append(f"{place}/{run_directory.LOG}", _LOG_LINE)
        uid = attempt.owner.uid
        if uid is not None and uid not in (0, os.geteuid()):
            try:
                give_place(place, _owner(uid), self._top)
            except KeyError:
                log.warning("attempt %s: this machine has no account %d; its end is read from Slurm", attempt.id, uid)


def _has_begun(job: SlurmJob) -> bool:
    """A job that was cancelled in the queue has had no nodes."""
    return job.state not in ("PENDING", "REQUEUED", "CONFIGURING") and bool(job.nodes)


def _gpus_of(job: SlurmJob, node: str) -> tuple[str, ...]:
    indexes = sorted(job.gpu_indexes.get(node, ())) or range(job.gpus_on(node))
    return tuple(gpu_id(node, index) for index in indexes)


def _owner(uid: int) -> Owner:
    """Raises KeyError if this machine does not know the account."""
    entry = pwd.getpwuid(uid)
    return Owner(name=entry.pw_name, uid=uid, gid=entry.pw_gid, groups=os.getgrouplist(entry.pw_name, entry.pw_gid))
