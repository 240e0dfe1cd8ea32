"""GitLab: OpenID Connect for signing in, its REST API for listing people."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from corral.control.records import ProviderRecord
from corral.server.auth.kinds.link_pages import all_pages
from corral.server.auth.kinds.oidc import OpenIdConnect
from corral.server.auth.kinds.provider_kind import Check
from corral.server.auth.outside import Person, text


class GitLab(OpenIdConnect):
    login_claims = ("preferred_username", "nickname")

    async def people(self, provider: ProviderRecord, api_token: str) -> list[Person] | None:
        """The members of the group when one is given, else everyone whom the token may see."""
        if not api_token:
            return None
        api = f"{provider.issuer}/api/v4"
        if provider.organisation:
            url = f"{api}/groups/{quote(provider.organisation, safe='')}/members/all?per_page=100"
        else:
            url = f"{api}/users?active=true&without_project_bots=true&per_page=100"
        found = await all_pages(url, headers={"PRIVATE-TOKEN": api_token})
        return [_person(item) for item in found if item.get("state") == "active" and not item.get("bot")]

    async def checks(self, provider: ProviderRecord) -> list[Check]:
        found = await super().checks(provider)
        if provider.api_token and not provider.organisation:
            hint = "Set the organisation to a GitLab group to list its members only."
            found.append(Check(name="people", state="ok", detail="everyone whom the token may see", hint=hint))
        return found


def _person(item: dict[str, Any]) -> Person:
    # GitLab's ID tokens carry the same number as their subject. Addresses in a list may be unverified.
    return Person(subject=text(item, "id"), login=text(item, "username"), name=text(item, "name"))
