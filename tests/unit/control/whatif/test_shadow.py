"""The shadow: the same rules decide the same, other decisions are described, and falling behind loses no change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.records import CycleRecord
from corral.control.whatif.shadow import Shadow
from corral.core.model import Job, Queue, Request
from corral.core.snapshot.changes import PutNode, PutQueue, PutRules
from corral.core.snapshot.installation import Limits
from corral.core.whatif.scenario import Scenario, scenario_of
from corral.simulator.simulation import Arrival
from tests.unit.control.whatif.test_time_travel import Recorded
from tests.unit.core.builders import node
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR, between, pick


@DEAR
@given(histories(), st.data())
def test_a_shadow_with_the_same_rules_never_differs(history: History, data: st.DataObject) -> None:
    cycles = Recorded(history).cycles
    shadow = Shadow(Scenario())
    begin = data.draw(between(0, len(cycles)))
    shadow.catch_up([cycle.changes for cycle in cycles[:begin]])
    for cycle in cycles[begin:]:
        # what is only followed is not forgotten
        assert shadow.follow(cycle, decides=data.draw(pick(False, True))) is None


def recorded(queue: Queue, *jobs: Job) -> list[CycleRecord]:
    cluster = (
        PutRules(limits=Limits(), score_time_constant=60.0),
        PutNode(node=node("n1", gpus=2)),
        PutNode(node=node("n2", gpus=2)),
        PutQueue(queue=queue),
    )
    arrivals = tuple(Arrival(job=job, run_seconds=100.0) for job in jobs)
    return Recorded(History(cluster=cluster, arrivals=arrivals)).cycles


def job(number: int, gpus: int, at: float, priority: int = 5) -> Job:
    return Job(
        id=f"j-{number}", name=f"job-{number}", user="ann", request=Request(gpus=gpus), created_at=at, priority=priority
    )


def reported(cycles: list[CycleRecord], **plain: object) -> list[tuple[str, ...]]:
    shadow = Shadow(scenario_of(plain))
    found = [shadow.follow(cycle) for cycle in cycles]
    return [item.texts for item in found if item is not None]


def test_another_order_of_two_for_one_place() -> None:
    cycles = recorded(
        Queue(name="default", policy="fcfs"),
        job(1, 2, 1.0), job(2, 2, 1.0), job(3, 1, 2.0), job(4, 2, 2.0, priority=1), job(5, 2, 2.0, priority=1),
    )  # fmt: skip
    shadow = Shadow(scenario_of({"queues": {"*": {"policy": "priority"}}}))
    found = [item for item in map(shadow.follow, cycles) if item is not None]
    assert found
    assert any("would have started j-5 before j-3" in item.texts for item in found)
    assert found[0].live[0]["job"] == "j-3"
    assert {start["job"] for start in found[0].shadow} == {"j-4", "j-5"}


def test_another_placement_is_shown_by_the_node() -> None:
    cycles = recorded(Queue(name="default", placement="pack"), job(1, 1, 1.0), job(2, 1, 2.0))
    assert reported(cycles, queues={"default": {"placement": "spread"}}) == [("would have started j-2 on n2, not n1",)]


def test_strict_would_have_let_no_job_pass() -> None:
    # the large one waits for a whole node, and the small one is gone before that is free
    jobs = (job(1, 2, 1.0), job(2, 1, 2.0), job(3, 2, 3.0), job(4, 1, 4.0))
    limited = [
        replace(one, time_limit_seconds=limit) for one, limit in zip(jobs, (1000.0, 1000.0, 1000.0, 50.0), strict=True)
    ]
    cycles = recorded(Queue(name="default", policy="fcfs"), *limited)
    assert reported(cycles, queues={"*": {"blocking": "strict"}})[0] == ("would not have started j-4 yet",)


def test_an_unreadable_entry_is_said() -> None:
    cycle = CycleRecord(id=1, at=1.0, is_base=True, digest="", changes=b"?", plan=b"?")
    with pytest.raises(ValueError, match="not readable"):
        Shadow(Scenario()).follow(cycle)
