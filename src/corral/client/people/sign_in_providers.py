"""The routes of sign-in providers and on-boarding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, cast

from corral.client.http.transport import Transport, segment
from corral.client.views import UserView


class ProviderView(TypedDict):
    id: str
    kind: str
    title: str
    issuer: str
    client_id: str
    client_secret_set: bool
    api_token_set: bool
    organisation: str
    enabled: bool
    allow: list[str]
    group: str | None
    redirect_uri: str
    users: int
    created_at: str


class CheckView(TypedDict):
    name: str
    state: str
    detail: str
    hint: str


class ProviderTestView(TypedDict):
    ok: bool
    checks: list[CheckView]


class IdentityView(TypedDict):
    provider: str
    subject: str
    login: str
    name: str
    email: str
    user: str | None
    allowed: bool
    seen_at: str | None


class Providers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ProviderView]:
        """All of them, for operators."""
        return self._transport.pages("/auth/providers/all")

    def create(self, body: Mapping[str, Any]) -> ProviderView:
        return cast(ProviderView, self._transport.post("/auth/providers", dict(body)))

    def edit(self, provider_id: str, changes: Mapping[str, Any]) -> ProviderView:
        """Secrets that are not among the changes stay as they are."""
        return cast(ProviderView, self._transport.patch(_path(provider_id), dict(changes)))

    def delete(self, provider_id: str) -> None:
        self._transport.delete(_path(provider_id))

    def test(self, provider_id: str) -> ProviderTestView:
        return cast(ProviderTestView, self._transport.post(f"{_path(provider_id)}/test"))

    def people(self, provider_id: str, *, refresh: bool = False) -> Iterator[IdentityView]:
        """Who can be on-boarded; `refresh` asks the provider first."""
        first = f"{_path(provider_id)}/people"
        if refresh:
            # Once is enough, not with every page.
            self._transport.get(first, {"refresh": True, "limit": 1})
        return self._transport.pages(first)

    def onboard(self, provider_id: str, subjects: Sequence[str], *, group: str | None) -> Sequence[UserView]:
        body = {"provider": provider_id, "subjects": [*subjects], "group": group}
        return cast(Sequence[UserView], self._transport.post("/users:onboard", body)["items"])


def _path(provider_id: str) -> str:
    return f"/auth/providers/{segment(provider_id)}"
