"""Passes on to the leader what a server that stands by cannot answer.

- Changes go to the leader, with the caller's own credentials. Without a leader they are refused with 503.
- Reads of what only the leader measures go to the leader, and are answered here if it does not answer soon.
- Pages of workbenches and apps, shells and tunnels go to the leader, which has the engines and the tickets; without a
  leader they are refused with 503.
- Everything else is answered here.

A forwarded request names the server that forwarded it, and is never forwarded again.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from typing import Protocol

import httpx
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from corral.server.auth.callers import SAFE_METHODS
from corral.server.http.problems import Problem, store_unavailable
from corral.server.system.waiting_reads import StoreView, WaitingReads
from corral.server.workbenches.forwarded_sockets import forward_socket
from corral.server.workbenches.proxy import FOREIGN

log = logging.getLogger("corral.server.forwarding")

#: "NAME KEY ADDRESS": the server that forwards, its key, and the address of the caller.
MARK = "X-Corral-Forwarded"
#: Which server has answered, and which leads.
ANSWERED_BY = "X-Corral-Server"
CONNECT_SECONDS = 2.0
#: How long a read waits for the leader before it is answered here, and so are the next ones.
READ_SECONDS = 1.0
SKIP_SECONDS = 3.0
ANSWER_SECONDS = 300.0
#: How often a waiting request looks whether another server leads by now.
LOOK_SECONDS = 0.2
#: The same for a WebSocket that is open.
SOCKET_LOOK_SECONDS = 1.0
#: How long the answer to a change waits until this server has followed it.
FOLLOW_SECONDS = 2.0
RETRY_AFTER_SECONDS = 1
#: Answers up to this size are complete before they are passed on, within this time.
WHOLE_BYTES = 1 << 20
BODY_SECONDS = 10.0

#: Reads of readings, history, estimated starts, progress and health of clusters.
LEADER_FIRST = re.compile(
    r"/api/v1/(nodes|gpus|clusters|overview|trends|estimates|analysis|simulations|shadow|datasets|panel)(/.*)?"
    r"|/api/v1/(jobs|jobs/[^/]+|jobs/[^/]+/(metrics|why|receipts)|queues/[^/]+/order|receipts)|(/api/v1)?/metrics"
)
#: Reads that are changes as well: the end of a sign-in with a provider.
LEADER_ONLY = re.compile(r"/api/v1/auth/.*")
#: Pages of workbenches and apps at the console's own origin.
PAGES = re.compile(r"/workbenches/[^/]+/(jupyter|enter)(/.*)?|/apps/[^/]+(/.*)?", re.DOTALL)
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
#: What a reverse proxy says about the caller. The leader must not read it from a request that another server forwards:
#: that server may be at an address that the leader trusts as a proxy, and its caller can write anything there.
_OF_PROXIES = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-port", b"x-forwarded-proto", b"x-real-ip"}
)


class Peer(StoreView, Protocol):
    """This server among the others, of which one may lead."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def is_leading(self) -> bool: ...

    def leader_url(self) -> str | None: ...

    def is_page(self, scope: Scope) -> bool:
        """Whether the request is for the origin of a workbench or an app."""

    def is_server(self, name: str, key: str) -> bool: ...

    async def caught_up(self) -> None:
        """Waits until everything is followed that was committed before."""


class LeaderUnavailable(Exception):
    """The leader did not answer. `is_sent`: the request may have reached it."""

    def __init__(self, reason: str, *, is_sent: bool) -> None:
        super().__init__(reason)
        self.is_sent = is_sent


