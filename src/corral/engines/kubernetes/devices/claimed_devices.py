"""The devices that ResourceClaims of others hold, as the watch reports them; each change costs what it changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import labels_of, name_of
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL
from corral.engines.kubernetes.devices.resource_claims import allocated
from corral.engines.kubernetes.devices.resource_slices import DeviceKey


class ClaimedDevices:
    """Implements `Listener`. Safe for several threads."""

    def __init__(self, installation: str) -> None:
        self._installation = installation
        self._lock = threading.Lock()
        self._held: dict[str, frozenset[DeviceKey]] = {}
        self._holders: dict[DeviceKey, str] = {}
        self.trouble = "not asked yet"

    def replace(self, items: Sequence[Json]) -> None:
        with self._lock:
            self._held, self._holders = {}, {}
            for item in items:
                self._put(item)
        self.trouble = ""

    def put(self, item: Json) -> None:
        with self._lock:
            self._put(item)

    def remove(self, item: Json) -> None:
        with self._lock:
            self._drop(_name(item))

    def failed(self, error: Exception) -> None:
        self.trouble = str(error)

    def holders(self) -> dict[DeviceKey, str]:
        """Each device that others hold, with the claim: NAMESPACE/NAME."""
        with self._lock:
            return dict(self._holders)

    def _put(self, item: Json) -> None:
        self._drop(_name(item))
        # Claims of this installation are counted by their pods.
        if labels_of(item).get(INSTALLATION_LABEL) != self._installation and (keys := frozenset(allocated(item))):
            self._held[_name(item)] = keys
            self._holders |= dict.fromkeys(keys, _name(item))

    def _drop(self, name: str) -> None:
        for key in self._held.pop(name, frozenset()):
            if self._holders.get(key) == name:
                del self._holders[key]


def _name(claim: Json) -> str:
    return f"{claim['metadata'].get('namespace', '')}/{name_of(claim)}"
