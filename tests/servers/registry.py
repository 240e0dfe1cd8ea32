"""A small registry with one image that only those who sign in may pull: the part of the protocol that pulling needs."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.images import busybox_layer

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
_LAYER_TYPE = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivateRegistry:
    #: host and port
    host: str
    username: str
    password: str
    #: user names that came with a request, "" for a request without one
    visitors: list[str] = field(default_factory=list)

    @property
    def image(self) -> str:
        return f"{self.host}/team/train:1"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _image() -> tuple[bytes, dict[str, bytes]]:
    """The manifest, and the blobs that it names."""
    layer = busybox_layer()
    packed = gzip.compress(layer, mtime=0)
    described = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/bin/echo", "not the job's command:"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    config = json.dumps(described).encode()
    parts = [(_CONFIG_TYPE, config), (_LAYER_TYPE, packed)]
    entries = [{"mediaType": kind, "size": len(data), "digest": _digest(data)} for kind, data in parts]
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": entries[0], "layers": entries[1:]}
    return json.dumps(manifest).encode(), {_digest(data): data for _, data in parts}


@contextmanager
def private_registry(username: str, password: str) -> Iterator[PrivateRegistry]:
    manifest, blobs = _image()
    visitors: list[str] = []
    wanted = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            visitors.append(base64.b64decode(given[6:]).decode().partition(":")[0] if given else "")
            if given != wanted:
                self._answer(401, b'{"errors": [{"code": "UNAUTHORIZED", "message": "sign in"}]}', "application/json")
            elif self.path == "/v2/":
                self._answer(200, b"{}", "application/json")
            elif self.path in ("/v2/team/train/manifests/1", f"/v2/team/train/manifests/{_digest(manifest)}"):
                self._answer(200, manifest, MANIFEST_TYPE)
            elif (blob := blobs.get(self.path.rpartition("/")[2])) is not None:
                self._answer(200, blob, "application/octet-stream")
            else:
                self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', "application/json")

        do_HEAD = do_GET

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="registry"')
            if kind == MANIFEST_TYPE:
                self.send_header("Docker-Content-Digest", _digest(body))
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        host = f"127.0.0.1:{server.server_address[1]}"
        yield PrivateRegistry(host=host, username=username, password=password, visitors=visitors)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
