"""Types that all kinds of providers use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoints:
    authorization: str
    token: str
    #: authentication method of the client at the token endpoint
    auth_method: str = "client_secret_basic"
    #: scopes that are requested beside those of the kind
    more_scopes: frozenset[str] = frozenset()
    #: the issuer that the answer must name (RFC 9207)
    issuer: str | None = None
    #: whether the answer must name its issuer
    sends_issuer: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The token endpoint's answer to a code."""

    access_token: str
    #: the token endpoint's whole answer
    answer: Mapping[str, Any]
    #: what the ID token must repeat
    nonce: str
    now: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One line of the test of a provider."""

    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    #: what to do about it
    hint: str = ""
