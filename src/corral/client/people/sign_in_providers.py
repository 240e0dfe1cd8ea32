"""The routes of sign-in providers and on-boarding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import IdentityView, ProviderDetailView, ProviderTestView, UserView


class Providers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ProviderDetailView]:
        """All of them, for operators."""
        return self._transport.pages("/auth/providers/all")

    def create(self, body: Mapping[str, Any]) -> ProviderDetailView:
        """Create a provider."""
        return cast("ProviderDetailView", self._transport.post("/auth/providers", dict(body)))

    def edit(self, provider_id: str, changes: Mapping[str, Any]) -> ProviderDetailView:
        """Secrets that are not among the changes stay as they are."""
        return cast("ProviderDetailView", self._transport.patch(_path(provider_id), dict(changes)))

    def delete(self, provider_id: str) -> None:
        """Delete a provider."""
        self._transport.delete(_path(provider_id))

    def test(self, provider_id: str) -> ProviderTestView:
        """Check the settings of a provider, as far as that is possible without a sign-in."""
        return cast("ProviderTestView", self._transport.post(f"{_path(provider_id)}/test"))

    def people(self, provider_id: str, *, refresh: bool = False) -> Iterator[IdentityView]:
        """The people that can be on-boarded; with `refresh` the server asks the provider first."""
        first = f"{_path(provider_id)}/people"
        if refresh:
            # The refresh is requested once, not with every page.
            self._transport.get(first, {"refresh": True, "limit": 1})
        return self._transport.pages(first)

    def onboard(
        self, provider_id: str, subjects: Sequence[str], *, group: str | None, operators: Sequence[str] = ()
    ) -> Sequence[UserView]:
        """Create users for accounts of a provider, all of them or none."""
        body = {"provider": provider_id, "subjects": [*subjects], "group": group, "operators": [*operators]}
        return cast("Sequence[UserView]", self._transport.post("/users:onboard", body)["items"])


def _path(provider_id: str) -> str:
    return f"/auth/providers/{segment(provider_id)}"
