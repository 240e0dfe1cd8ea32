"""The map of all GPUs: every column as long as the others, the largest holder named, readings beside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import GpuReading
from corral.control.records import AttemptRecord
from corral.control.system.policies import Policies
from corral.core.model import Job, Node, Taken
from corral.core.snapshot.changes import PutJob, PutNode
from corral.server.fleet.gpu_map import MapColumns, map_of, map_page
from corral.server.schemas.fleet.gpu_map import GpuMapView
from corral.telemetry.readings import LatestReadings
from tests.unit.core.builders import node, running

OPERATOR = Caller(name="operator", is_operator=True)


def state_of(*things: Node | Job) -> State:
    state = State(Policies())
    for thing in things:
        if isinstance(thing, Node):
            state.apply([PutNode(node=thing)])
            continue
        state.apply([PutJob(job=thing)])
        assert thing.allocation is not None
        state.attempts[thing.id] = AttemptRecord(
            id=thing.attempt_id, job_id=thing.id, number=1, allocation=thing.allocation, planned_at=0.0
        )
    return state


def read(*readings: GpuReading) -> LatestReadings:
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update(readings)
    return latest


def shown(state: State, latest: LatestReadings, caller: Caller = OPERATOR, now: float = 10.0) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(map_of(map_page(state, now), MapColumns(), latest.all(now), caller, now))
    GpuMapView.model_validate(body)
    assert {len(column) for column in body["gpus"].values()} == {len(body["gpus"]["id"])}
    return body


def test_names_stand_once_and_gpus_say_their_places() -> None:
    state = state_of(node("n1", 2), node("n2", 1, model="A100"), running(1, {"n2": (0,)}, user="ann"))
    body = shown(state, read())
    assert body["models"] == ["A10", "A100"]
    assert body["gpus"]["node"] == [0, 0, 1]
    assert body["gpus"]["model"] == [0, 0, 1]
    assert (body["owners"], body["gpus"]["owner"]) == (["ann"], [None, None, 0])


def test_shared_gpu_names_its_largest_holder_and_counts_all_parts() -> None:
    state = state_of(
        node("n1", 1),
        running(1, {"n1": (0,)}, user="ann", gpu_milli=250),
        running(2, {"n1": (0,)}, user="bob", gpu_milli=500),
    )
    columns = shown(state, read())["gpus"]
    assert columns["allocated"] == [0.75]
    assert columns["job"] == ["j-2"]


def test_a_scientist_sees_whose_it_is_but_not_which_job() -> None:
    state = state_of(node("n1", 2), running(1, {"n1": (0,)}, user="ann"), running(2, {"n1": (1,)}, user="bob"))
    body = shown(state, read(), Caller(name="bob"))
    assert body["gpus"]["job"] == [None, "j-2"]
    assert body["owners"] == ["ann", "bob"]


def test_gpus_used_outside_of_corral_are_shown_without_an_owner() -> None:
    columns = shown(state_of(replace(node("n1", 2), taken=Taken(gpus=("n1/1",)))), read())["gpus"]
    assert (columns["taken"], columns["owner"], columns["allocated"]) == ([False, True], [None, None], [0, 0])


def test_unmeasured_values_are_null_and_old_ones_are_stale() -> None:
    latest = read(
        GpuReading(gpu_id="n1/0", at=9.0, utilization=0.5, memory_used_bytes=1, memory_total_bytes=4),
        GpuReading(gpu_id="n1/1", at=-20.0, temperature_celsius=55.55, power_watts=float("nan")),
    )
    columns = shown(state_of(node("n1", 3)), latest)["gpus"]
    assert columns["stale"] == [False, True, True]
    assert columns["utilization"] == [0.5, None, None]
    assert columns["memory"] == [0.25, None, None]
    assert columns["temperature"][1] in (55.5, 55.6)
    assert columns["power"] == [None, None, None]


def test_a_fleet_without_gpus_has_empty_columns() -> None:
    assert shown(state_of(node("n1", 0)), read())["gpus"]["id"] == []


def test_a_change_makes_the_columns_of_its_nodes_only() -> None:
    state = state_of(*(node(f"n{number}", 2) for number in range(20)))
    kept, latest = MapColumns(), read(GpuReading(gpu_id="n3/0", at=9.0, utilization=0.25))
    before = map_of(map_page(state, 10.0), kept, latest.all(10.0), OPERATOR, 10.0)
    assert kept.made == 20
    latest.update([GpuReading(gpu_id="n3/0", at=9.5, utilization=0.75)])
    after = map_of(map_page(state, 10.0), kept, latest.all(10.0), OPERATOR, 10.0)
    assert before != after
    assert kept.made == 20
    state.apply([PutJob(job=running(1, {"n7": (0, 1)}, user="ann"))])
    changed = map_of(map_page(state, 10.0), kept, latest.all(10.0), OPERATOR, 10.0)
    assert kept.made == 21
    assert changed == map_of(map_page(state, 10.0), MapColumns(), latest.all(10.0), OPERATOR, 10.0)
