"""The routes of what-if questions and of the shadow policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ShadowView, SimulationView

#: How often somebody who waits for an answer asks again.
ASK_SECONDS = 0.4
OVER = frozenset({"ready", "failed", "cancelled", "interrupted"})


class Simulations:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None) -> Iterator[SimulationView]:
        """The newest first, without results."""
        return self._transport.pages("/simulations", limit=limit)

    def get(self, simulation_id: str) -> SimulationView:
        return cast("SimulationView", self._transport.get(_path(simulation_id)))

    def create(self, body: Mapping[str, Any]) -> SimulationView:
        """It waits for its turn when this returns; see `wait`."""
        return cast("SimulationView", self._transport.post("/simulations", dict(body)))

    def wait(
        self, simulation_id: str, *, asked: Callable[[SimulationView], None] = lambda simulation: None
    ) -> SimulationView:
        """The question once it is over; `asked` hears of every look."""
        while True:
            simulation = self.get(simulation_id)
            asked(simulation)
            if simulation["state"] in OVER:
                return simulation
            self._transport.sleep(ASK_SECONDS)

    def cancel(self, simulation_id: str) -> SimulationView:
        return cast("SimulationView", self._transport.post(_path(simulation_id, "/cancel"), {}))

    def again(self, simulation_id: str) -> SimulationView:
        return cast("SimulationView", self._transport.post(_path(simulation_id, "/again"), {}))

    def delete(self, simulation_id: str) -> None:
        self._transport.delete(_path(simulation_id))


class Shadow:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, limit: int = 200) -> ShadowView:
        """With so many differences, the newest first."""
        return cast("ShadowView", self._transport.get("/shadow", {"limit": limit}))

    def start(self, changes: Mapping[str, Any]) -> ShadowView:
        """It replaces one that runs."""
        return cast("ShadowView", self._transport.put("/shadow", dict(changes)))

    def stop(self) -> None:
        self._transport.delete("/shadow")


def _path(simulation_id: str, what: str = "") -> str:
    return f"/simulations/{segment(simulation_id)}{what}"
