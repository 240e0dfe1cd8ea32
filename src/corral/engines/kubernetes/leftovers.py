"""Finds and removes objects that installations of corral have left in a Kubernetes cluster after their server is gone.

A server that runs removes what its attempts leave by itself.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

from corral.engines.kubernetes.api.client import ApiClient, ApiForbidden, ApiNotFound, Json
from corral.engines.kubernetes.api.objects import annotations_of, labels_of, name_of
from corral.engines.kubernetes.api.pod_refs import ref_of
from corral.engines.kubernetes.attempts.pod_commands import PodCommands, objects_path
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL
from corral.engines.kubernetes.cluster.nodes import WITHHELD

_SELECTOR = {"labelSelector": f"app.kubernetes.io/managed-by=corral,{INSTALLATION_LABEL}"}


def installations(api: ApiClient, namespaces: Sequence[str]) -> dict[str, Counter[str]]:
    """How many pods, secrets and claims each installation has there. Raises ApiError and ApiUnavailable."""
    found: dict[str, Counter[str]] = {}
    for kind, found_object in _objects(api, namespaces):
        found.setdefault(labels_of(found_object)[INSTALLATION_LABEL], Counter())[kind] += 1
    return found


def remove(api: ApiClient, namespaces: Sequence[str], installation: str) -> Counter[str]:
    """End and remove everything of an installation; how much it was. Raises EngineUnavailable."""
    home = namespaces[0]
    commands = PodCommands(api, home)
    removed: Counter[str] = Counter()
    for kind, found_object in _objects(api, namespaces):
        if labels_of(found_object)[INSTALLATION_LABEL] != installation:
            continue
        if kind == "pods":
            commands.remove(found_object)
        elif kind == "secrets":
            commands.remove_secret(ref_of(found_object, home))
        else:
            commands.remove_claim(ref_of(found_object, home))
        removed[kind] += 1
    return removed


def withheld_nodes(api: ApiClient) -> list[str]:
    """Nodes that corral has cordoned; none if this account may not see nodes."""
    try:
        nodes = api.get("/api/v1/nodes")["items"]
    except ApiForbidden:
        return []
    return sorted(name_of(node) for node in nodes if WITHHELD in annotations_of(node))


def _objects(api: ApiClient, namespaces: Sequence[str]) -> Iterator[tuple[str, Json]]:
    for namespace, kind in product(namespaces, ("pods", "secrets", "resourceclaims")):
        # This account may have no right to list secrets, as jobs without logins need none, and an older Kubernetes has
        # no claims.
        with contextlib.suppress(ApiForbidden, ApiNotFound):
            for found_object in api.get(objects_path(kind, namespace), _SELECTOR)["items"]:
                yield kind, found_object
