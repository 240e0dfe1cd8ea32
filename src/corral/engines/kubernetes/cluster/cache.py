"""Nodes and pods of the cluster as the watches report them; each change costs what it changes.

Of pods of others only their requests are kept, summed by node. Pods of this installation are kept whole.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import condition, is_over, labels_of, name_of, requests_of
from corral.engines.kubernetes.api.pod_refs import namespace_of, ref_of
from corral.engines.kubernetes.cluster.capacities import Capacities
from corral.engines.kubernetes.cluster.exporters import ExporterPods

INSTALLATION_LABEL = "corral/installation"


@dataclass(frozen=True, slots=True)
class Held:
    """The resources that one pod of others holds on a node."""

    node: str
    requests: Counter[str]


class PodCache:
    """Implements `Listener`. Safe for several threads. `changed` is called for each pod of this installation that has
    changed, `removed` with the reference of each that is gone."""

    def __init__(
        self,
        installation: str,
        namespaces: Sequence[str],
        changed: Callable[[Json], None],
        removed: Callable[[str], None],
        exporters: ExporterPods,
    ) -> None:
        self._exporters = exporters
        self._installation = installation
        #: those of corral's pods; the first is the engine's own
        self.namespaces = tuple(dict.fromkeys(namespaces))
        self._changed = changed
        self._removed = removed
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Held] = {}
        self._sums: dict[str, Counter[str]] = {}
        self._own: dict[str, Json] = {}
        self.trouble = "not asked yet"

    def replace(self, items: Sequence[Json]) -> None:
        with self._lock:
            before, self._own = self._own, {}
            self._held, self._sums = {}, {}
            self._exporters.clear()
            own = self._add(items)
        # Before the calls: what is called reads nothing while there is trouble.
        self.trouble = ""
        self._tell(before, own)

    def replace_in(self, namespace: str, items: Sequence[Json], known: Callable[[], None]) -> None:
        """Replaces the pods of one namespace, if each has a watch of its own. `known` sets `trouble`."""
        home = self.namespaces[0]
        with self._lock:
            before = {name: pod for name, pod in self._own.items() if namespace_of(name, home) == namespace}
            for name in before:
                del self._own[name]
            for key in [key for key in self._held if key[0] == namespace]:
                self._drop(key)
            own = self._add(items)
        known()
        self._tell(before, own)

    def _add(self, items: Sequence[Json]) -> dict[str, Json]:
        for pod in items:
            self._count(pod)
        own = {self._ref(pod): pod for pod in items if self._is_own(pod)}
        self._own.update(own)
        return own

    def _tell(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> None:
        for pod in after.values():
            self._changed(pod)
        for reference in before:
            if reference not in after:
                self._removed(reference)

    def put(self, item: Json) -> None:
        with self._lock:
            self._count(item)
            is_own, was_own = self._is_own(item), self._is_known(item)
            if is_own:
                self._own[self._ref(item)] = item
            elif was_own:
                # Another user of Kubernetes has taken its label away.
                del self._own[self._ref(item)]
        if is_own:
            self._changed(item)
        elif was_own:
            self._removed(self._ref(item))

    def remove(self, item: Json) -> None:
        with self._lock:
            self._drop(_key(item))
            self._exporters.remove(item)
            if was_own := self._is_known(item):
                del self._own[self._ref(item)]
        if was_own:
            self._removed(self._ref(item))

    def failed(self, error: Exception) -> None:
        self.trouble = str(error)

    def get(self, reference: str) -> Json | None:
        """A pod of this installation."""
        with self._lock:
            return self._own.get(reference)

    def own(self) -> Mapping[str, Json]:
        with self._lock:
            return dict(self._own)

    def others(self) -> dict[str, Counter[str]]:
        """The resources that pods of others hold, by node."""
        with self._lock:
            return {node: Counter(held) for node, held in self._sums.items()}

    def _is_own(self, pod: Json) -> bool:
        return (
            pod["metadata"].get("namespace") in self.namespaces
            and labels_of(pod).get(INSTALLATION_LABEL) == self._installation
        )

    def _is_known(self, pod: Json) -> bool:
        return self._ref(pod) in self._own

    def _ref(self, pod: Json) -> str:
        return ref_of(pod, self.namespaces[0])

    def _count(self, pod: Json) -> None:
        key = _key(pod)
        self._drop(key)
        self._exporters.put(pod)
        # A pod that preempts others holds the place that it is nominated for.
        node = pod["spec"].get("nodeName") or (pod.get("status") or {}).get("nominatedNodeName")
        if node and not is_over(pod) and not self._is_own(pod):
            self._held[key] = held = Held(node, requests_of(pod))
            self._sums.setdefault(node, Counter()).update(held.requests)

    def _drop(self, key: tuple[str, str]) -> None:
        if (held := self._held.pop(key, None)) is not None:
            self._sums[held.node].subtract(held.requests)


def _key(pod: Json) -> tuple[str, str]:
    return pod["metadata"].get("namespace", ""), name_of(pod)


class NodeCache:
    """Implements `Listener`. Safe for several threads. `changed` is called after each change.

    Kubernetes also reports nodes without heartbeats after an API server was away for a minute, until the next
    heartbeats arrive. So a node counts as lost when it was reported for `lost_seconds` without a break of the watch.
    """

    def __init__(self, changed: Callable[[], None], lost_seconds: float, capacities: Capacities) -> None:
        self._changed = changed
        self._capacities = capacities
        self._lost_seconds = lost_seconds
        #: since when nothing is heard from a node, by the monotonic clock
        self._silent_since: dict[str, float] = {}
        self._lock = threading.Lock()
        self._nodes: dict[str, Json] = {}
        self.trouble = "not asked yet"

    def replace(self, items: Sequence[Json]) -> None:
        with self._lock:
            self._nodes = {name_of(node): self._capacities.complete(_lean(node)) for node in items}
            self._silent_since.clear()
            for node in items:
                self._listen(node)
        self.trouble = ""
        self._changed()

    def put(self, item: Json) -> None:
        with self._lock:
            before = self._nodes.get(name_of(item))
            self._nodes[name_of(item)] = after = self._capacities.complete(_lean(item))
            self._listen(item)
        if before is None or _deciding_fields(before) != _deciding_fields(after):
            self._changed()

    def remove(self, item: Json) -> None:
        with self._lock:
            self._nodes.pop(name_of(item), None)
            self._capacities.forget(name_of(item))
            self._silent_since.pop(name_of(item), None)
        self._changed()

    def failed(self, error: Exception) -> None:
        self.trouble = str(error)

    def get(self, name: str) -> Json | None:
        with self._lock:
            return self._nodes.get(name)

    def nodes(self) -> dict[str, Json]:
        with self._lock:
            return dict(self._nodes)

    def silent(self) -> frozenset[str]:
        """The nodes from which Kubernetes receives no heartbeats."""
        with self._lock:
            return frozenset(self._silent_since)

    def lost(self) -> frozenset[str]:
        """The silent nodes that count as lost."""
        until = time.monotonic() - self._lost_seconds
        with self._lock:
            return frozenset(name for name, since in self._silent_since.items() if since <= until)

    def _listen(self, node: Json) -> None:
        if is_silent(node):
            self._silent_since.setdefault(name_of(node), time.monotonic())
        else:
            self._silent_since.pop(name_of(node), None)


def is_silent(node: Json) -> bool:
    """Whether Kubernetes receives no heartbeats of the node's kubelet."""
    return condition(node, "Ready").get("status") == "Unknown"


def _lean(node: Json) -> Json:
    """The node without fields that the engine does not read: a node lists every image that it has."""
    status = {key: value for key, value in (node.get("status") or {}).items() if key != "images"}
    metadata = {key: value for key, value in node["metadata"].items() if key != "managedFields"}
    return {"metadata": metadata, "spec": node.get("spec") or {}, "status": status}


def _deciding_fields(node: Json) -> object:
    """The fields of a node that can change a decision, without the time of the last heartbeat."""
    conditions = [(condition["type"], condition.get("status")) for condition in node["status"].get("conditions") or ()]
    metadata = node["metadata"]
    return (node["spec"], conditions, node["status"].get("allocatable"), node["status"].get("capacity"),
            metadata.get("labels"), metadata.get("annotations"))  # fmt: skip
