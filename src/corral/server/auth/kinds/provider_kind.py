"""What all kinds of providers give and take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoints:
    authorization: str
    token: str
    #: how the client names itself at the token endpoint
    auth_method: str = "client_secret_basic"
    #: the only one who may be named as the sender of the answer (RFC 9207)
    issuer: str | None = None
    #: whether the answer must name its sender
    names_itself: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What a code was exchanged for."""

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
