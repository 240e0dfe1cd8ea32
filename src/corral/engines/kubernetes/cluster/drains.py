"""Drains of nodes: corral withholds a node by cordoning it in Kubernetes, and observes what others change there.

An annotation with the reason marks the nodes that corral has cordoned. A node that has it and is schedulable was
uncordoned by another user of Kubernetes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from corral.control.ports import EngineUnavailable, Withholding
from corral.engines.kubernetes.api.client import ApiClient, ApiError, ApiForbidden, ApiNotFound, ApiUnavailable, Json
from corral.engines.kubernetes.api.objects import annotations_of, name_of
from corral.engines.kubernetes.cluster.nodes import WITHHELD

log = logging.getLogger("corral.engines.kubernetes")


class NodeDrains:
    """Safe for several threads: each call changes one node."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        #: this account may not change nodes; detected once, and not tried again until the next start
        self._may_not = False

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
        body: Json = {
            "metadata": {"annotations": annotations},
            "spec": {"unschedulable": True if is_unschedulable else None},
        }
        try:
            self._api.patch(f"/api/v1/nodes/{name}", body)
        except ApiNotFound:
            return
        except ApiForbidden as refusal:
            self._may_not = True
            log.warning("Kubernetes: %s: node %s is withheld in corral only", refusal, name)
        except (ApiError, ApiUnavailable) as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error
