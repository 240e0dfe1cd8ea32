"""The kinds of providers: one small module each, one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from corral.control.records import ProviderKind, ProviderRecord
from corral.server.auth.discovery import Discovery
from corral.server.auth.kinds.github import GitHub
from corral.server.auth.kinds.gitlab import GitLab
from corral.server.auth.kinds.oidc import OpenIdConnect
from corral.server.auth.kinds.provider_kind import Check, Endpoints, Grant
from corral.server.auth.outside import Person


class Kind(Protocol):
    """How one kind of provider is asked. Every method may raise ProviderFailed."""

    #: what is asked for at sign-in
    scope: str

    async def endpoints(self, provider: ProviderRecord) -> Endpoints: ...

    async def person(self, provider: ProviderRecord, grant: Grant) -> Person:
        """Who has signed in, after everything that vouches for it was checked."""

    async def people(self, provider: ProviderRecord, api_token: str) -> list[Person] | None:
        """Everyone who could sign in, or None if this kind cannot tell."""

    async def checks(self, provider: ProviderRecord) -> list[Check]:
        """What is wrong with the settings as far as the kind can see without anybody signing in. Never raises."""

    async def date(self, provider: ProviderRecord) -> str:
        """The provider's clock, as a Date header; "" if it does not say."""


def kinds_with(discovery: Discovery) -> Mapping[ProviderKind, Kind]:
    return {
        ProviderKind.OIDC: OpenIdConnect(discovery),
        ProviderKind.GITHUB: GitHub(),
        ProviderKind.GITLAB: GitLab(discovery),
    }
