"""Every field of nodes and GPUs is shown by the API and stored, or listed here with the reason."""

from __future__ import annotations

from dataclasses import fields, replace

from sqlalchemy import Table

from corral.control.ports import Store
from corral.core.model import Gpu, GpuHealth, Node, NodeState
from corral.server.schemas.fleet.nodes import GpuView, NodeView
from corral.stores.schema.tables import gpu_rows, node_rows

NODE_FIELDS = {field.name for field in fields(Node)}
GPU_FIELDS = {field.name for field in fields(Gpu)}
#: Fields that the API shows under another name.
SHOWN_AS = {"cpu_milli": "cpus"}
#: Readings of a moment, which the scheduler uses: the API shows them with their times, as readings of the GPUs.
NOT_SHOWN = {"gpu_loads"}
#: What engines report anew with every observation, and GPUs, which have a table of their own.
NOT_STORED = {"gpu_loads", "gpus", "reason", "taken"}

FULL_GPU = Gpu(
    id="gpu-1",
    index=3,
    model="H200",
    memory_bytes=141,
    health=GpuHealth.SUSPECT,
    pool="big",
    link_group="nvlink-0",
    next_pool="small",
)
FULL = Node(
    id="node-1",
    cluster="hpc",
    state=NodeState.DRAINING,
    cpu_milli=8000,
    memory_bytes=64,
    gpus=(FULL_GPU,),
    labels=(("rack", "r1"), ("zone", "a")),
    load=0.25,
    withheld=NodeState.CORDONED,
)


def _columns(table: Table) -> set[str]:
    return {column.name for column in table.columns}


def test_every_field_of_a_node_is_in_each_place() -> None:
    missing = {SHOWN_AS.get(name, name) for name in NODE_FIELDS - NOT_SHOWN} - set(NodeView.model_fields)
    assert not missing, f"add to NodeView and node_view of server/schemas/fleet/nodes.py: {sorted(missing)}"
    missing = NODE_FIELDS - NOT_STORED - _columns(node_rows)
    assert not missing, f"add a column to stores/schema/tables.py, or the field to NOT_STORED: {sorted(missing)}"
    assert _columns(node_rows) <= NODE_FIELDS, "a column of nodes is a field of Node in core/model/fleet.py"
    assert NOT_STORED.isdisjoint(_columns(node_rows))


def test_every_field_of_a_gpu_is_in_each_place() -> None:
    assert set(GpuView.model_fields) >= GPU_FIELDS, "add it to GpuView and gpu_view of server/schemas/fleet/nodes.py"
    assert _columns(gpu_rows) == {"gpu_index" if name == "index" else name for name in GPU_FIELDS} | {"node_id"}


def test_every_field_is_stored(store: Store) -> None:
    plain = Node(id="plain")
    assert all(getattr(FULL, name) != getattr(plain, name) for name in NODE_FIELDS - NOT_STORED), (
        "give the new field of Node a value in FULL that differs from its default"
    )
    other = Gpu(id="gpu-2", index=0, model="A100")
    assert all(getattr(FULL_GPU, name) != getattr(other, name) for name in GPU_FIELDS), "the same for FULL_GPU"
    with store.write() as tx:
        tx.fleet.save_nodes([FULL, replace(plain, gpus=(other,))])
    with store.read() as tx:
        assert tx.fleet.nodes() == [FULL, replace(plain, gpus=(other,))]


def test_fields_that_are_observed_anew_are_not_stored(store: Store) -> None:
    with store.write() as tx:
        tx.fleet.save_nodes([replace(FULL, reason="maintenance", gpu_loads=(("gpu-1", 0.5),))])
    with store.read() as tx:
        assert tx.fleet.nodes() == [FULL]
