"""A real HTTP receiver for tests: it stores requests, and can be set to fail or to hang."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhook:
    """The next `failures` requests are answered with a 500; while `hanging` is set, nothing is answered."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.requests = 0
        self.failures = 0
        self.hanging = threading.Event()
        self.released = threading.Event()
        self._lock = threading.Lock()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status = hook._take(body)
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # the sender has given up

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """The URL for Apprise to post JSON to the server."""
        return f"json://127.0.0.1:{self._server.server_address[1]}/hook/very-secret-path"

    @property
    def titles(self) -> list[str]:
        with self._lock:
            return [str(item["title"]) for item in self.received]

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def _take(self, body: bytes) -> int:
        with self._lock:
            self.requests += 1
        if self.hanging.is_set():
            self.released.wait(timeout=60)
            return 503
        with self._lock:
            if self.failures:
                self.failures -= 1
                return 500
            self.received.append(json.loads(body))
        return 200
