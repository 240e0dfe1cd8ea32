"""The stored state of drains in progress: one value in the store, so that a restarted server continues them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from corral.control.ports import Transaction
from corral.core.snapshot.codec import from_plain, to_plain

KEY = "drains"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drain:
    node: str
    started_at: float
    started_by: str
    #: jobs that are left at this time are asked to save and continue elsewhere; None: jobs run to their end
    empty_by: float | None = None
    #: when the last job had left the node
    drained_at: float | None = None
    #: the maintenance window that drains the node, and brings it back; "": an operator does
    window: str = ""


def stored_drains(tx: Transaction) -> dict[str, Drain]:
    text = tx.meta.get(KEY)
    return {} if text is None else {drain["node"]: from_plain(Drain, drain) for drain in json.loads(text)}


def store_drains(tx: Transaction, drains: Mapping[str, Drain]) -> None:
    tx.meta.put(KEY, json.dumps([to_plain(drains[node]) for node in sorted(drains)]))
