"""Drains of nodes: corral withholds a node by cordoning it in Kubernetes, and observes what others change there.

An annotation with the reason marks the nodes that corral has cordoned. A node that has it and is schedulable was
uncordoned by another user of Kubernetes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from corral.control.ports import EngineUnavailable, Withholding
from corral.engines.kubernetes.api.client import ApiClient, ApiError, ApiForbidden, ApiNotFound, ApiUnavailable, Json
from corral.engines.kubernetes.api.objects import annotations_of, name_of
from corral.engines.kubernetes.cluster.nodes import WITHHELD

#: How long no node is changed after this account had no right to: rights may be given meanwhile.
ASK_AGAIN_SECONDS = 300.0
_WITHHELD_HERE_ONLY = "this account may not cordon nodes: those that are drained are withheld in corral only"
log = logging.getLogger("corral.engines.kubernetes")


class NodeDrains:
    """Safe for several threads: each call changes one node. `check` raises EngineUnavailable when another server has
    taken over."""

    def __init__(self, api: ApiClient, check: Callable[[], None] = lambda: None) -> None:
        self._api = api
        self._check = check
        self._refused_until = float("-inf")

    @property
    def note(self) -> str:
        """The reason why drains do not work; "" if they do."""
        return _WITHHELD_HERE_ONLY if self._may_not else ""

    @property
    def _may_not(self) -> bool:
        return time.monotonic() < self._refused_until

    def found(self, nodes: Iterable[Json]) -> dict[str, Withholding] | None:
        """Whether the nodes that corral cordoned still are; None if this account may not cordon."""
        if self._may_not:
            return None
        return {
            name_of(node): Withholding.KEPT if node["spec"].get("unschedulable") else Withholding.OVERRULED
            for node in nodes
            if WITHHELD in annotations_of(node)
        }

    def withhold(self, name: str, reason: str) -> None:
        self._change(name, {WITHHELD: reason or "drained"}, is_unschedulable=True)

    def release(self, name: str, node: Json | None, *, force: bool) -> None:
        if node is None:
            return
        is_ours = WITHHELD in annotations_of(node)
        if is_ours or (force and node["spec"].get("unschedulable")):
            self._change(name, {WITHHELD: None}, is_unschedulable=False)

    def _change(self, name: str, annotations: dict[str, str | None], *, is_unschedulable: bool) -> None:
        if self._may_not:
            return
        self._check()
        body: Json = {
            "metadata": {"annotations": annotations},
            "spec": {"unschedulable": True if is_unschedulable else None},
        }
        try:
            self._api.patch(f"/api/v1/nodes/{name}", body)
        except ApiNotFound:
            return
        except ApiForbidden as refusal:
            if not refusal.is_missing_right:
                raise EngineUnavailable(f"Kubernetes: {refusal}") from refusal
            self._refused_until = time.monotonic() + ASK_AGAIN_SECONDS
            log.warning("Kubernetes: %s: node %s is withheld in corral only", refusal, name)
        except (ApiError, ApiUnavailable) as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error
