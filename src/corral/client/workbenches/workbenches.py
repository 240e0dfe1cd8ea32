"""The routes of workbenches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport, segment
from corral.client.jobs.jobs import ENDED_STATES

if TYPE_CHECKING:
    from corral.client.views import WorkbenchCreate, WorkbenchView


class Workbenches:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, body: WorkbenchCreate) -> WorkbenchView:
        """Create a workbench and start it, unless it is held."""
        return cast("WorkbenchView", self._transport.post("/workbenches", dict(body)))

    def list(self, *, states: Sequence[str] = (), limit: int | None = None) -> Iterator[WorkbenchView]:
        """The caller's own workbenches, also stopped ones, the newest first; for operators, those of all users."""
        return self._transport.pages("/workbenches", {"state": list(states) or None}, limit=limit)

    def get(self, workbench: str) -> WorkbenchView:
        """Get a workbench by id, or by the name of one of the caller's."""
        return cast("WorkbenchView", self._transport.get(_path(workbench)))

    def start(self, workbench: str) -> WorkbenchView:
        """Queue a stopped workbench."""
        return cast("WorkbenchView", self._transport.post(f"{_path(workbench)}/start"))

    def stop(self, workbench: str) -> WorkbenchView:
        """Stop a workbench; its files stay."""
        return cast("WorkbenchView", self._transport.post(f"{_path(workbench)}/stop"))

    def delete(self, workbench: str) -> None:
        """Delete a stopped workbench with the files of its own directory."""
        self._transport.delete(_path(workbench))

    def wait_ready(
        self, workbench: str, *, seconds: float, on_change: Callable[[WorkbenchView], None], pause_seconds: float = 0.5
    ) -> WorkbenchView:
        """Wait until Jupyter and SSH of the workbench can be reached, and return it. Also returns if the workbench has
        ended or is held, and after `seconds`. `on_change` is called with every new state."""
        seen: str | None = None
        for _ in range(max(1, int(seconds / pause_seconds))):
            view = self.get(workbench)
            if view["state"] != seen:
                seen = view["state"]
                on_change(view)
            if is_ready(view) or view["state"] in (*ENDED_STATES, "created", "stopping"):
                return view
            self._transport.sleep(pause_seconds)
        return view


def is_ready(view: WorkbenchView) -> bool:
    offers = [part for part in (view["jupyter"], view["ssh"]) if part is not None]
    return view["state"] == "running" and all(part["ready"] for part in offers)


def _path(workbench: str) -> str:
    return f"/workbenches/{segment(workbench)}"
