"""Answers while the store cannot be opened: /healthz is fine, all other requests are refused with 503."""

from __future__ import annotations

import json
import logging
import socket
import threading
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from corral.server.http.problems import store_unavailable
from corral.server.settings.sections.server_sections import ServerSettings

log = logging.getLogger("corral.server")

_STOP_SECONDS = 2.0


class Interim:
    """A small server on its own thread, with a copy of the socket that the server will use."""

    def __init__(self, listener: socket.socket, server: ServerSettings) -> None:
        config = uvicorn.Config(
            _answer,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=server.tls_certificate or None,
            ssl_keyfile=server.tls_key or None,
        )
        self._server = uvicorn.Server(config)
        # A copy: uvicorn closes its listening socket.
        self._socket = listener.dup()
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="interim", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        self._socket.close()


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    path = scope.get("path", "")
    if path.removeprefix("/api/v1") == "/healthz":
        await _send(send, 200, "application/json", json.dumps({"status": "ok"}).encode(), {})
        return
    problem = store_unavailable()
    answer = problem.response()
    await _send(send, problem.status, str(answer.media_type), bytes(answer.body), problem.headers)


async def _send(send: Send, status: int, media_type: str, body: bytes, headers: dict[str, str]) -> None:
    # The connection is closed, so that the next request reaches the real server.
    named: dict[str, Any] = {**headers, "Content-Type": media_type, "Content-Length": len(body), "Connection": "close"}
    pairs = [(name.lower().encode(), str(value).encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
