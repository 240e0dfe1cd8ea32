"""Sign-in with a provider: the redirect to the provider, its callback, and the test of its settings.

The authorization code flow, with state, nonce and PKCE. Decides whether an answer is valid; the use cases decide which
accounts of a provider may sign in. Nothing here reads or writes the store.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Collection, Mapping
from typing import Any

import httpx

from corral.control.people.ldap_directories import FoundPerson
from corral.control.people.sign_in_providers import DEFAULT_ISSUERS, EVERYBODY
from corral.control.ports import Clock
from corral.control.records import IdentityRecord, ProviderKind, ProviderRecord
from corral.server.auth.directory.directory_threads import DirectoryThreads
from corral.server.auth.discovery import Discovery
from corral.server.auth.kinds import Kind, kinds_with
from corral.server.auth.kinds.oidc import clock_check
from corral.server.auth.kinds.provider_kind import Check, Endpoints, Grant
from corral.server.auth.outside import Person, ProviderFailed, http_options, oauth
from corral.server.auth.secret_box import SecretBox, SecretUnreadable
from corral.server.auth.tickets import Ticket, TicketOffice

log = logging.getLogger("corral.server.auth")

_ERROR_CODE = re.compile(r"[a-z_]{1,64}")
#: Answers to an invented code that mean: the client itself was accepted.
_UNKNOWN_CODE = frozenset({"invalid_grant", "bad_verification_code"})
_UNKNOWN_CLIENT = frozenset({"invalid_client", "unauthorized_client", "incorrect_client_credentials"})
#: GitHub's and GitLab's client ids have a known form; a secret or a name in its place is a common mistake.
_CLIENT_ID_FORMS = {
    ProviderKind.GITHUB: (re.compile(r"(Iv1\.|Iv23|Ov23)[A-Za-z0-9]{10,40}|[0-9a-f]{20}"), "Ov23li… or Iv1.…"),
    ProviderKind.GITLAB: (re.compile(r"[0-9a-f]{64}"), "64 hexadecimal digits"),
}


class SignIn:
    def __init__(self, *, box: SecretBox, clock: Clock, discovery: Discovery | None = None) -> None:
        self.tickets = TicketOffice(now=clock.now)
        self._box = box
        self._clock = clock
        self._discovery = discovery or Discovery()
        self._kinds = kinds_with(self._discovery)
        self._directories = DirectoryThreads(now=clock.now)

    def close(self) -> None:
        self._directories.close()

    async def with_password(
        self, provider: ProviderRecord, login: str, password: str
    ) -> tuple[IdentityRecord, tuple[str, ...]] | None:
        """The person in the directory whose login and password these are, and their groups; None if there is no such
        person, if the password is another, or if the account is disabled. Raises ProviderFailed."""
        person = await self._directories.person(provider, self._secret(provider.client_secret), login, password)
        return None if person is None else (_identity(provider, person), person.member_of)

    async def begin(self, provider: ProviderRecord, *, redirect_uri: str, next: str) -> tuple[str, Ticket]:
        """The address to redirect the browser to, and the ticket that it must return."""
        kind = self._kinds[provider.kind]
        endpoints = await kind.endpoints(provider)
        ticket = self.tickets.issue(provider=provider.id, redirect_uri=redirect_uri, next=next)
        async with self._client(provider, kind, endpoints, redirect_uri) as client:
            url, _ = client.create_authorization_url(
                endpoints.authorization, state=ticket.state, nonce=ticket.nonce, code_verifier=ticket.verifier
            )
        return str(url), ticket

    def forget(self, provider: ProviderRecord) -> None:
        """The provider's settings have changed: discover it again."""
        self._discovery.forget(provider.issuer)

    def ticket_for(self, provider_id: str, cookie: str | None, state: str | None) -> Ticket:
        """The ticket of a callback, once. Raises ProviderFailed for every callback that this server did not begin
        recently in this browser."""
        ticket = self.tickets.opened(cookie) if cookie else None
        if ticket is None or ticket.provider != provider_id:
            raise _broken_off("This sign-in was not begun in this browser, or more than ten minutes ago.")
        if not state or not hmac.compare_digest(ticket.state.encode(), state.encode("utf-8", "replace")):
            raise _broken_off("This answer does not belong to the sign-in that was begun in this browser.")
        if not self.tickets.use(ticket):
            raise _broken_off("This sign-in was finished already.", slug="sign-in-replayed")
        return ticket

    async def finish(
        self, provider: ProviderRecord, ticket: Ticket, answer: Mapping[str, str]
    ) -> tuple[IdentityRecord, tuple[str, ...]]:
        """The person who signed in, and the groups that the provider names. Raises ProviderFailed."""
        kind = self._kinds[provider.kind]
        endpoints = await kind.endpoints(provider)
        # RFC 9207: an answer of another provider must not be sent to this one.
        sender = answer.get("iss")
        if sender != endpoints.issuer and (sender is not None or endpoints.sends_issuer):
            raise ProviderFailed("The answer comes from another provider.", slug="sign-in-issuer", status=400)
        if "error" in answer:
            raise _refused(provider, answer["error"])
        if not answer.get("code"):
            raise ProviderFailed(f"{provider.title} sent neither a code nor an error.", status=400)
        async with self._client(provider, kind, endpoints, ticket.redirect_uri) as client:
            token = await _exchanged(client, endpoints, code=answer["code"], verifier=ticket.verifier)
        access_token = token.get("access_token")
        if not isinstance(access_token, str):
            raise ProviderFailed(f"{provider.title} sent no access token.")
        grant = Grant(access_token=access_token, answer=token, nonce=ticket.nonce, now=self._clock.now())
        person = await kind.person(provider, grant)
        return _identity(provider, person), person.member_of

    async def present(self, provider: ProviderRecord, subjects: Collection[str]) -> list[FoundPerson]:
        """People among these whom a directory still has, with their groups. Raises ProviderFailed."""
        found = await self._directories.present(provider, self._secret(provider.client_secret), subjects)
        return [FoundPerson(subject=person.subject, member_of=person.member_of) for person in found]

    async def people(self, provider: ProviderRecord) -> list[IdentityRecord] | None:
        """All accounts that could sign in, or None if the provider does not list them."""
        if provider.kind is ProviderKind.LDAP:
            listed = await self._directories.people(provider, self._secret(provider.client_secret))
            return [_identity(provider, person) for person in listed]
        token = self._secret(provider.api_token) if provider.api_token else ""
        found = await self._kinds[provider.kind].people(provider, token)
        return None if found is None else [_identity(provider, person) for person in found if person.subject]

    async def test(self, provider: ProviderRecord, *, redirect_uri: str) -> list[Check]:
        """All checks that are possible without a user signing in."""
        if provider.kind is ProviderKind.LDAP:
            problems = self._secret_checks(provider)
            return problems or await self._directories.checks(provider, self._secret(provider.client_secret))
        kind = self._kinds[provider.kind]
        found = await kind.checks(provider)
        found += [_client_id_check(provider), *_allow_checks(provider), *self._secret_checks(provider)]
        if all(check.state != "fail" for check in found):
            found.append(await self._client_check(provider, kind, redirect_uri))
            found.append(clock_check(await kind.date(provider), self._clock.now()))
        found.append(await _redirect_check(redirect_uri))
        return found

    def _secret_checks(self, provider: ProviderRecord) -> list[Check]:
        """Checks of the provider's secrets, for operators only: the reason names the key file."""
        try:
            for encrypted in (provider.client_secret, provider.api_token):
                if encrypted:
                    self._box.decrypt(encrypted)
        except SecretUnreadable as error:
            hint = f"corral provider edit {provider.id} --client-secret-stdin"
            return [Check(name="secret", state="fail", detail=str(error), hint=hint)]
        return []

    async def _client_check(self, provider: ProviderRecord, kind: Kind, redirect_uri: str) -> Check:
        """Send an invented code: the kind of refusal shows whether the provider accepts the client."""
        try:
            endpoints = await kind.endpoints(provider)
            async with self._client(provider, kind, endpoints, redirect_uri) as client:
                await client.fetch_token(endpoints.token, code="corral-test", code_verifier="v" * 43)
        except oauth().OAuthError as error:
            if error.error in _UNKNOWN_CODE:
                return Check(name="client", state="ok", detail="the provider accepts the client id and secret")
            if error.error in _UNKNOWN_CLIENT:
                hint = "Copy both from the provider once more; a secret may have been replaced there."
                return Check(name="client", state="fail", detail="client id or secret are not accepted", hint=hint)
            said = _error_code(error.error)
            return Check(name="client", state="warn", detail=f"the provider answers {said}", hint="Try to sign in.")
        except (ProviderFailed, httpx.HTTPError, ValueError) as error:
            return Check(name="client", state="fail", detail=str(error) or type(error).__name__, hint="Try again.")
        return Check(name="client", state="warn", detail="the provider accepts any code", hint="Do not use it.")

    def _client(self, provider: ProviderRecord, kind: Kind, endpoints: Endpoints, redirect_uri: str) -> Any:
        return oauth().AsyncOAuth2Client(
            client_id=provider.client_id,
            client_secret=self._secret(provider.client_secret) if provider.client_secret else None,
            token_endpoint_auth_method=endpoints.auth_method if provider.client_secret else "none",
            scope=" ".join([kind.scope, *sorted(endpoints.more_scopes)]),
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            **http_options(endpoints.token),
        )

    def _secret(self, encrypted: str) -> str:
        """The secret itself; "" if there is none."""
        if not encrypted:
            return ""
        try:
            return self._box.decrypt(encrypted)
        except SecretUnreadable as error:
            # The reason names a file, so it is only logged.
            log.error("a sign-in provider's secret cannot be read: %s", error)
            raise ProviderFailed(
                "This server cannot read the secret that it shares with the provider.",
                hint="An operator has to act: the server's log says what to do.",
                slug="secret-unreadable",
                status=503,
            ) from None


