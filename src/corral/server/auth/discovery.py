"""Discovery of OIDC providers: addresses and keys, fetched when needed and cached for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from corral.server.auth.outside import ProviderFailed, fetch, json_of

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

LIFETIME_SECONDS = 3600.0
WELL_KNOWN = "/.well-known/openid-configuration"
_REQUIRED = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """The used fields of a provider's discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    auth_methods: tuple[str, ...]
    algorithms: tuple[str, ...]
    pkce_methods: tuple[str, ...]
    scopes: tuple[str, ...]
    sends_issuer: bool
    #: the Date header of the answer, for comparing clocks
    date: str


@dataclass(slots=True)
class _Remembered:
    metadata: Metadata | None = None
    metadata_until: float = 0.0
    keys: KeySet | None = None
    keys_until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Discovery:
    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic, lifetime: float = LIFETIME_SECONDS) -> None:
        self._monotonic = monotonic
        self._lifetime = lifetime
        self._remembered: dict[str, _Remembered] = {}

    async def metadata(self, issuer: str, *, fresh: bool = False) -> Metadata:
        entry = self._entry(issuer)
        # One request at a time: many simultaneous sign-ins need one answer.
        async with entry.lock:
            if fresh or entry.metadata is None or self._monotonic() >= entry.metadata_until:
                answer = await fetch(issuer.rstrip("/") + WELL_KNOWN)
                entry.metadata = _metadata(issuer, answer)
                entry.metadata_until = self._monotonic() + self._lifetime
            return entry.metadata

    async def keys(self, issuer: str, *, fresh: bool = False) -> KeySet:
        """The keys that sign ID tokens; `fresh` if a token names an unknown key."""
        metadata = await self.metadata(issuer)
        entry = self._entry(issuer)
        async with entry.lock:
            if fresh or entry.keys is None or self._monotonic() >= entry.keys_until:
                entry.keys = _key_set(metadata.jwks_uri, json_of(await fetch(metadata.jwks_uri)))
                entry.keys_until = self._monotonic() + self._lifetime
            return entry.keys

    def forget(self, issuer: str) -> None:
        self._remembered.pop(issuer, None)

    def _entry(self, issuer: str) -> _Remembered:
        return self._remembered.setdefault(issuer, _Remembered())


def _metadata(issuer: str, answer: httpx.Response) -> Metadata:
    document = json_of(answer)
    if not isinstance(document, dict):
        raise ProviderFailed(f"{answer.request.url} is not a discovery document", hint="Check the issuer.")
    missing = [name for name in _REQUIRED if not isinstance(document.get(name), str)]
    if missing:
        raise ProviderFailed(f"{answer.request.url} lacks {', '.join(missing)}", hint="Check the issuer.")
    if document["issuer"] != issuer:
        raise ProviderFailed(
            f"the provider calls itself {document['issuer']!r}, not {issuer!r}",
            hint=f"Set the issuer to exactly {document['issuer']}.",
        )
    userinfo = document.get("userinfo_endpoint")
    return Metadata(
        issuer=issuer,
        authorization_endpoint=document["authorization_endpoint"],
        token_endpoint=document["token_endpoint"],
        jwks_uri=document["jwks_uri"],
        userinfo_endpoint=userinfo if isinstance(userinfo, str) else None,
        auth_methods=_names(document.get("token_endpoint_auth_methods_supported"), "client_secret_basic"),
        algorithms=_names(document.get("id_token_signing_alg_values_supported"), "RS256"),
        pkce_methods=_names(document.get("code_challenge_methods_supported")),
        scopes=_names(document.get("scopes_supported")),
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        date=answer.headers.get("date", ""),
    )


def _names(value: Any, *default: str) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) and value else default


def _key_set(url: str, document: Any) -> KeySet:
    # Here and not above: loaded by the first sign-in with a provider, not by every start of a server.
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    listed = document.get("keys") if isinstance(document, dict) else None
    # Keys for encryption and of unknown types are ignored.
    usable = []
    for key in listed if isinstance(listed, list) else ():
        if isinstance(key, dict) and key.get("use", "sig") == "sig" and key.get("kty") in ("RSA", "EC", "OKP"):
            try:
                usable += KeySet.import_key_set({"keys": [key]}).keys
            except (JoseError, ValueError, TypeError, KeyError):
                continue
    if not usable:
        raise ProviderFailed(f"{url} has no key that can verify a signature", hint="Look at the provider's keys.")
    return KeySet(usable)
