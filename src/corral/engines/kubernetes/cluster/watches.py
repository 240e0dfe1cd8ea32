"""The watches of nodes and pods, and what they have shown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import httpx

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import joined
from corral.engines.kubernetes.api.streams import Stream
from corral.engines.kubernetes.api.watch import Listener, Listing, Watch, followed, listing_of
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.cluster.cache import NodeCache, PodCache
from corral.engines.kubernetes.cluster.capacities import Capacities
from corral.engines.kubernetes.cluster.exporters import ExporterPods
from corral.engines.kubernetes.cluster.nodes import gpus_of
from corral.engines.kubernetes.devices.node_devices import GpuDevices
from corral.engines.kubernetes.devices.resource_claims import API_VERSION as DRA

log = logging.getLogger("corral.engines.kubernetes")

#: How long the first list of nodes and pods is waited for.
FIRST_LIST_SECONDS = 10.0
#: How often an account that may not see the pods of others is asked whether it may now.
ASK_AGAIN_SECONDS = 300.0
#: The same for published devices: an API server that starts may know of no rights for a moment.
WITHOUT_DEVICES_SECONDS = 60.0
_NOT_ASKED = "not asked yet"
_SLICES, _CLAIMS = f"/apis/{DRA}/resourceslices", f"/apis/{DRA}/resourceclaims"
_OTHERS_UNKNOWN = "what other namespaces hold is unknown: this account may not list the pods of the cluster"


_SLICES_UNKNOWN = (
    "no node has a GPU of a device plugin, and this account may not list resourceslices, by which drivers publish GPUs"
)
_CLAIMS_UNKNOWN = (
    "GPUs that ResourceClaims of others hold are unknown: this account may not list the resourceclaims of the cluster"
)


class ClusterWatches:
    """`nodes`, `pods` and `devices` may be read by any thread; the watches run in an event loop."""

    def __init__(
        self,
        *,
        root: Path,
        installation: str,
        rules: PodRules,
        more_namespaces: Iterable[str] = (),
        pod_changed: Callable[[Json], None],
        pod_removed: Callable[[str], None],
        nodes_changed: Callable[[], None],
    ) -> None:
        """`more_namespaces` have pods of live attempts, although the rules may not name them any more. `pod_changed` is
        called for each pod of this installation that has changed, `pod_removed` for each that is gone, and
        `nodes_changed` after each change of a node."""
        self.exporters = ExporterPods(rules.exporter_namespace)
        namespaces = (*rules.namespaces, *more_namespaces)
        self.pods = PodCache(installation, namespaces, pod_changed, pod_removed, self.exporters)
        capacities = Capacities(root / "capacities", rules.fleet.is_gpu)
        self.nodes = NodeCache(nodes_changed, rules.lost_seconds, capacities)
        fleet = rules.fleet
        self.devices = GpuDevices(root, installation, fleet.device_classes, fleet.models, nodes_changed)
        self._fleet = fleet
        self._sees_others = self._sees_slices = self._sees_claims = True
        self._waited_for_until = time.monotonic() + FIRST_LIST_SECONDS

    @property
    def trouble(self) -> str:
        """Why what is known may be outdated; "" while it is not."""
        devices = self.devices
        return self.nodes.trouble or self.pods.trouble or devices.published.trouble or devices.claimed.trouble

    @property
    def note(self) -> str:
        """The text about what cannot be observed; "" if everything can."""
        is_blind = not self._sees_slices and not any(gpus_of(node, self._fleet) for node in self.nodes.nodes().values())
        has_devices = not self._sees_claims and bool(self.devices.published.nodes())
        return joined(
            (
                "" if self._sees_others else _OTHERS_UNKNOWN,
                _SLICES_UNKNOWN if is_blind else "",
                _CLAIMS_UNKNOWN if has_devices else "",
            )
        )

    def all(self) -> tuple[Stream, ...]:
        return self.watch_nodes, self.watch_pods, self.watch_slices, self.watch_claims

    def wait_for_lists(self) -> None:
        """Waits until both watches have answered for the first time, but not longer than FIRST_LIST_SECONDS after the
        start."""
        while self.trouble == _NOT_ASKED and time.monotonic() < self._waited_for_until:
            time.sleep(0.005)

    async def watch_nodes(self, client: httpx.AsyncClient) -> None:
        await followed(Watch(client, "/api/v1/nodes", self.nodes), self.nodes)

    async def watch_pods(self, client: httpx.AsyncClient) -> None:
        """All pods, as those of others hold resources too; those of corral's namespaces where this account may see no
        more. The right is asked for again, as an API server that starts may know of no rights for a moment."""
        sees_others = await listing_of(client, "/api/v1/pods") is not Listing.FORBIDDEN
        if self._sees_others and not sees_others:
            log.warning("Kubernetes: %s", _OTHERS_UNKNOWN)
        self._sees_others = sees_others
        if sees_others:
            await followed(Watch(client, "/api/v1/pods", self.pods), self.pods)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN_SECONDS):
                await self._watch_namespaces(client)

    async def watch_slices(self, client: httpx.AsyncClient) -> None:
        """The GPUs that drivers publish, where Kubernetes has Dynamic Resource Allocation."""
        found = await listing_of(client, _SLICES)
        self._sees_slices = found is not Listing.FORBIDDEN
        await _watch_if(found, Watch(client, _SLICES, self.devices.published), self.devices.published)

    async def watch_claims(self, client: httpx.AsyncClient) -> None:
        """The devices that claims hold, in all namespaces."""
        found = await listing_of(client, _CLAIMS)
        self._sees_claims = found is not Listing.FORBIDDEN
        await _watch_if(found, Watch(client, _CLAIMS, self.devices.claimed), self.devices.claimed)

    async def _watch_namespaces(self, client: httpx.AsyncClient) -> None:
        """Raises what ends the watch of one: then the others end, too."""
        parts = NamespaceParts(self.pods)
        watches = [
            followed(Watch(client, f"/api/v1/namespaces/{namespace}/pods", part), part)
            for namespace, part in parts.each()
        ]
        tasks = [asyncio.ensure_future(watch) for watch in watches]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()


async def _watch_if(found: Listing, watch: Watch, listener: Listener) -> None:
    """Watches objects that not every Kubernetes has. Without them, or without the right to list them, none is known for
    a while."""
    if found is Listing.OPEN:
        await followed(watch, listener)
    else:
        listener.replace(())
        await asyncio.sleep(WITHOUT_DEVICES_SECONDS)


class NamespaceParts:
    """The pods of several namespaces, each with a watch of its own: they are known while none has trouble."""

    def __init__(self, pods: PodCache) -> None:
        self.pods = pods
        self._troubles = dict.fromkeys(pods.namespaces, _NOT_ASKED)

    def each(self) -> list[tuple[str, NamespacePart]]:
        return [(namespace, NamespacePart(self, namespace)) for namespace in self._troubles]

    def note(self, namespace: str, trouble: str) -> None:
        self._troubles[namespace] = trouble
        self.pods.trouble = next(filter(None, self._troubles.values()), "")


class NamespacePart:
    """Implements `Listener`."""

    def __init__(self, parts: NamespaceParts, namespace: str) -> None:
        self._parts = parts
        self._namespace = namespace

    def replace(self, items: Sequence[Json]) -> None:
        self._parts.pods.replace_in(self._namespace, items, lambda: self._parts.note(self._namespace, ""))

    def put(self, item: Json) -> None:
        self._parts.pods.put(item)

    def remove(self, item: Json) -> None:
        self._parts.pods.remove(item)

    def failed(self, error: Exception) -> None:
        self._parts.note(self._namespace, f"namespace {self._namespace}: {error}")
