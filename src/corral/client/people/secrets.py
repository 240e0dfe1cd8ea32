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
        return self._transport.pages("/secrets")

    def put(self, name: str, value: str, *, group: str | None = None) -> SecretView:
        body = {"value": value, "group": group}
        return cast("SecretView", self._transport.put(f"/secrets/{segment(name)}", body))

    def delete(self, name: str, *, group: str | None = None) -> None:
        self._transport.delete(f"/secrets/{segment(name)}" + (f"?group={segment(group)}" if group is not None else ""))
