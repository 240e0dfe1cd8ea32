"""Old journal entries and score points go, the newest stay."""

from __future__ import annotations

from corral.control.system.housekeeping import DAY, tidy
from tests.unit.control.world import Desk, draft


def test_old_records_are_removed_and_needed_ones_stay(desk: Desk) -> None:
    desk.started(draft("first"))
    desk.state = desk.loaded()  # a restart begins a new base in the journal
    desk.now += 40 * DAY
    desk.started(draft("second"))
    with desk.store.read() as tx:
        before = len(tx.scores.history("ann", "A10", 0.0))
    assert desk.do(tidy) > 0
    with desk.store.read() as tx:
        assert [cycle.at for cycle in tx.cycles.since_base()] == [desk.now]
        kept = tx.scores.history("ann", "A10", 0.0)
    assert before == 2
    assert kept[-1].at == desk.now
    assert desk.do(tidy) == 0
