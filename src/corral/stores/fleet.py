"""Nodes with their GPUs, and queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Delete, bindparam, delete, select, update

from corral.control.ports import StoreConflict
from corral.core.model import Blocking, Gpu, GpuHealth, Node, NodeState, Queue
from corral.stores import codec
from corral.stores.statements import BatchStatement, upsert
from corral.stores.tables import gpu_rows, node_rows, queue_rows


def _build_delete_nodes(_: str) -> Delete:
    return delete(node_rows).where(node_rows.c.id == bindparam("of_id"))


def _build_delete_gpus(_: str) -> Delete:
    return delete(gpu_rows).where(gpu_rows.c.node_id == bindparam("of_node"))


_SAVE_NODE = upsert(node_rows)
_SAVE_GPU = upsert(gpu_rows)
_SAVE_QUEUE = upsert(queue_rows)
_DELETE_NODES = BatchStatement(_build_delete_nodes, ["of_id"])
_DELETE_GPUS = BatchStatement(_build_delete_gpus, ["of_node"])

_NODES = select(node_rows).order_by(node_rows.c.id)
_GPUS = select(gpu_rows).order_by(gpu_rows.c.node_id, gpu_rows.c.gpu_index, gpu_rows.c.id)
_QUEUES = select(queue_rows).order_by(queue_rows.c.name)


class SqlFleetTable:
    """Implements `corral.control.ports.FleetTable`. Nodes and queues come sorted by name, GPUs by index."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def nodes(self) -> list[Node]:
        gpus: defaultdict[str, list[Gpu]] = defaultdict(list)
        for row in self._connection.execute(_GPUS):
            gpus[row.node_id].append(_gpu_of(row))
        return [_node_of(row, tuple(gpus[row.id])) for row in self._connection.execute(_NODES)]

    def save_nodes(self, nodes: Sequence[Node]) -> None:
        _SAVE_NODE.run(self._connection, [_node_row(node) for node in nodes])
        # First all of their old GPUs, so that one that moved between two of these nodes ends at its new place.
        _DELETE_GPUS.run(self._connection, [(node.id,) for node in nodes])
        _SAVE_GPU.run(self._connection, [_gpu_row(gpu, node.id) for node in nodes for gpu in node.gpus])

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        _DELETE_NODES.run(self._connection, [(codec.storable(node_id),) for node_id in node_ids])

    def save_gpu(self, gpu: Gpu) -> None:
        """Raises StoreConflict when the GPU is not known (any more)."""
        changed = self._connection.execute(
            update(gpu_rows).where(gpu_rows.c.id == gpu.id).values(health=gpu.health.value, pool=gpu.pool)
        )
        if changed.rowcount != 1:
            raise StoreConflict(f"there is no GPU {gpu.id}")

    def queues(self) -> list[Queue]:
        return [_queue_of(row) for row in self._connection.execute(_QUEUES)]

    def save_queue(self, queue: Queue) -> None:
        _SAVE_QUEUE.run(self._connection, [_queue_row(queue)])

    def delete_queue(self, name: str) -> None:
        self._connection.execute(delete(queue_rows).where(queue_rows.c.name == name))


def _node_row(node: Node) -> tuple[Any, ...]:
    return (
        node.id,
        node.cluster,
        node.state.value,
        node.cpu_milli,
        node.memory_bytes,
        codec.to_json(node.labels),
        node.load,
    )


def _node_of(row: Any, gpus: tuple[Gpu, ...]) -> Node:
    return Node(
        id=row.id,
        cluster=row.cluster,
        state=NodeState(row.state),
        cpu_milli=row.cpu_milli,
        memory_bytes=row.memory_bytes,
        gpus=gpus,
        labels=codec.load_pairs(codec.from_json(row.labels)),
        load=row.load,
    )


def _gpu_row(gpu: Gpu, node_id: str) -> tuple[Any, ...]:
    return (gpu.id, node_id, gpu.index, gpu.model, gpu.memory_bytes, gpu.health.value, gpu.pool)


def _gpu_of(row: Any) -> Gpu:
    return Gpu(
        id=row.id,
        index=row.gpu_index,
        model=row.model,
        memory_bytes=row.memory_bytes,
        health=GpuHealth(row.health),
        pool=row.pool,
    )


def _queue_row(queue: Queue) -> tuple[Any, ...]:
    return (
        queue.name,
        queue.pool,
        queue.policy,
        queue.blocking.value,
        queue.placement,
        queue.weight,
        queue.guaranteed_gpus,
        queue.max_gpus,
        queue.max_length,
        queue.max_seconds,
        codec.encode_kinds(queue.kinds),
        queue.min_job_gpus,
        queue.max_job_gpus,
    )


def _queue_of(row: Any) -> Queue:
    return Queue(
        name=row.name,
        pool=row.pool,
        policy=row.policy,
        blocking=Blocking(row.blocking),
        placement=row.placement,
        weight=row.weight,
        guaranteed_gpus=row.guaranteed_gpus,
        max_gpus=row.max_gpus,
        max_length=row.max_length,
        max_seconds=row.max_seconds,
        kinds=codec.decode_kinds(row.kinds),
        min_job_gpus=row.min_job_gpus,
        max_job_gpus=row.max_job_gpus,
    )
