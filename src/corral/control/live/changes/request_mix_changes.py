"""Changes of the request mixes: which job sizes were submitted to each pool lately."""

from __future__ import annotations

from corral.control.live.changes.counted import Counted
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.control.scheduling.request_mixes import keep_mix
from corral.core.model import Job
from corral.core.snapshot.changes import PutMix
from corral.core.snapshot.request_mix import Mix
from corral.core.snapshot.submission_counts import count_ended, count_submitted


class RequestMixChanges:
    def __init__(self, tx: Transaction, state: State) -> None:
        self._tx = tx
        self._state = state
        self._mixes: Counted[str, Mix] = Counted()

    @property
    def changes(self) -> int:
        return self._mixes.changes

    def count_submitted(self, job: Job) -> None:
        change = count_submitted(self._state.snapshot, self._state.mixes, job)
        if change is not None:
            self._mixes[change.pool] = change.mix
            self._state.change(change)

    def count_ended(self, job: Job) -> None:
        """Count a job that held resources; the next mix has it."""
        count_ended(self._state.snapshot, self._state.mixes, job)

    def drop(self, pool: str) -> None:
        """Remove the mix of a pool that is deleted."""
        self._state.mixes.pop(pool, None)
        if pool in self._state.snapshot.mixes:
            self._mixes[pool] = Mix()
            self._state.change(PutMix(pool=pool, mix=Mix()), needs_cycle=False)

    def flush(self) -> None:
        for pool, mix in self._mixes.items():
            keep_mix(self._tx, pool, mix)
