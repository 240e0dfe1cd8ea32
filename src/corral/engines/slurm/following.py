"""Brings attempts together with what Slurm says of them: its live jobs, all that it remembers, and then its books."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from corral.control.ports import EngineUnavailable
from corral.engines.slurm.attempts import Attempt
from corral.engines.slurm.commands import Slurm, SlurmRefused, SlurmUnavailable
from corral.engines.slurm.rundir import Layout
from corral.engines.slurm.seen import SlurmJob, by_attempt

log = logging.getLogger("corral.engines.slurm")

_Answer = TypeVar("_Answer")

DAY = 86_400.0
#: it may have been given to Slurm after Slurm was asked
FRESH_SECONDS = 5.0
#: the books may be written late
LOST_SECONDS = 30.0
#: accounting that does not answer is left alone for so long, and waited for so long
PAUSE_SECONDS = 30.0
AWAY_SECONDS = 900.0
#: as many jobs are looked up at once
AT_ONCE = 200


def asked(ask: Callable[[], _Answer]) -> _Answer:
    """Raises EngineUnavailable."""
    try:
        return ask()
    except (SlurmUnavailable, SlurmRefused) as error:
        raise EngineUnavailable(f"Slurm: {error}") from error


class Following:
    """`adopt` is called for an attempt whose job is found although nobody wrote down that there is one. Attempts are
    changed under `lock`, and Slurm is asked without it: nobody else waits for a controller that is slow."""

    def __init__(
        self,
        slurm: Slurm,
        layout: Layout,
        mark: str,
        adopt: Callable[[Attempt, int], None],
        lock: AbstractContextManager[object],
    ) -> None:
        self._lock = lock
        self._slurm = slurm
        self._layout = layout
        self._mark = mark
        self._adopt = adopt
        self._books_again_at = 0.0

    def follow(self, attempts: Iterable[Attempt], live: Sequence[SlurmJob], now: float) -> None:
        """Those that are over without a word from their nodes are looked for further and further."""
        with self._lock:
            pending = [attempt for attempt in attempts if not attempt.is_over]
            for attempt in pending:
                attempt.look(self._layout)
        for ask in (lambda: live, self._slurm.jobs):
            known = by_attempt(asked(ask), self._mark)
            with self._lock:
                pending = [one for one in pending if not self._is_followed(one, known.get(one.id, ()), now)]
            if not pending:
                return
        booked = self._booked([attempt.job_id for attempt in pending if attempt.job_id is not None], now)
        with self._lock:
            self._settle(pending, booked, now)

    def job_of(self, attempt: Attempt) -> SlurmJob | None:
        """Looked for in the queue and, as that forgets after a while, in the books."""
        found = by_attempt(asked(self._slurm.jobs), self._mark).get(attempt.id)
        if not found:
            found = by_attempt(asked(lambda: self._named(attempt)), self._mark).get(attempt.id)
        return found[-1] if found else None

    def _is_followed(self, attempt: Attempt, jobs: Iterable[SlurmJob], now: float) -> bool:
        """False if it is not over, and nothing is said of it although there should be."""
        named = list(jobs)
        # Sent twice, after an answer that never came, it runs as the one that has claimed it.
        mine = [job for job in named if job.id == attempt.claimed_by]
        mine = mine or [job for job in named if attempt.job_id in (None, job.id)]
        if mine:
            if attempt.job_id != mine[-1].id:
                self._adopt(attempt, mine[-1].id)
            attempt.follow(mine[-1], self._layout, now)
            return True
        return attempt.is_over or not attempt.was_submitted or now - attempt.created_at < FRESH_SECONDS

    def _settle(self, missing: Sequence[Attempt], booked: Sequence[SlurmJob] | None, now: float) -> None:
        """The controller has forgotten these: they ended while nobody looked. The books know how; while those do not
        answer, these wait, and nobody else."""
        patience = AWAY_SECONDS if booked is None else LOST_SECONDS
        kept = by_attempt(booked or (), self._mark)
        for attempt in missing:
            jobs = [job for job in kept.get(attempt.id, ()) if job.id == attempt.job_id]
            if jobs:
                attempt.follow(jobs[-1], self._layout, now)
            elif attempt.over_since is None:
                attempt.over_since = now
            elif now > attempt.over_since + patience:
                attempt.lose(f"Slurm does not know its job {attempt.job_id} any more", now)

    def _booked(self, job_ids: Sequence[int], now: float) -> list[SlurmJob] | None:
        """None where accounting does not answer. Not every cluster keeps any."""
        if now < self._books_again_at:
            return None
        try:
            parts = [job_ids[first : first + AT_ONCE] for first in range(0, len(job_ids), AT_ONCE)]
            return [job for part in parts for job in self._slurm.ended(part)]
        except SlurmRefused as refusal:
            log.info("no accounting: %s", refusal)
            return []
        except SlurmUnavailable as error:
            log.warning("Slurm's accounting, asked for %s that ended unseen: %s", len(job_ids), error)
            self._books_again_at = now + PAUSE_SECONDS
            return None

    def _named(self, attempt: Attempt) -> list[SlurmJob]:
        try:
            return self._slurm.named(f"{self._mark}{attempt.id}", attempt.created_at - DAY)
        except SlurmRefused as refusal:
            log.info("no accounting: %s", refusal)
            return []
