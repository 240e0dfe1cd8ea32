"""Requests to one server, or to one of several over the same store: addresses, headers, errors, retries, pages and
event streams.

This module decides which requests are retried, at which server, and which error an answer becomes. The routes are in
the modules of the areas.
"""

from __future__ import annotations

import json
import re
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from corral.client.http.creating_paths import CREATING_PATHS
from corral.client.http.errors import (
    ApiProblem,
    BadAddress,
    ClientError,
    ServerUnreachable,
    UnexpectedAnswer,
    problem_of,
)
from corral.client.http.sse import ServerEvent, parse
from corral.core.os_errors import reason_of

Item = TypeVar("Item")
Params = Mapping[str, Any]

PREFIX = "/api/v1"
TIMEOUT_SECONDS = 30.0
#: A stream without data, even without a ping, for this long counts as broken.
STREAM_SILENCE_SECONDS = 60.0
#: Delays before a request is retried after a dropped connection or a busy server.
RETRY_DELAYS_SECONDS = (0.2, 0.6)
RETRIED_STATUSES = frozenset({502, 503, 504})
#: Delays before a change is retried that was refused because no server leads: nothing was done. About 20 seconds.
LEADER_DELAYS_SECONDS = (0.2, 0.4, 0.8, 1.6, 3.0, 4.0, 5.0, 5.0)
NO_LEADER = "no-leader"
PAGE_ITEMS = 200
_CREATING = re.compile("|".join(CREATING_PATHS))
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def server_address(text: str) -> str:
    """The address in normal form, which is the key of its stored token; or several, separated by commas, of servers
    over the same store."""
    return ",".join(_one_address(part) for part in text.split(","))


def _one_address(text: str) -> str:
    address = text.strip()
    if "://" not in address:
        address = f"http://{address}"
    address = address.rstrip("/")
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment:
        raise BadAddress(f"{text!r} is not the address of a server", hint="Write it like http://127.0.0.1:8470.")
    return address


def segment(name: str) -> str:
    """A name as one segment of a path. Raises ClientError for an empty one, which would name the whole list."""
    if not name:
        raise ClientError("the name or id is empty")
    return quote(name, safe="")


