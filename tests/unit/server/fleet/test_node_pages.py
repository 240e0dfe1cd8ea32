"""Pages of the list of nodes: bounded by their GPUs, too, so that no answer is large."""

from __future__ import annotations

from dataclasses import replace

from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import GpuReading
from corral.control.system.policies import Policies
from corral.core.model import Node
from corral.core.snapshot.changes import PutNode
from corral.server.routes.fleet.nodes import LISTED_GPUS, nodes_after
from corral.server.schemas.base import ListView
from corral.server.schemas.fleet.nodes import NodeView, node_view
from corral.telemetry.readings import LatestReadings
from tests.unit.core.builders import node

OPERATOR = Caller(name="operator", is_operator=True)


def state_of(nodes: list[Node]) -> State:
    state = State(Policies())
    state.apply(PutNode(node=each) for each in nodes)
    return state


def pages(state: State, limit: int) -> list[list[str]]:
    found: list[list[str]] = []
    name = None
    while True:
        page = nodes_after(state, name, limit, 10.0)
        found.append([view.node.id for view in page.nodes])
        if page.is_last:
            return found
        name = found[-1][-1]


def test_a_page_of_nodes_with_many_gpus_ends_early() -> None:
    names = [f"n{number:03d}" for number in range(300)]
    found = pages(state_of([node(name, 8) for name in names]), limit=500)
    assert [len(page) for page in found] == [125, 125, 50]
    assert [name for page in found for name in page] == names


def test_a_page_has_no_more_nodes_than_the_limit_and_at_least_one() -> None:
    state = state_of([node("a", LISTED_GPUS + 1), *(node(name) for name in "bcdef")])
    assert pages(state, limit=3) == [["a"], ["b", "c", "d"], ["e", "f"]]
    assert pages(state_of([]), limit=3) == [[]]


def test_the_longest_page_is_smaller_than_a_megabyte_with_every_reading() -> None:
    state = state_of([node(f"gpu-node-{number:05d}", 8, model="NVIDIA H100 80GB HBM3") for number in range(300)])
    readings = LatestReadings(stale_after_seconds=15.0)
    names = [gpu.id for each in state.snapshot.nodes.values() for gpu in each.gpus]
    reading = GpuReading(
        gpu_id="",
        at=9.0,
        utilization=0.123456,
        sm_activity=0.1234,
        memory_used_bytes=1 << 36,
        temperature_celsius=61.5,
        power_watts=512.25,
    )
    readings.update([replace(reading, gpu_id=name) for name in names])
    page = nodes_after(state, None, 500, 10.0)
    views = [node_view(view, readings.all(10.0), OPERATOR) for view in page.nodes]
    assert len(ListView[NodeView](items=views).model_dump_json()) < 1_000_000
