"""The routes of what-if questions and of the shadow policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ShadowView, SimulationView

#: The interval at which `wait` polls.
POLL_SECONDS = 0.4
OVER = frozenset({"ready", "failed", "cancelled", "interrupted"})


class Simulations:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None) -> Iterator[SimulationView]:
        """Simulations without their results, the newest first."""
        return self._transport.pages("/simulations", limit=limit)

    def get(self, simulation_id: str) -> SimulationView:
        """One simulation with its progress and its results."""
        return cast("SimulationView", self._transport.get(_path(simulation_id)))

    def create(self, body: Mapping[str, Any]) -> SimulationView:
        """Queues a simulation and returns at once; see `wait`."""
        return cast("SimulationView", self._transport.post("/simulations", dict(body)))

    def wait(
        self, simulation_id: str, *, on_poll: Callable[[SimulationView], None] = lambda simulation: None
    ) -> SimulationView:
        """Polls until the simulation has ended, and returns it. `on_poll` is called with every answer."""
        while True:
            simulation = self.get(simulation_id)
            on_poll(simulation)
            if simulation["state"] in OVER:
                return simulation
            self._transport.sleep(POLL_SECONDS)

    def cancel(self, simulation_id: str) -> SimulationView:
        """Stop a simulation."""
        return cast("SimulationView", self._transport.post(_path(simulation_id, "/cancel"), {}))

    def again(self, simulation_id: str) -> SimulationView:
        """Run the same simulation again, with the current state of the cluster."""
        return cast("SimulationView", self._transport.post(_path(simulation_id, "/again"), {}))

    def delete(self, simulation_id: str) -> None:
        """Delete a simulation with its results."""
        self._transport.delete(_path(simulation_id))


class Shadow:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, limit: int = 200) -> ShadowView:
        """The shadow policy with at most `limit` differences, newest first."""
        return cast("ShadowView", self._transport.get("/shadow", {"limit": limit}))

    def start(self, changes: Mapping[str, Any]) -> ShadowView:
        """Replaces a running shadow policy."""
        return cast("ShadowView", self._transport.put("/shadow", dict(changes)))

    def stop(self) -> None:
        """Stop the shadow policy."""
        self._transport.delete("/shadow")


def _path(simulation_id: str, action: str = "") -> str:
    return f"/simulations/{segment(simulation_id)}{action}"
