"""Writes and replays the scheduler's journal: the inputs and the plan of each cycle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corral.control.live.state import State
from corral.control.records import CycleRecord
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import Digest, decode_changes, decode_plan, encode_changes, encode_plan

#: Changes after which a new base is written, so that a replay never has to go back far.
CHANGES_PER_BASE = 200_000


class JournalBroken(Exception):
    """The journal does not lead to the snapshot that the plan was made from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    cycle: CycleRecord
    #: what was decided then, and what the core decides now from the same inputs
    recorded: Plan
    decided: Plan


class JournalWriter:
    """Makes the journal's entries from a state whose plan was just decided and not yet applied."""

    def __init__(self) -> None:
        self._since_base = 0

    def entry(self, state: State, plan: Plan) -> CycleRecord:
        is_base = state.unjournaled is None or self._since_base > CHANGES_PER_BASE
        if is_base or state.digest is None:
            changes, state.digest = list(state.snapshot.contents()), Digest()
            texts = state.digest.add(changes)
        else:
            changes, texts = state.unjournaled or [], state.unjournaled_texts
        self._since_base = 0 if is_base else self._since_base + len(changes)
        state.unjournaled, state.unjournaled_texts = [], []
        return CycleRecord(
            at=plan.at,
            is_base=is_base,
            digest=state.digest.hex(),
            changes=encode_changes(changes, texts),
            plan=encode_plan(plan),
        )

    def entry_of(self, state: State, snapshot: ClusterSnapshot, plan: Plan) -> CycleRecord:
        """A plan that was made from another snapshot than the state's: the entry is complete, and so is the next."""
        contents, digest = list(snapshot.contents()), Digest()
        state.digest, state.unjournaled, state.unjournaled_texts = None, None, []
        texts = digest.add(contents)
        return CycleRecord(
            at=plan.at,
            is_base=True,
            digest=digest.hex(),
            changes=encode_changes(contents, texts),
            plan=encode_plan(plan),
        )


def replay(cycles: Iterable[CycleRecord]) -> Iterator[Replayed]:
    """Decide again what was decided, from the newest base on. Raises JournalBroken if an input was not kept."""
    snapshot, digest = ClusterSnapshot(), Digest()
    for cycle in cycles:
        if cycle.is_base:
            snapshot, digest = ClusterSnapshot(), Digest()
        try:
            changes, recorded = decode_changes(cycle.changes), decode_plan(cycle.plan)
        except ValueError as error:
            raise JournalBroken(f"cycle {cycle.id}: {error}") from error
        # Checked before they are applied: changes that do not follow on each other may not fit the snapshot at all.
        digest.add(changes)
        if digest.hex() != cycle.digest:
            raise JournalBroken(f"cycle {cycle.id}: digest {digest.hex()}, recorded {cycle.digest}")
        snapshot.apply(changes)
        yield Replayed(cycle=cycle, recorded=recorded, decided=schedule(snapshot, cycle.at))
