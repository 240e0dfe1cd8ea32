"""The GPUs that nodes had: a kubelet that starts again reports none until its device plugins have registered.

Without this, corral would take the node for one without GPUs: it would refuse jobs that need them for good, and change
pools. The memory is a file, because a server may start at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral.engines.attempts.json_files import read_json, write_json
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import amounts, name_of

#: Device plugins that are away for longer are not coming back.
AWAY_SECONDS = 600.0
#: In the status of a node: resources that are remembered, and not reported now.
MISSING = "corral/missing"


def without_missing(node: Json) -> Json:
    """The node as it reports itself now."""
    status = node["status"]
    whole = status.get("capacity") or {}
    capacity = {name: count for name, count in whole.items() if name not in status.get(MISSING, ())}
    return {**node, "status": {**status, "capacity": capacity, MISSING: []}}


class Capacities:
    """Called by one thread."""

    def __init__(self, path: Path, is_gpu: Callable[[str], bool]) -> None:
        self._path = str(path)
        self._is_gpu = is_gpu
        known: dict[str, Any] = read_json(self._path) or {}
        self._known: dict[str, dict[str, int]] = {node: dict(counts) for node, counts in known.items()}
        #: since when a node reports none of what it had, by the monotonic clock
        self._away_since: dict[str, float] = {}

    def complete(self, node: Json) -> Json:
        """The node, with the GPUs that it had if it reports none of them now. They are not allocatable."""
        name, capacity = name_of(node), node["status"].get("capacity") or {}
        counts = {
            resource: count for resource, count in amounts(capacity).items() if count > 0 and self._is_gpu(resource)
        }
        missing = {resource: count for resource, count in self._known.get(name, {}).items() if resource not in counts}
        now = time.monotonic()
        if missing and now - self._away_since.setdefault(name, now) < AWAY_SECONDS:
            whole = {**capacity, **{resource: str(count) for resource, count in missing.items()}}
            return {**node, "status": {**node["status"], "capacity": whole, MISSING: sorted(missing)}}
        self._away_since.pop(name, None)
        self._keep(name, counts)
        return node

    def forget(self, name: str) -> None:
        """Kubernetes has it no more."""
        self._away_since.pop(name, None)
        self._keep(name, {})

    def _keep(self, name: str, counts: dict[str, int]) -> None:
        if counts != self._known.get(name, {}):
            self._known[name] = counts
            if not counts:
                del self._known[name]
            write_json(self._path, self._known)
