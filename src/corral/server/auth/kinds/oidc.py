"""Any provider that speaks OpenID Connect, with discovery: Keycloak, Authentik, Dex, Google, …

The verified ID token identifies the person. User info only adds a login, a name and an e-mail address.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from corral.control.records import ProviderRecord
from corral.core.counts import counted
from corral.server.auth.discovery import Discovery, Metadata
from corral.server.auth.kinds.provider_kind import Check, Endpoints, Grant
from corral.server.auth.outside import Person, ProviderFailed, fetch_json, names, text

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

#: Signatures with a key pair only: every holder of a shared secret could sign a token for any account.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
_GROUP_SCOPES = frozenset({"groups"})
LEEWAY_SECONDS = 60
MAX_SKEW_SECONDS = 60


class OpenIdConnect:
    scope = "openid profile email"
    #: claims that can be a login, best first
    login_claims: tuple[str, ...] = ("preferred_username", "nickname", "email")

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery

    async def endpoints(self, provider: ProviderRecord) -> Endpoints:
        metadata = await self._discovery.metadata(provider.issuer)
        return Endpoints(
            authorization=metadata.authorization_endpoint,
            token=metadata.token_endpoint,
            auth_method=_auth_method(metadata, has_secret=bool(provider.client_secret)),
            issuer=metadata.issuer,
            # Some providers name groups only if they are asked; others refuse scopes that they do not know.
            more_scopes=_GROUP_SCOPES & set(metadata.scopes) if provider.group_rules else frozenset(),
            sends_issuer=metadata.sends_issuer,
        )

    async def person(self, provider: ProviderRecord, grant: Grant) -> Person:
        claims = await self._verified(provider, grant)
        metadata = await self._discovery.metadata(provider.issuer)
        if metadata.userinfo_endpoint is not None:
            headers = {"Authorization": f"Bearer {grant.access_token}"}
            info = await fetch_json(metadata.userinfo_endpoint, headers=headers)
            if not isinstance(info, dict) or info.get("sub") != claims["sub"]:
                raise ProviderFailed("the user info is about another account than the ID token")
            claims = {**info, **claims}
        email = text(claims, "email") if claims.get("email_verified") is True else ""
        login = next((found for name in self.login_claims if (found := text(claims, name))), "")
        subject = claims["sub"]
        return Person(
            subject=subject,
            login=login or subject,
            name=text(claims, "name"),
            email=email,
            member_of=names(claims, provider.groups_claim),
        )

    async def people(self, provider: ProviderRecord, api_token: str) -> list[Person] | None:
        return None

    async def checks(self, provider: ProviderRecord) -> list[Check]:
        self._discovery.forget(provider.issuer)
        try:
            metadata = await self._discovery.metadata(provider.issuer, fresh=True)
        except ProviderFailed as error:
            return [Check(name="discovery", state="fail", detail=str(error), hint=error.hint)]
        found = [Check(name="discovery", state="ok", detail=f"{metadata.issuer} describes itself")]
        try:
            keys = await self._discovery.keys(provider.issuer, fresh=True)
            found.append(
                Check(name="keys", state="ok", detail=f"{counted(len(keys.keys), 'key')} that can verify a signature")
            )
        except ProviderFailed as error:
            found.append(Check(name="keys", state="fail", detail=str(error), hint=error.hint))
        return [*found, _algorithm_check(metadata), _pkce_check(metadata)]

    async def date(self, provider: ProviderRecord) -> str:
        """The provider's time in its last answer."""
        return (await self._discovery.metadata(provider.issuer)).date

    async def _verified(self, provider: ProviderRecord, grant: Grant) -> dict[str, Any]:
        # Here and not above: loaded by the first sign-in with a provider, not by every start of a server.
        from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError

        token = grant.answer.get("id_token")
        if not isinstance(token, str):
            raise ProviderFailed("the provider sent no ID token", hint="Allow the scope openid for this client.")
        try:
            try:
                claims = _decoded(token, await self._discovery.keys(provider.issuer))
            except InvalidKeyIdError:
                # Providers change their keys: fetch them again.
                claims = _decoded(token, await self._discovery.keys(provider.issuer, fresh=True))
            _check_claims(claims, provider, grant)
        except ExpiredTokenError:
            raise ProviderFailed("the ID token has expired", hint="Compare the clocks of both machines.") from None
        except (JoseError, ValueError) as error:
            raise ProviderFailed(f"the ID token is not valid: {error}") from None
        return claims


def _decoded(token: str, keys: KeySet) -> dict[str, Any]:
    from joserfc import jwt
    from joserfc.jws import JWSRegistry

    registry = JWSRegistry(algorithms=sorted(ALGORITHMS), strict_check_header=False)
    return dict(jwt.decode(token, keys, registry=registry).claims)


def _check_claims(claims: dict[str, Any], provider: ProviderRecord, grant: Grant) -> None:
    from joserfc import jwt

    jwt.JWTClaimsRegistry(
        now=int(grant.now),
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": provider.issuer},
        aud={"essential": True, "value": provider.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": grant.nonce},
    ).validate(claims)
    audience = claims["aud"]
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != provider.client_id:
        raise ValueError("it was made for another client")
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255 or not claims["sub"].isprintable():
        raise ValueError("its subject is no text of up to 255 characters")


def _auth_method(metadata: Metadata, *, has_secret: bool) -> str:
    if not has_secret:
        return "none"
    for method in ("client_secret_basic", "client_secret_post"):
        if method in metadata.auth_methods:
            return method
    raise ProviderFailed(
        f"the provider wants {', '.join(metadata.auth_methods)} at its token endpoint",
        hint="Allow client_secret_basic or client_secret_post for this client.",
    )


def _algorithm_check(metadata: Metadata) -> Check:
    shared = sorted(ALGORITHMS & set(metadata.algorithms))
    if shared:
        return Check(name="signatures", state="ok", detail=", ".join(shared))
    offered = ", ".join(metadata.algorithms)
    return Check(name="signatures", state="fail", detail=f"only {offered}", hint="Let it sign ID tokens with RS256.")


def _pkce_check(metadata: Metadata) -> Check:
    if "S256" in metadata.pkce_methods:
        return Check(name="pkce", state="ok", detail="S256")
    return Check(
        name="pkce",
        state="warn",
        detail="the provider does not say that it knows PKCE with S256",
        hint="It is sent nevertheless. If signing in fails, allow it for this client.",
    )


def clock_check(date: str, now: float) -> Check:
    """Whether both clocks agree: ID tokens are valid for minutes only."""
    try:
        skew = parsedate_to_datetime(date).timestamp() - now
    except ValueError:
        return Check(name="clock", state="warn", detail="the provider does not say what time it is")
    if abs(skew) <= MAX_SKEW_SECONDS:
        return Check(name="clock", state="ok", detail=f"{abs(skew):.0f} s apart")
    side = "behind" if skew > 0 else "ahead of"
    return Check(
        name="clock",
        state="fail",
        detail=f"this machine's clock is {abs(skew):.0f} s {side} the provider's",
        hint="Switch on time synchronisation (NTP) on both.",
    )