async def _exchanged(client: Any, endpoints: Endpoints, *, code: str, verifier: str) -> Mapping[str, Any]:
    try:
        token = await client.fetch_token(
            endpoints.token, grant_type="authorization_code", code=code, code_verifier=verifier
        )
    except oauth().OAuthError as error:
        if error.error in _UNKNOWN_CODE:
            raise _broken_off("The provider does not accept the code: it has expired or was used before.") from None
        if error.error in _UNKNOWN_CLIENT:
            hint = "An operator has to correct the client id or secret of this provider."
            raise ProviderFailed("The provider does not know this server.", hint=hint) from None
        raise ProviderFailed(f"The provider answers {_error_code(error.error)}.") from None
    except (httpx.HTTPError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ProviderFailed(f"The provider cannot be reached: {reason}", hint="Try again in a moment.") from None
    return token if isinstance(token, Mapping) else {}


async def _redirect_check(redirect_uri: str) -> Check:
    """Whether the redirect address leads to this server."""
    hint = "Set server.public_url in corral.yaml to the server's public address."
    try:
        async with httpx.AsyncClient(**http_options(redirect_uri)) as client:
            answer = await client.get(redirect_uri, headers={"Accept": "application/json"})
        kind = answer.json().get("type") if answer.status_code == 400 else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError) as error:
        detail = f"{redirect_uri} cannot be reached from here: {error or type(error).__name__}"
        return Check(name="redirect", state="warn", detail=detail, hint=hint)
    if kind != f"/problems/{STATE_SLUG}":
        detail = f"{redirect_uri} does not lead to this server"
        return Check(name="redirect", state="fail", detail=detail, hint=hint)
    return Check(name="redirect", state="ok", detail=redirect_uri, hint="The provider must know exactly this address.")