def _reason(error: httpx.TransportError) -> str:
    """The operating system's reason without its number, if it has one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):
            return reason_of(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


class Transport:
    def __init__(self, server: str, token: str | None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.server = server_address(server)
        self._servers = self.server.split(",")
        self.sleep = sleep
        #: the ETags of objects that were read, by path, while edits are conditional
        self._read: dict[str, str] | None = None
        headers = {"User-Agent": "corral-client"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        # addresses of this machine are never reached through a proxy from the environment
        parts = [urlsplit(address) for address in self._servers]
        self._http = httpx.Client(
            base_url=self._servers[0] + PREFIX,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            trust_env=not all(part.hostname in LOOPBACK for part in parts),
            # Loading the system's certificates takes longer than a request, so it is skipped for plain HTTP. The empty
            # context trusts no certificate, should a redirect lead to TLS.
            verify=httpx.create_ssl_context()
            if any(part.scheme == "https" for part in parts)
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def close(self) -> None:
        self._http.close()

    @property
    def address(self) -> str:
        """The API's address at the server that answered last."""
        return self._servers[0] + PREFIX

    @property
    def credentials(self) -> dict[str, str]:
        """Headers for a connection that is not a request of this object's."""
        token = self._http.headers.get("Authorization")
        return {"Authorization": token} if token else {}

    def refusal_of(self, status: int, content: bytes) -> ClientError:
        """The error for an answer to such a connection."""
        return self._refusal(httpx.Response(status, content=content))

    def get(self, path: str, params: Params | None = None, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Any:
        answer = self._send("GET", path, params=params, timeout_seconds=timeout_seconds)
        self._keep_etag(path, answer)
        return self._decoded(answer)

    def get_text(self, path: str, params: Params | None = None) -> str:
        return self._send("GET", path, params=params, accept="text/plain").text

    def get_bytes(self, path: str, params: Params | None = None) -> bytes:
        return self._send("GET", path, params=params, accept="*/*").content

    def stream_text(self, path: str, params: Params | None = None) -> Iterator[str]:
        """A long text in chunks, as they arrive."""
        try:
            with closing(self._open(path, params)) as answer:
                if answer.is_error:
                    answer.read()
                    raise self._refusal(answer)
                yield from answer.iter_text()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    @contextmanager
    def opened(
        self, path: str, params: Params | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[httpx.Response]:
        """A successful answer whose content is read in chunks. A broken connection raises ServerUnreachable."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=STREAM_SILENCE_SECONDS)
        try:
            with closing(self._open(path, params, headers, timeout)) as answer:
                if answer.is_error:
                    answer.read()
                    raise self._refusal(answer)
                yield answer
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def post(self, path: str, body: Any = None, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Any:
        return self._decoded(self._send("POST", path, body=body, timeout_seconds=timeout_seconds))

    def post_for_bytes(self, path: str, body: Any) -> bytes:
        """A request whose answer is not JSON."""
        return self._send("POST", path, body=body, accept="*/*").content

    def patch(self, path: str, body: Any) -> Any:
        seen = (self._read or {}).get(path)
        answer = self._send("PATCH", path, body=body, headers={"If-Match": seen} if seen else None)
        self._keep_etag(path, answer)
        return self._decoded(answer)

    @contextmanager
    def conditional_edits(self) -> Iterator[None]:
        """In this block an edit of an object that was read in it applies only to what was read."""
        outer, self._read = self._read, {}
        try:
            yield
        finally:
            self._read = outer

    def _keep_etag(self, path: str, answer: httpx.Response) -> None:
        if self._read is not None and (etag := answer.headers.get("ETag")):
            self._read[path] = etag

    def put(self, path: str, body: Any) -> Any:
        return self._decoded(self._send("PUT", path, body=body))

    def put_bytes(
        self,
        path: str,
        content: bytes,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Any:
        """Send bytes unchanged."""
        sent = {**(headers or {}), "Content-Type": "application/octet-stream"}
        return self._decoded(
            self._send("PUT", path, params=params, content=content, headers=sent, timeout_seconds=timeout_seconds)
        )

    def delete(self, path: str, params: Params | None = None) -> Any:
        return self._decoded(self._send("DELETE", path, params=params))

    def pages(self, path: str, params: Params | None = None, *, limit: int | None = None) -> Iterator[Any]:
        """The items of a list, up to `limit`. Pages are fetched when their items are needed."""
        left, cursor = limit, None
        while left is None or left > 0:
            size = PAGE_ITEMS if left is None else min(PAGE_ITEMS, left)
            page = self.get(path, {**(params or {}), "limit": size, "cursor": cursor})
            items, cursor = page["items"], page.get("next_cursor")
            yield from items
            if left is not None:
                left -= len(items)
            if cursor is None:
                return

    def events(
        self,
        path: str,
        params: Params | None = None,
        *,
        last_event_id: str = "",
        on_open: Callable[[], None] | None = None,
    ) -> Iterator[ServerEvent]:
        """The events of one connection, until it ends. A broken connection raises ServerUnreachable."""
        headers = {"Accept": "text/event-stream"}
        if last_event_id:
            headers["Last-Event-ID"] = last_event_id
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=STREAM_SILENCE_SECONDS)
        try:
            with closing(self._open(path, params, headers, timeout)) as answer:
                if answer.is_error:
                    answer.read()
                    raise self._refusal(answer)
                if on_open is not None:
                    on_open()
                yield from parse(answer.iter_text())
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _open(
        self,
        path: str,
        params: Params | None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx.Timeout | float = TIMEOUT_SECONDS,
    ) -> httpx.Response:
        """An answer that is read in chunks, from the first server at which one listens."""
        untried = len(self._servers) - 1
        while True:
            request = self._http.build_request("GET", path, params=_present(params), headers=headers, timeout=timeout)
            try:
                return self._http.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if untried <= 0:
                    raise
                untried -= 1
                self._turn_to_next()

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        accept: str = "application/json",
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> httpx.Response:
        """The answer, if it is successful. GET requests are retried, and requests that create something: these carry a
        key, by which the server knows them again. Another change may have happened although its answer got lost. A
        refused connection is retried at the other servers only: no server listens there. A change that no server leads
        for is retried, because nothing was done."""
        sent = {"Accept": accept, **(headers or {})}
        is_creating = method == "POST" and _CREATING.fullmatch(path) is not None
        if is_creating:
            sent.setdefault("Idempotency-Key", secrets.token_hex(16))
        if body is not None:
            content, sent["Content-Type"] = _encoded(body), "application/json"
        is_repeatable = method == "GET" or is_creating
        delays, leader_delays = iter(RETRY_DELAYS_SECONDS if is_repeatable else ()), iter(LEADER_DELAYS_SECONDS)
        untried = len(self._servers) - 1
        while True:
            delay: float | None = None
            try:
                answer = self._http.request(
                    method,
                    path,
                    params=_present(params),
                    content=content,
                    headers=sent,
                    timeout=timeout_seconds,
                )
            except (httpx.ConnectError, httpx.TimeoutException, httpx.UnsupportedProtocol) as error:
                unreachable = self._unreachable(error)
                is_unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if untried <= 0 or not (is_unsent or is_repeatable):
                    raise unreachable from error
                untried -= 1
                continue
            except httpx.TransportError as error:
                unreachable = self._unreachable(error)
                delay = next(delays, None)
                if delay is None:
                    raise unreachable from error
            else:
                if not answer.is_error:
                    return answer
                refusal = self._refusal(answer)
                if isinstance(refusal, ApiProblem) and refusal.slug == NO_LEADER:
                    delay = next(leader_delays, None)
                elif answer.status_code in RETRIED_STATUSES:
                    delay = next(delays, None)
                    self._turn_to_next()
                if delay is None:
                    raise refusal
            self.sleep(delay)

    def _decoded(self, answer: httpx.Response) -> Any:
        if answer.status_code == 204 or not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise UnexpectedAnswer(self.server, "its answer is not JSON") from error

    def _refusal(self, answer: httpx.Response) -> ClientError:
        try:
            problem = answer.json()
        except ValueError:
            problem = None
        if not isinstance(problem, dict):
            return UnexpectedAnswer(self.server, f"HTTP status {answer.status_code} without problem details")
        return problem_of(answer.status_code, problem)

    def _unreachable(self, error: httpx.TransportError) -> ServerUnreachable:
        """The next request goes to the next server."""
        self._turn_to_next()
        return ServerUnreachable(self.server, _reason(error))

    def _turn_to_next(self) -> None:
        if len(self._servers) > 1:
            self._servers.append(self._servers.pop(0))
            self._http.base_url = self._servers[0] + PREFIX


def _present(params: Params | None) -> dict[str, Any] | None:
    """The parameters without those that are None."""
    if not params:
        return None
    return {key: value for key, value in params.items() if value is not None}


def _encoded(body: Any) -> bytes:
    """ASCII JSON, so that even text that is not valid Unicode reaches the server, which then reports it."""
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ClientError(f"cannot be sent as JSON: {error}") from error
