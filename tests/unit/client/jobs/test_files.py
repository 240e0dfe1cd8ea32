"""Downloads: one that breaks off goes on where it was, and begins anew when the file is another one."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from corral.client.client import Client
from corral.client.http.errors import ServerUnreachable


class Shop:
    """Serves one file and hangs up after so many bytes, as often as `cuts` says. `versions` follow one another."""

    def __init__(self, *versions: bytes, cuts: int, after: int = 7) -> None:
        self.versions = list(versions)
        self.cuts = cuts
        self.after = after
        self.ranges: list[str | None] = []

    @contextmanager
    def open(self) -> Iterator[str]:
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = shop.versions[0]
                tag = f'"{len(shop.versions)}"'
                wanted = self.headers.get("Range")
                shop.ranges.append(wanted)
                start = 0
                if wanted and self.headers.get("If-Range") == tag:
                    start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                self.send_response(206 if start else 200)
                self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(content) - start))
                self.send_header("Content-Type", "application/octet-stream")
                self.end_headers()
                if shop.cuts:
                    shop.cuts -= 1
                    self.wfile.write(content[start : start + shop.after])
                    if len(shop.versions) > 1:
                        shop.versions.pop(0)
                    self.close_connection = True
                else:
                    self.wfile.write(content[start:])

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
            thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{http.server_address[1]}"
            finally:
                http.shutdown()
                thread.join()


def fetched(shop: Shop) -> bytes:
    target = io.BytesIO()
    with shop.open() as url, Client(url, "token", sleep=lambda seconds: None) as client:
        fetched = client.files.fetch("j-1", "model.bin", target)
    assert fetched.size_bytes == len(target.getvalue())
    return target.getvalue()


def test_a_broken_download_goes_on() -> None:
    shop = Shop(b"0123456789" * 3, cuts=2)
    assert fetched(shop) == b"0123456789" * 3
    assert shop.ranges == [None, "bytes=7-", "bytes=14-"]


def test_download_of_a_changed_file_begins_anew() -> None:
    shop = Shop(b"old content, longer", b"new content", cuts=1)
    assert fetched(shop) == b"new content"


def test_a_server_that_sends_nothing_any_more_is_given_up() -> None:
    shop = Shop(b"0123456789" * 3, cuts=100, after=0)
    with pytest.raises(ServerUnreachable):
        fetched(shop)
    shop = Shop(b"0123456789" * 3, cuts=1)
    shop.after = 5
    assert fetched(shop) == b"0123456789" * 3