def _client_id_check(provider: ProviderRecord) -> Check:
    form = _CLIENT_ID_FORMS.get(provider.kind)
    if form is None or form[0].fullmatch(provider.client_id):
        return Check(name="client-id", state="ok", detail=provider.client_id)
    hint = f"{provider.kind.value}'s look like {form[1]}. Copy it from the application's page."
    return Check(name="client-id", state="warn", detail=f"{provider.client_id} has an unusual form", hint=hint)


def _allow_checks(provider: ProviderRecord) -> list[Check]:
    """Warns if every account may sign in: anyone can create an account at these providers."""
    if EVERYBODY not in provider.allow or provider.issuer not in DEFAULT_ISSUERS.values():
        return []
    detail = f"every account at {provider.issuer} may sign in"
    hint = f"corral provider edit {provider.id} --allow LOGIN"
    return [Check(name="allow", state="warn", detail=detail, hint=hint)]


def _identity(provider: ProviderRecord, person: Person) -> IdentityRecord:
    return IdentityRecord(
        provider=provider.id,
        subject=person.subject,
        login=person.login or person.subject,
        name=person.name,
        email=person.email,
    )


STATE_SLUG = "sign-in-state"


def _broken_off(message: str, slug: str = STATE_SLUG) -> ProviderFailed:
    return ProviderFailed(message, hint="Start again from the sign-in page.", slug=slug, status=400)


def _refused(provider: ProviderRecord, error: str) -> ProviderFailed:
    """The provider's own description is not shown: any site could have put it into the address."""
    if error == "access_denied":
        return ProviderFailed(f"Signing in with {provider.title} was refused there.", slug="sign-in-denied", status=403)
    return ProviderFailed(f"{provider.title} answers {_error_code(error)}.", slug="sign-in-denied", status=400)


def _error_code(error: Any) -> str:
    return error if isinstance(error, str) and _ERROR_CODE.fullmatch(error) else "with an error"
