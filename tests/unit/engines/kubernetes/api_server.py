"""An HTTP server that answers with prepared parts: for what a healthy API server does rarely, such as breaking a watch.

The contract tests of the engine run against a real API server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from corral.engines.kubernetes.api.credentials import Credential, NoToken
from corral.engines.kubernetes.api.kubeconfig import Access


@dataclass(frozen=True, kw_only=True)
class Asked:
    method: str
    path: str
    params: dict[str, str]
    token: str
    body: Any


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int = 200
    #: sent one after the other
    parts: Sequence[bytes] = ()
    #: the connection breaks after the last part
    breaks: bool = False


def answer(body: Any, status: int = 200) -> Answer:
    return Answer(status=status, parts=[json.dumps(body).encode()])


def refusal(status: int, message: str, reason: str = "") -> Answer:
    return answer({"kind": "Status", "message": message, "reason": reason, "code": status}, status)


def events(*bodies: Any, breaks: bool = False) -> Answer:
    return Answer(parts=[json.dumps(body).encode() + b"\n" for body in bodies], breaks=breaks)


@dataclass
class ApiServer:
    respond: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def access(self, credential: Credential | None = None) -> Access:
        return Access(server=self.url, credential=credential or NoToken())


@contextmanager
def api_server(respond: Callable[[Asked], Answer]) -> Iterator[ApiServer]:
    served = ApiServer(respond)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            place = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Asked(
                method=self.command,
                path=place.path,
                params={name: values[0] for name, values in parse_qs(place.query).items()},
                token=(self.headers.get("Authorization") or "").removeprefix("Bearer "),
                body=json.loads(content) if content else None,
            )
            served.asked.append(request)
            given = served.respond(request)
            self.send_response(given.status)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in given.parts:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            if given.breaks:
                self.close_connection = True
                self.connection.close()
                return
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Tests read `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