class Forwarding:
    """An ASGI layer around the application."""

    def __init__(self, app: ASGIApp, *, peer: Peer, ca: str | None = None) -> None:
        """`ca` has the authorities of the other servers' certificates; None: those of this machine."""
        self._tls = ssl.create_default_context(cafile=ca)
        self._app = app
        self._peer = peer
        self._reads = WaitingReads(self._routed, peer)
        #: reads do not wait for a leader that did not answer lately, in the loop's time
        self._skip_until = float("-inf")
        # The servers' addresses are configured: no proxy of the environment, no redirects.
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,
            verify=self._tls,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif self._may_wait(scope):
            await self._reads(scope, receive, send)
        else:
            await self._routed(scope, receive, send)

    def _may_wait(self, scope: Scope) -> bool:
        """Whether it is a read that may be repeated here. One that another server has forwarded is answered there, if
        it cannot be answered here."""
        if scope["type"] != "http" or scope["method"] not in SAFE_METHODS or not scope["path"].startswith("/api/"):
            return False
        return not (_mark_of(scope) or LEADER_ONLY.fullmatch(scope["path"]) or self._peer.is_page(scope))

    async def _routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        mark = _mark_of(scope)
        # It has the key of a server: what is behind this layer, such as the programs of jobs, must not get it.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != MARK.lower().encode()]
        sending = self._naming(send)
        if self._peer.is_leading:
            self._believe(scope, mark)
            await self._app(scope, receive, sending)
            return
        if scope["type"] == "websocket":
            await self._forwarded_socket(scope, receive, send, mark)
            return
        is_read, path = scope["method"] in SAFE_METHODS, scope["path"]
        if PAGES.fullmatch(path) or self._peer.is_page(scope):
            leader = None if mark else self._peer.leader_url()
            if leader is None:
                await no_leader().response()(scope, receive, sending)
            else:
                # The leader has set the headers of the page.
                scope[FOREIGN] = True
                await self._forwarded(leader, scope, receive, sending, is_read=False)
            return
        if is_read and (mark or not (LEADER_FIRST.fullmatch(path) or LEADER_ONLY.fullmatch(path))):
            await self._app(scope, receive, sending)
            return
        leader = self._peer.leader_url()
        is_skipped = is_read and asyncio.get_running_loop().time() < self._skip_until
        if mark or leader is None or is_skipped:
            if is_read and not mark:
                await self._app(scope, receive, sending)
            else:
                await no_leader().response()(scope, receive, sending)
            return
        await self._forwarded(leader, scope, receive, sending, is_read=is_read)

    async def _forwarded(self, leader: str, scope: Scope, receive: Receive, send: Send, *, is_read: bool) -> None:
        try:
            answer = await self._answer_of(leader, scope, receive, READ_SECONDS if is_read else ANSWER_SECONDS)
            try:
                if not is_read:
                    await self._follow()
                body = await _whole(answer)
            except BaseException:
                await answer.aclose()
                raise
        except HTTPException as error:
            problem = Problem(error.status_code, "The request cannot be forwarded", str(error.detail))
            await problem.response()(scope, receive, send)
            return
        except LeaderUnavailable as error:
            log.info("%s %s was not answered by the leader: %s", scope["method"], scope["path"], error)
            if is_read:
                self._skip_until = asyncio.get_running_loop().time() + SKIP_SECONDS
                await self._app(scope, receive, send)
            else:
                problem = store_unavailable(is_unknown=True) if error.is_sent else no_leader()
                await problem.response()(scope, receive, send)
            return
        try:
            if is_read and answer.status_code in (502, 503, 504):
                await self._app(scope, receive, send)
                return
            await _pass_on(answer, body, send)
        finally:
            await answer.aclose()

    async def _forwarded_socket(self, scope: Scope, receive: Receive, send: Send, mark: str) -> None:
        websocket, leader = WebSocket(scope, receive, send), self._peer.leader_url()
        if mark or leader is None:
            await websocket.send_denial_response(no_leader().response())
            return

        async def check_still_leads() -> str:
            while self._peer.leader_url() == leader:
                await asyncio.sleep(SOCKET_LOOK_SECONDS)
            return "another server leads by now"

        await forward_socket(
            websocket, leader, self._headers(scope), self._tls, check_still_leads, no_leader().response
        )

    async def _answer_of(self, leader: str, scope: Scope, receive: Receive, seconds: float) -> httpx.Response:
        """Raises LeaderUnavailable."""
        is_sent = False
        headers = dict(scope["headers"])
        has_body = int(headers.get(b"content-length", b"0") or b"0") > 0 or b"transfer-encoding" in headers

        async def body() -> AsyncIterator[bytes]:
            nonlocal is_sent
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise httpx.WriteError("the caller has left")
                is_sent = True
                yield message.get("body", b"")
                if not message.get("more_body", False):
                    return

        request = self._http.build_request(
            scope["method"],
            _url(leader, scope),
            headers=self._headers(scope),
            content=body() if has_body else None,
        )
        sending = asyncio.ensure_future(self._http.send(request, stream=True))
        try:
            async with asyncio.timeout(seconds):
                while not sending.done():
                    await asyncio.wait({sending}, timeout=LOOK_SECONDS)
                    if not sending.done() and self._peer.leader_url() != leader:
                        raise LeaderUnavailable("another server leads by now", is_sent=True)
            return sending.result()
        except TimeoutError:
            raise LeaderUnavailable("it takes too long", is_sent=True) from None
        except (LeaderUnavailable, HTTPException):
            # The second: the body of the caller is too large.
            raise
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise LeaderUnavailable(str(error) or "it cannot be reached", is_sent=is_sent) from error
        except Exception as error:
            # Also errors of the event loop about a connection that was lost while it was written to.
            raise LeaderUnavailable(str(error) or type(error).__name__, is_sent=True) from error
        finally:
            sending.cancel()

    def _headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        client = scope.get("client")
        mark = f"{self._peer.name} {self._peer.key} {client[0] if client else ''}"
        dropped = _HOP_BY_HOP | _OF_PROXIES
        kept = [(name, value) for name, value in scope["headers"] if name not in dropped]
        scheme = (b"X-Forwarded-Proto", scope["scheme"].encode())
        return [*kept, scheme, (MARK.encode(), mark.encode("latin-1", "replace"))]

    def _believe(self, scope: Scope, mark: str) -> None:
        """Makes the request what the other server received: with the address and the scheme of the caller. In place:
        the layers around this one read what the routes write there."""
        name, _, rest = mark.partition(" ")
        key, _, address = rest.partition(" ")
        if not address or not self._peer.is_server(name, key):
            return
        scheme = dict(scope["headers"]).get(b"x-forwarded-proto", b"").decode("latin-1")
        if scheme in ("http", "https", "ws", "wss"):
            scope["scheme"] = scheme
        scope["client"] = (address, 0)

    async def _follow(self) -> None:
        """The leader has made the change: whatever happens to this server, such as that it becomes the leader itself at
        this moment, the caller gets the leader's answer."""
        try:
            async with asyncio.timeout(FOLLOW_SECONDS):
                await self._peer.caught_up()
        except Exception as error:  # noqa: BLE001 - the answer does not depend on it
            log.info("the answer of the leader is passed on before it was followed: %r", error)

    def _naming(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = [pair for pair in message["headers"] if pair[0].lower() != ANSWERED_BY.lower().encode()]
                message = {**message, "headers": [*named, (ANSWERED_BY.lower().encode(), self._peer.name.encode())]}
            await send(message)

        return sending


def _mark_of(scope: Scope) -> str:
    named: bytes = dict(scope["headers"]).get(MARK.lower().encode(), b"")
    return named.decode("latin-1")


def no_leader() -> Problem:
    return Problem(
        503,
        "No leader",
        "No server leads at the moment: another one takes over. Nothing was changed; try again in a moment.",
        slug="no-leader",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def _url(leader: str, scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return leader + (path + b"?" + query if query else path).decode("latin-1")


async def _whole(answer: httpx.Response) -> bytes | None:
    """The body, if it is short: a leader that is lost in the middle of it leaves no broken answer. None: it is passed
    on piece by piece. Raises LeaderUnavailable."""
    length = answer.headers.get("content-length", "")
    if not length.isdigit() or int(length) > WHOLE_BYTES:
        return None
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return b"".join([piece async for piece in answer.aiter_raw()])
    except Exception as error:
        raise LeaderUnavailable(str(error) or type(error).__name__, is_sent=True) from error


async def _pass_on(answer: httpx.Response, body: bytes | None, send: Send) -> None:
    headers = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _HOP_BY_HOP]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    if body is not None:
        await send({"type": "http.response.body", "body": body})
        return
    async for piece in answer.aiter_raw():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
