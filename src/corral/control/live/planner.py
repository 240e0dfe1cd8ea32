"""The planner: decides when a scheduling cycle is due, runs it in the turn's transaction, and handles failed cycles.

A cycle is due when the state changed in a way that can change the plan, at the time that the last plan named, after the
system time was set, and otherwise every `net_seconds` as a safety net. The planning itself is in the core (`schedule`);
`cycle` writes the plan.

A cycle that fails does not affect the requests of its turn: they are committed without it. Then each queue is planned
alone. Queues whose plan fails are left out, and the other queues continue. After a pause that grows, all queues are
planned again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from corral.control.live.cycle import failing_queues, run_cycle
from corral.control.live.journal import JournalWriter
from corral.control.live.state import PlanFailure, State
from corral.control.live.unit_of_work import Work
from corral.control.ports import Clock
from corral.core.jobs.backoff import MAX_BACKOFF_SECONDS

log = logging.getLogger("corral.control")

#: Until queues that were left out are planned again.
FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 600.0
#: If the difference between the system time and the monotonic clock changes by more, the system time was set.
JUMP_SECONDS = 1.0


class CycleFailed(Exception):
    """Planning raised an exception, or the plan could not be written."""

    def __init__(self, digest: str, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        #: digest of the snapshot that was planned from
        self.digest = digest


@dataclass(frozen=True, kw_only=True, slots=True)
class _Trouble:
    #: by queue; the empty name stands for all
    failures: Mapping[str, PlanFailure]
    times: int
    #: by the steady clock
    retry_at: float


class Planner:
    def __init__(
        self, clock: Clock, net_seconds: float, observe_cycle: Callable[[float], None] = lambda seconds: None
    ) -> None:
        """`net_seconds` is the safety net: a cycle runs that often even if nothing seems to have happened.
        `observe_cycle` is called with the seconds that each cycle took."""
        self._observe_cycle = observe_cycle
        self._clock = clock
        self._net_seconds = net_seconds
        self._journal = JournalWriter()
        self._planned_at = clock.monotonic() - net_seconds
        self._offset = self._present_offset()
        self._trouble: _Trouble | None = None

    def is_due(self, state: State) -> bool:
        steady = self._clock.monotonic()
        if self._trouble is not None and "" in self._trouble.failures and steady < self._trouble.retry_at:
            return False
        wake_at = state.plan.wake_at
        return (
            state.needs_cycle
            or (wake_at is not None and self._clock.now() >= wake_at)
            or steady >= self._planned_at + self._net_seconds
            or abs(self._present_offset() - self._offset) > JUMP_SECONDS
        )

    def rest_seconds(self, state: State) -> float:
        """Seconds until the next cycle may be due without a change; 0 if a cycle is due."""
        if self.is_due(state):
            return 0.0
        rest = self._planned_at + self._net_seconds - self._clock.monotonic()
        if state.plan.wake_at is not None:
            # At most JUMP_SECONDS: the system time may be set meanwhile.
            rest = min(rest, state.plan.wake_at - self._clock.now(), JUMP_SECONDS)
        return max(0.001, rest)

    def run(self, work: Work) -> None:
        """Run a cycle. Raises CycleFailed; then this unit of work must not be committed."""
        steady, digest = self._clock.monotonic(), work.state.digest_text()
        left_out = self._left_out()
        if self._present_offset() < self._offset - JUMP_SECONDS:
            _shorten_pauses(work)
        try:
            run_cycle(work, self._journal, left_out)
        except Exception as error:
            raise CycleFailed(digest, error) from error
        self._begun(steady)
        self._observe_cycle(self._clock.monotonic() - steady)
        if self._trouble is not None and not left_out:
            log.warning("planning works again")
            self._trouble, work.state.plan_failures = None, {}

    def failed(self, state: State, failure: CycleFailed) -> None:
        """Find the queues that made a cycle fail. `state` was loaded from the store since."""
        log.error("planning failed (snapshot %s): %s", failure.digest, failure, exc_info=failure.__cause__)
        before, now, steady = self._trouble, self._clock.now(), self._clock.monotonic()
        found = failing_queues(state.snapshot, now)
        if not found or (before is not None and before.failures.keys() == found.keys() and steady < before.retry_at):
            # No queue alone, or it failed even without those queues.
            found = {"": str(failure)}
        times = 1 if before is None else before.times + 1
        since = now if before is None else min(failure.since for failure in before.failures.values())
        self._trouble = _Trouble(
            failures={
                queue: PlanFailure(digest=failure.digest, error=error, since=since) for queue, error in found.items()
            },
            times=times,
            retry_at=steady + min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(times - 1, 16)),
        )
        self._begun(steady)
        self.note(state)
        names = ", ".join(sorted(found)) if "" not in found else "any queue"
        log.error("nothing is planned for %s until %.0f s from now", names, self._trouble.retry_at - steady)

    def note(self, state: State) -> None:
        """Put the queues that are not planned into a state that was just loaded."""
        if self._trouble is not None:
            state.plan_failures = dict(self._trouble.failures)

    def _left_out(self) -> frozenset[str]:
        trouble = self._trouble
        if trouble is None or self._clock.monotonic() >= trouble.retry_at:
            return frozenset()
        return frozenset(trouble.failures) - {""}

    def _begun(self, steady: float) -> None:
        self._planned_at = steady
        self._offset = self._present_offset()

    def _present_offset(self) -> float:
        return self._clock.now() - self._clock.monotonic()


def _shorten_pauses(work: Work) -> None:
    """The system time was set back: let no job wait for longer than the longest back-off."""
    latest = work.now + MAX_BACKOFF_SECONDS
    for job in [job for job in work.state.snapshot.jobs.values() if job.not_before > latest]:
        work.jobs.edit(job, replace(job, not_before=latest))
