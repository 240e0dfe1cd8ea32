"""GitHub, and GitHub Enterprise Server: plain OAuth without ID tokens, so the API is asked who has signed in."""

from __future__ import annotations

from urllib.parse import quote

from corral.control.records import ProviderRecord
from corral.server.auth.kinds.link_pages import all_pages
from corral.server.auth.kinds.provider_kind import Check, Endpoints, Grant
from corral.server.auth.outside import Person, ProviderFailed, fetch, fetch_json, text

PUBLIC = "https://github.com"
PUBLIC_API = "https://api.github.com"
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHub:
    scope = "read:user user:email"

    async def endpoints(self, provider: ProviderRecord) -> Endpoints:
        base = f"{provider.issuer}/login/oauth"
        return Endpoints(
            authorization=f"{base}/authorize", token=f"{base}/access_token", auth_method="client_secret_post"
        )

    async def person(self, provider: ProviderRecord, grant: Grant) -> Person:
        """GitHub has no nonce: the code, bound to this browser by state and PKCE, is what vouches."""
        headers = {**_HEADERS, "Authorization": f"Bearer {grant.access_token}"}
        user = await fetch_json(f"{_api(provider)}/user", headers=headers)
        if not isinstance(user, dict) or not text(user, "id") or not text(user, "login"):
            raise ProviderFailed("GitHub does not say who has signed in")
        email = await self._verified_email(provider, headers)
        return Person(subject=text(user, "id"), login=text(user, "login"), name=text(user, "name"), email=email)

    async def people(self, provider: ProviderRecord, api_token: str) -> list[Person] | None:
        if not api_token or not provider.organisation:
            return None
        headers = {**_HEADERS, "Authorization": f"Bearer {api_token}"}
        url = f"{_api(provider)}/orgs/{quote(provider.organisation, safe='')}/members?per_page=100"
        found = await all_pages(url, headers=headers)
        return [Person(subject=text(item, "id"), login=text(item, "login")) for item in found]

    async def checks(self, provider: ProviderRecord) -> list[Check]:
        url = f"{_api(provider)}/meta"
        try:
            await fetch(url, headers=_HEADERS)
        except ProviderFailed as error:
            return [Check(name="api", state="fail", detail=str(error), hint=error.hint)]
        found = [Check(name="api", state="ok", detail=f"{_api(provider)} answers")]
        if bool(provider.api_token) != bool(provider.organisation):
            missing = "organisation" if provider.api_token else "api_token"
            hint = f"Give {missing} to list an organisation's members; else only those who tried to sign in are listed."
            found.append(Check(name="people", state="warn", detail=f"there is no {missing}", hint=hint))
        return found

    async def date(self, provider: ProviderRecord) -> str:
        return str((await fetch(f"{_api(provider)}/meta", headers=_HEADERS)).headers.get("date", ""))

    async def _verified_email(self, provider: ProviderRecord, headers: dict[str, str]) -> str:
        """The primary address; the one in the profile says nothing about who reads it."""
        emails = await fetch_json(f"{_api(provider)}/user/emails", headers=headers)
        for item in emails if isinstance(emails, list) else ():
            if isinstance(item, dict) and item.get("primary") is True and item.get("verified") is True:
                return text(item, "email")
        return ""


def _api(provider: ProviderRecord) -> str:
    return PUBLIC_API if provider.issuer == PUBLIC else f"{provider.issuer}/api/v3"
