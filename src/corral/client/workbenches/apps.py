"""The routes of apps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import AppView, KnownAppView


class Apps:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[AppView]:
        """Apps of the caller's jobs that wait or run, and those that are shared with the caller's group; for
        operators, those of all users."""
        return self._transport.pages("/apps")

    def known(self) -> Sequence[KnownAppView]:
        """Web programs that the field `app` of a job can name."""
        return cast("Sequence[KnownAppView]", self._transport.get("/apps/known")["items"])

    def get(self, job: str) -> AppView:
        """Get an app by the id of its job, or by the name of one of the caller's jobs."""
        return cast("AppView", self._transport.get(f"/apps/{segment(job)}"))

    def share(self, job: str, *, group: str | None = None, lasts: str | None = None) -> dict[str, Any]:
        """Share with a group, or make a link, which is `address` of the answer."""
        body = {"group": group, **({"lasts": lasts} if lasts is not None else {})}
        return cast("dict[str, Any]", self._transport.post(f"/apps/{segment(job)}/shares", body))

    def unshare(self, job: str, kind: str, name: str) -> None:
        """End a share."""
        self._transport.delete(f"/apps/{segment(job)}/shares/{kind}/{segment(name)}")
