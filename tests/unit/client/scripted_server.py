"""A tiny HTTP server that answers from a script, for the errors that a real server does not make on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    #: promise more than is sent, so that the connection breaks in the middle
    is_cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(kw_only=True, slots=True)
class ScriptedServer:
    url: str
    requests: list[Seen] = field(default_factory=list)


def as_json(value: object, status: int = 200) -> Answer:
    return Answer(status=status, body=json.dumps(value).encode())


def problem(status: int, **members: object) -> Answer:
    body = {"type": "/problems/test", "title": "Test", "status": status, **members}
    return Answer(status=status, body=json.dumps(body).encode(), content_type="application/problem+json")


def stream(text: str, *, is_cut: bool = False) -> Answer:
    return Answer(body=text.encode(), content_type="text/event-stream", is_cut=is_cut)


@contextmanager
def scripted(answer: Callable[[Seen, int], Answer]) -> Iterator[ScriptedServer]:
    """`answer` gets the request and how many came before it."""
    server = ScriptedServer(url="")

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            seen = Seen(
                method=self.command, path=self.path, headers=dict(self.headers.items()), body=self.rfile.read(length)
            )
            server.requests.append(seen)
            given = answer(seen, len(server.requests) - 1)
            self.send_response(given.status)
            self.send_header("Content-Type", given.content_type)
            self.send_header("Content-Length", str(len(given.body) + (100 if given.is_cut else 0)))
            self.send_header("Connection", "close")
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(given.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
