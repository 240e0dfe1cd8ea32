"""The kinds of sign-in providers: one small module and one line here for each."""

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
    """Requests to one kind of provider. Every method may raise ProviderFailed."""

    #: scopes that are requested at sign-in
    scope: str

    async def endpoints(self, provider: ProviderRecord) -> Endpoints: ...

    async def person(self, provider: ProviderRecord, grant: Grant) -> Person:
        """The person who signed in, after all checks."""

    async def people(self, provider: ProviderRecord, api_token: str) -> list[Person] | None:
        """All accounts that could sign in, or None if this kind cannot list them."""

    async def checks(self, provider: ProviderRecord) -> list[Check]:
        """Checks of the settings that are possible without a user signing in. Never raises."""

    async def date(self, provider: ProviderRecord) -> str:
        """The provider's time, as a Date header; "" if unknown."""


def kinds_with(discovery: Discovery) -> Mapping[ProviderKind, Kind]:
    return {
        ProviderKind.OIDC: OpenIdConnect(discovery),
        ProviderKind.GITHUB: GitHub(),
        ProviderKind.GITLAB: GitLab(discovery),
    }
