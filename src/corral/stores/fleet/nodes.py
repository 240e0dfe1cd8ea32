"""Nodes with their GPUs, pools, and queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Delete, Update, bindparam, delete, select, update

from corral.control.ports import StoreConflict
from corral.control.records import PoolRecord
from corral.core.model import Blocking, Gpu, GpuHealth, JobKind, Node, NodeState, Queue
from corral.stores.database import row_codec
from corral.stores.database.commit_guard import refuse
from corral.stores.database.rows import readable
from corral.stores.database.statements import BatchStatement, replace_rows, upsert
from corral.stores.fleet.value_rows import ValueRows
from corral.stores.schema.tables import gpu_rows, node_rows, pool_rows, queue_rows


def _build_delete_nodes(_: str) -> Delete:
    return delete(node_rows).where(node_rows.c.id == bindparam("of_id"))


def _build_delete_gpus(_: str) -> Delete:
    return delete(gpu_rows).where(gpu_rows.c.node_id == bindparam("of_node"))


def _build_change_gpu(_: str) -> Update:
    return update(gpu_rows).where(gpu_rows.c.id == bindparam("of_id"))


_SAVE_NODE = upsert(node_rows)
_SAVE_GPU = upsert(gpu_rows)
_SAVE_QUEUE = upsert(queue_rows)
_CHANGE_GPU = BatchStatement(_build_change_gpu, ["health", "pool", "next_pool", "of_id"])
_DELETE_NODES = BatchStatement(_build_delete_nodes, ["of_id"])
_DELETE_GPUS = BatchStatement(_build_delete_gpus, ["of_node"])

_NODES = select(node_rows).order_by(node_rows.c.id)
_GPUS = select(gpu_rows).order_by(gpu_rows.c.node_id, gpu_rows.c.gpu_index, gpu_rows.c.id)
_QUEUES = select(queue_rows).order_by(queue_rows.c.name)


_VALUE = attrgetter("value")
_NODE = ValueRows(
    Node,
    node_rows,
    forms={
        "state": (_VALUE, NodeState),
        "withheld": (_VALUE, NodeState),
        "labels": (row_codec.to_json, lambda text: row_codec.load_pairs(row_codec.from_json(text))),
    },
)
_GPU = ValueRows(Gpu, gpu_rows, forms={"health": (_VALUE, GpuHealth)}, fields={"gpu_index": "index"})
_QUEUE = ValueRows(
    Queue,
    queue_rows,
    forms={
        "blocking": (_VALUE, Blocking),
        "kinds": (row_codec.encode_names, partial(row_codec.decode_names, JobKind)),
        "groups": (row_codec.encode_names, partial(row_codec.decode_names, str)),
    },
)


class SqlFleetTable:
    """Implements `corral.control.ports.FleetTable`. Nodes, pools and queues come sorted by name, GPUs by index."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def nodes(self) -> list[Node]:
        gpus: defaultdict[str, list[Gpu]] = defaultdict(list)
        rows = self._connection.execute(_GPUS)
        for node_id, gpu in readable(self._connection, "gpus", rows, _gpu_of):
            gpus[node_id].append(gpu)
        rows = self._connection.execute(_NODES)
        return readable(self._connection, "nodes", rows, lambda row: _NODE.value(row, gpus=tuple(gpus[row.id])))

    def save_nodes(self, nodes: Sequence[Node]) -> None:
        _SAVE_NODE.run(self._connection, [_NODE.row(node) for node in nodes])
        # First delete all old GPUs, so that a GPU that moved between two of these nodes is stored with its new node.
        _DELETE_GPUS.run(self._connection, [(node.id,) for node in nodes])
        _SAVE_GPU.run(self._connection, [_GPU.row(gpu, node_id=node.id) for node in nodes for gpu in node.gpus])

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        _DELETE_NODES.run(self._connection, [(row_codec.storable(node_id),) for node_id in node_ids])

    def save_gpus(self, gpus: Sequence[Gpu]) -> None:
        """Save all of them. Raises StoreConflict if one does not exist (any more)."""
        values = [(gpu.health.value, gpu.pool, gpu.next_pool, gpu.id) for gpu in gpus]
        changed = _CHANGE_GPU.run(self._connection, values)
        if changed != len(gpus):
            known = {gpu.id for node in self.nodes() for gpu in node.gpus}
            missing = ", ".join(gpu.id for gpu in gpus if gpu.id not in known)
            raise refuse(self._connection, StoreConflict(f"there is no GPU {missing}"))

    def pools(self) -> list[PoolRecord]:
        rows = self._connection.execute(select(pool_rows).order_by(pool_rows.c.name))
        return [PoolRecord(name=row.name, description=row.description, created_at=row.created_at) for row in rows]

    def save_pool(self, pool: PoolRecord) -> None:
        row = {"name": pool.name, "description": pool.description, "created_at": pool.created_at}
        replace_rows(self._connection, pool_rows, [row])

    def delete_pool(self, name: str) -> None:
        """Delete a pool; its group has none then. The use case handles its GPUs and queues."""
        self._connection.execute(delete(pool_rows).where(pool_rows.c.name == name))

    def queues(self) -> list[Queue]:
        return readable(self._connection, "queues", self._connection.execute(_QUEUES), _QUEUE.value)

    def save_queue(self, queue: Queue) -> None:
        _SAVE_QUEUE.run(self._connection, [_QUEUE.row(queue)])

    def delete_queue(self, name: str) -> None:
        self._connection.execute(delete(queue_rows).where(queue_rows.c.name == name))


def _gpu_of(row: Any) -> tuple[str, Gpu]:
    """A GPU, after the id of its node."""
    return row.node_id, _GPU.value(row, without=("node_id",))
