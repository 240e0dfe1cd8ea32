"""Requests to providers: fetches JSON, with short timeouts and error messages for users."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import httpx

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
USER_AGENT = "corral"
#: A person is in at most so many groups; further ones are not read.
MAX_GROUPS = 5000
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """A person, identified by a provider."""

    #: the provider's id of the account, which never changes
    subject: str
    login: str
    name: str = ""
    #: only an address that the provider has verified
    email: str = ""
    #: the groups that the provider names
    member_of: tuple[str, ...] = ()


class ProviderFailed(Exception):
    """The provider cannot be used, or its answer is not valid. `hint` is a message for operators."""

    def __init__(self, message: str, *, hint: str = "", slug: str = "sign-in-failed", status: int = 502) -> None:
        super().__init__(message)
        self.hint = hint
        self.slug = slug
        self.status = status


@cache
def oauth() -> Any:
    """Authlib, loaded by the first sign-in with a provider and not by every start of a server."""
    from authlib.deprecate import AuthlibDeprecationWarning  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        # Authlib asks for a successor of httpx that this project does not use; operators need not read that.
        warnings.simplefilter("ignore", AuthlibDeprecationWarning)
        return import_module("authlib.integrations.httpx_client")


def http_options(url: str) -> dict[str, Any]:
    """Settings of every HTTP client for providers. Redirects are not followed: only the address that an operator
    entered is used."""
    return {
        "timeout": TIMEOUT_SECONDS,
        "follow_redirects": False,
        # A proxy from the environment must not be used for this machine's own addresses.
        "trust_env": urlsplit(url).hostname not in _LOOPBACK,
    }


async def fetch(url: str, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """A successful answer to a GET. Raises ProviderFailed."""
    given = {"Accept": "application/json", "User-Agent": USER_AGENT, **(headers or {})}
    try:
        async with (
            httpx.AsyncClient(**http_options(url)) as client,
            client.stream("GET", url, headers=given) as answer,
        ):
            content = b""
            async for part in answer.aiter_bytes():
                content += part
                if len(content) > MAX_ANSWER_BYTES:
                    raise ProviderFailed(f"{url} answers with more than {MAX_ANSWER_BYTES} bytes")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise ProviderFailed(
            f"{url} cannot be reached: {reason}", hint="Check the address, DNS, the firewall and certificates."
        ) from None
    if answer.status_code != 200:
        raise ProviderFailed(f"{url} answers with HTTP status {answer.status_code}", hint=_hint_of(answer.status_code))
    # Read to its end already, under the limit on its size.
    return httpx.Response(200, headers=_plain(answer.headers), content=content, request=answer.request)


async def fetch_json(url: str, *, headers: Mapping[str, str] | None = None) -> Any:
    return json_of(await fetch(url, headers=headers))


def json_of(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise ProviderFailed(f"{answer.request.url} does not answer with JSON", hint="Check the address.") from None


def names(claims: Mapping[str, Any], claim: str) -> tuple[str, ...]:
    """The texts of a claim with one or several; dots lead into objects, as in `realm_access.roles`."""
    value: Any = claims.get(claim)
    if value is None:
        value = claims
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(item for item in listed[:MAX_GROUPS] if isinstance(item, str))


def text(claims: Mapping[str, Any], name: str, limit: int = 253) -> str:
    """A claim as text that can be stored and shown."""
    value = claims.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    return "".join(char for char in value if char.isprintable())[:limit].strip()


def _plain(headers: httpx.Headers) -> list[tuple[str, str]]:
    """The headers without those of the encoding, which was decoded already."""
    undone = ("content-encoding", "content-length", "transfer-encoding")
    return [(name, value) for name, value in headers.multi_items() if name.lower() not in undone]


def _hint_of(status: int) -> str:
    if status in (401, 403):
        return "The token is not accepted or may not do this: give another one."
    if status == 404:
        return "There is nothing: check the address and the name of the organisation."
    if status in (301, 302, 303, 307, 308):
        return "It redirects: give the address that it leads to."
    return "Look at the provider's own log."
