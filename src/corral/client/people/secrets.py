"""The routes of secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import SecretView


class Secrets:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[SecretView]:
        """The caller's secrets and those of the caller's group, without their values; operators see those of all
        groups."""
        return self._transport.pages("/secrets")

    def put(self, name: str, value: str, *, group: str | None = None) -> SecretView:
        """Store a secret, or replace its value."""
        body = {"value": value, "group": group}
        return cast("SecretView", self._transport.put(f"/secrets/{segment(name)}", body))

    def delete(self, name: str, *, group: str | None = None) -> None:
        """Delete a secret."""
        self._transport.delete(f"/secrets/{segment(name)}" + (f"?group={segment(group)}" if group is not None else ""))
