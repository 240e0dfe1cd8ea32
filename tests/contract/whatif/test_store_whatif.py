"""What-if questions, what the shadow would have done, and the journal by time, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import Store
from corral.control.records import (
    CycleRecord,
    DifferenceRecord,
    SimulationRecord,
    SimulationSource,
    SimulationState,
)

pytest_plugins = ("tests.servers.fixtures",)

ASKED = SimulationRecord(
    id="s-1",
    name="shorter first 三",
    source=SimulationSource.TRACE,
    since=1000.25,
    until=2000.5,
    base={},
    candidate={"queues": {"*": {"policy": "shortest"}}, "fleet": {"scale": 1.5}},
    created_by="ann",
    created_at=3000.0,
    error='it "broke"',
)


def test_a_question_comes_back_as_it_was_and_keeps_its_result(store: Store) -> None:
    with store.write() as tx:
        assert [tx.simulations.next_id() for _ in range(2)] == ["s-1", "s-2"]
        tx.simulations.save(ASKED)
        tx.simulations.save_result("s-1", {"jobs": 3, "groups": [{"name": ""}]})
        done = replace(ASKED, state=SimulationState.READY, ended_at=3001.5, headline={"utilization": {"base": 0.5}})
        tx.simulations.save(done)
    with store.read() as tx:
        assert tx.simulations.get("s-1") == done
        assert tx.simulations.result("s-1") == {"jobs": 3, "groups": [{"name": ""}]}
        assert tx.simulations.result("s-2") is None


@pytest.mark.parametrize("no_id", ["", "s-", "s-0", "s-01", "s-x", "j-1", "s-99999999999999999999", "S-1"])
def test_invalid_simulation_id_is_not_found(store: Store, no_id: str) -> None:
    with store.write() as tx:
        tx.simulations.save(ASKED)
        assert tx.simulations.get(no_id) is None
        tx.simulations.delete([no_id])
        assert tx.simulations.get("s-1") == ASKED


def test_questions_are_listed_newest_first_and_those_that_wait_oldest_first(store: Store) -> None:
    made = [
        replace(ASKED, id=f"s-{number}", state=SimulationState.WAITING if number % 2 else SimulationState.CANCELLED)
        for number in range(1, 8)
    ]
    with store.write() as tx:
        for record in made:
            tx.simulations.save(record)
    seen: list[SimulationRecord] = []
    cursor = None
    with store.read() as tx:
        while True:
            page = tx.simulations.page(cursor=cursor, limit=3)
            seen += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == made[::-1]
        assert tx.simulations.ids() == [record.id for record in made[::-1]]
        assert tx.simulations.unfinished() == made[::2]
        with pytest.raises(ValueError, match="cursor"):
            tx.simulations.page(cursor="!!", limit=3)


def test_newest_differences_of_the_shadow_are_kept(store: Store) -> None:
    made = [
        DifferenceRecord(cycle=cycle, at=float(cycle), texts=(f"cycle {cycle}",), live=({"job": "j-1"},))
        for cycle in range(1, 8)
    ]
    with store.write() as tx:
        tx.shadow.add(made)
        tx.shadow.add([replace(made[0], texts=("again",))])
        assert tx.shadow.keep(3) == 4
        assert tx.shadow.newest(2) == [made[6], made[5]]
        assert tx.shadow.keep(3) == 0
        tx.shadow.clear()
        assert tx.shadow.newest(10) == []


def _cycle(at: float, *, is_base: bool = False) -> CycleRecord:
    return CycleRecord(at=at, is_base=is_base, digest=f"{at}", changes=b"c", plan=b"p")


def test_the_journal_leads_to_a_moment_from_the_base_before_it(store: Store) -> None:
    with store.write() as tx:
        assert tx.cycles.first_base_at() is None
        assert tx.cycles.count_since(0) == 0
        assert tx.cycles.run_until(5.0) == []
        for at, is_base in ((10.0, True), (11.0, False), (12.0, False), (20.0, True), (20.0, False), (30.0, False)):
            tx.cycles.append(_cycle(at, is_base=is_base))

        def leads(at: float) -> list[float]:
            return [cycle.at for cycle in tx.cycles.run_until(at)]

        assert leads(9.9) == []
        assert leads(10.0) == [10.0, 11.0]
        assert leads(11.5) == [10.0, 11.0, 12.0]
        # the next entry after the last one of a run is the base of the next
        assert leads(15.0) == [10.0, 11.0, 12.0, 20.0]
        assert leads(20.0) == [20.0, 20.0, 30.0]
        assert leads(99.0) == [20.0, 20.0, 30.0]
        assert tx.cycles.first_base_at() == 10.0
        assert tx.cycles.count_since(4) == 2
        assert [cycle.id for cycle in tx.cycles.since(4, 10)] == [5, 6]
        assert [cycle.id for cycle in tx.cycles.since(1, 2)] == [2, 3]
