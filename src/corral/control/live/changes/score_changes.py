"""Changes of users' fair-share scores: usage begins and ends with attempts."""

from __future__ import annotations

from corral.control.live.changes.counted import Counted
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.core.jobs.lifecycle import Ended, Event
from corral.core.model import WHOLE, Allocation, Job
from corral.core.people.scores import Score, change_usage, charge_afterwards
from corral.core.snapshot.changes import PutScore


class ScoreChanges:
    def __init__(self, tx: Transaction, state: State, now: float) -> None:
        self._tx = tx
        self._state = state
        self._now = now
        self._scores: Counted[tuple[str, str], Score] = Counted()

    @property
    def changes(self) -> int:
        return self._scores.changes

    def follow_job(self, before: Job, after: Job, event: Event) -> None:
        """Change the usage of the job's owner if the job's attempt began or ended.

        An end that is noticed later, because no server ran, is charged up to the end.
        GPUs that are reserved for a job's next attempt while its present attempt ends are not counted: no program of
        the user runs on them yet. The score so agrees with the stored usage of attempts.
        """
        held = self._held_by_attempt(before)
        holds = held if after.attempt == before.attempt else after.allocation
        if after.allocation is None:
            holds = None
        model = (holds or held or Allocation(grants=())).model
        delta = ((holds.total_gpu_milli if holds else 0) - (held.total_gpu_milli if held else 0)) / WHOLE
        if delta:
            score = self._score(after.user, model)
            score = change_usage(score, delta, self._now, self._time_constant, self._since(before, event))
            self._put(after.user, model, score)

    def charge_afterwards(self, user: str, model: str, gpu_milli: int, seconds: float) -> None:
        """Add the usage of an ended attempt that held its GPUs for `seconds` longer than was recorded."""
        score = self._score(user, model)
        self._put(user, model, charge_afterwards(score, gpu_milli / WHOLE, seconds, self._now, self._time_constant))

    def flush(self) -> None:
        if self._scores:
            self._tx.scores.save(self._scores)

    @property
    def _time_constant(self) -> float:
        return self._state.snapshot.score_time_constant

    def _score(self, user: str, model: str) -> Score:
        return self._state.snapshot.scores.get((user, model), Score(at=self._now))

    def _put(self, user: str, model: str, score: Score) -> None:
        self._scores[user, model] = score
        self._state.change(PutScore(user=user, model=model, score=score), needs_cycle=False)

    def _since(self, before: Job, event: Event) -> float | None:
        """When an attempt ended; not before its allocation began, which is when it was charged from."""
        if not isinstance(event, Ended):
            return None
        attempt = self._state.attempts.get(before.attempt_id)
        return max(event.at, attempt.planned_at if attempt else before.allocated_at or self._now)

    def _held_by_attempt(self, job: Job) -> Allocation | None:
        if job.allocation is None:
            return None
        attempt = self._state.attempts.get(job.attempt_id)
        return job.allocation if attempt is None else attempt.allocation
