"""Requests to the API server as raw JSON, and what its refusals mean."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path
from typing import Any

import httpx

from corral.engines.kubernetes.api.credentials import Credential, CredentialError
from corral.engines.kubernetes.api.kubeconfig import Access

#: An API server that answers later than this is treated as unavailable.
TIMEOUT_SECONDS = 20.0
#: A connection that is dead without a word is noticed within about half a minute, also while nothing is sent.
_KEEP_ALIVE: tuple[tuple[int, int, int], ...] = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
_MERGE_PATCH = "application/merge-patch+json"

#: As the API server words that the account of corral has no right.
NO_RIGHT = re.compile(r'User ".*" cannot \w+ resource')
_HEADERS = {"Accept": "application/json", "User-Agent": "corral"}

#: An object of the API.
Json = dict[str, Any]


class ApiError(Exception):
    """The API server refused a request; the message is its own."""

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class ApiNotFound(ApiError):
    """The object does not exist."""


class ApiConflict(ApiError):
    """The object exists already, or has changed since it was read."""


class ApiForbidden(ApiError):
    """A right is missing, a quota is used up, or an admission policy refuses it."""

    @property
    def is_missing_right(self) -> bool:
        return NO_RIGHT.search(str(self)) is not None


class ApiGone(ApiError):
    """The version that a watch begins at is too old: list again."""


class ApiUnavailable(Exception):
    """The API server cannot be reached, is too busy, or accepts no credential at this moment: try again later."""


_KINDS: Mapping[int, type[ApiError]] = {403: ApiForbidden, 404: ApiNotFound, 409: ApiConflict, 410: ApiGone}


class Bearer(httpx.Auth):
    """Adds the token, and replaces it once if the API server does not accept it."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._credential.token()
        response = yield _with_token(request, token)
        if response.status_code == 401 and token:
            self._credential.refuse(token)
            yield _with_token(request, self._credential.token())

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        # A plugin may take seconds: the other streams go on meanwhile.
        token = await asyncio.to_thread(self._credential.token)
        response = yield _with_token(request, token)
        if response.status_code == 401 and token:
            self._credential.refuse(token)
            yield _with_token(request, await asyncio.to_thread(self._credential.token))


def _with_token(request: httpx.Request, token: str) -> httpx.Request:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
    return request


class ApiClient:
    """Safe for several threads. Raises ApiError and ApiUnavailable."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._extensions = {"sni_hostname": access.server_name} if access.server_name else {}
        self._context = ssl_context(access)
        self._client = httpx.Client(**self._options(), timeout=TIMEOUT_SECONDS)
        #: how many requests were sent
        self.requests = 0

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        return self._send("GET", path, params=params)

    def create(self, path: str, body: Json) -> Json:
        return self._send("POST", path, body=body)

    def patch(self, path: str, body: Json) -> Json:
        """A merge patch: null removes a field, and a list replaces the whole list."""
        return self._send("PATCH", path, body=body, content_type=_MERGE_PATCH)

    def delete(self, path: str, body: Json | None = None) -> Json:
        return self._send("DELETE", path, body=body or {})

    @property
    def access(self) -> Access:
        return self._access

    def streams(self) -> httpx.AsyncClient:
        """An asynchronous client for watches and logs. The caller closes it, in the same event loop."""
        transport = httpx.AsyncHTTPTransport(
            verify=self._context,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            proxy=self._access.proxy,
            socket_options=_KEEP_ALIVE,
        )
        return httpx.AsyncClient(
            base_url=self._access.server,
            auth=Bearer(self._access.credential),
            transport=transport,
            trust_env=False,
            headers=_HEADERS,
            timeout=TIMEOUT_SECONDS,
            event_hooks={"request": [self._name_server]},
        )

    def close(self) -> None:
        self._client.close()

    def _options(self) -> dict[str, Any]:
        return {
            "base_url": self._access.server,
            "verify": self._context,
            "auth": Bearer(self._access.credential),
            "proxy": self._access.proxy,
            "trust_env": False,
            "headers": _HEADERS,
        }

    async def _name_server(self, request: httpx.Request) -> None:
        """The name that the server's certificate must have."""
        request.extensions = {**request.extensions, **self._extensions}

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Json:
        self.requests += 1
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": content_type}
        try:
            response = self._client.request(
                method, path, params=params, content=content, headers=headers, extensions=dict(self._extensions)
            )
        except (httpx.HTTPError, CredentialError) as error:
            raise ApiUnavailable(unreachable(error)) from error
        check(response.status_code, response.content)
        return parse(response.content)


def parse(content: bytes) -> Json:
    """Raises ApiUnavailable for what no API server sends, such as the page of a proxy in front of it."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ApiUnavailable(f"the answer is not an object of Kubernetes: {content[:100].decode(errors='replace')!r}")
    return body


def unreachable(error: Exception) -> str:
    return str(error) or type(error).__name__


def check(status: int, content: bytes) -> None:
    """Raises ApiError or ApiUnavailable for an answer that is none."""
    if status < 400:
        return
    try:
        body = json.loads(content)
        message, reason = str(body.get("message") or ""), str(body.get("reason") or "")
    except (ValueError, AttributeError):
        message, reason = content.decode(errors="replace").strip()[:300], ""
    message = message or f"HTTP status {status}"
    # 401 may be over when a token file or a plugin has a new one.
    if status in (401, 408, 429) or status >= 500:
        raise ApiUnavailable(f"{message} (HTTP {status})")
    raise _KINDS.get(status, ApiError)(status, message, reason)


def ssl_context(access: Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.ca.decode() if access.ca else None)
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.client_certificate and access.client_key:
        # OpenSSL reads them from files only.
        with tempfile.TemporaryDirectory(prefix="corral-") as directory:
            certificate, key = Path(directory) / "certificate", Path(directory) / "key"
            certificate.write_bytes(access.client_certificate)
            key.touch(mode=0o600)
            key.write_bytes(access.client_key)
            context.load_cert_chain(certificate, key)
    return context
