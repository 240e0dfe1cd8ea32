"""A registry that lists its images: by OCI's protocol with a password or with tokens, or as a GitLab does.

It has one image in two versions. Not the real services: it answers as their documentation describes.
"""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BASIC = "Basic " + base64.b64encode(b"ada:secret").decode()


class ListedRegistry:
    """Answers by path; `kind` decides how it wants to be spoken to."""

    def __init__(self) -> None:
        self.kind = "basic"
        self.has_catalog = True
        self.asked: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                status, body, headers = registry.answer(self.path, self.headers)
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, headers: Any) -> tuple[int, Any, dict[str, str]]:
        given, place = headers.get("Authorization", ""), urlsplit(path)
        if place.path in ("/token", "/jwt/auth"):
            scope = parse_qs(place.query)["scope"][0]
            return (200, {"token": f"for {scope}"}, {}) if given == BASIC else (401, {}, {})
        if place.path.startswith("/api/v4/"):
            return self.gitlab(path) if headers.get("PRIVATE-TOKEN") == "secret" else (401, {}, {})
        if self.kind == "basic" and given != BASIC:
            return 401, {}, {"WWW-Authenticate": 'Basic realm="registry"'}
        if self.kind != "basic" and not given.startswith("Bearer "):
            service = "/jwt/auth" if self.kind == "gitlab" else "/token"
            return 401, {}, {"WWW-Authenticate": f'Bearer realm="http://{self.host}{service}",service="registry"'}
        if place.path == "/v2/_catalog" and not self.has_catalog:
            return 404, {}, {}
        found = self.contents().get(place.path)
        return (200, found, {}) if found is not None else (404, {}, {})

    def contents(self) -> dict[str, Any]:
        manifest = {"config": {"digest": "sha256:c1", "size": 100}, "layers": [{"size": 2000}, {"size": 30000}]}
        index = {"manifests": [
            {"digest": "sha256:w", "platform": {"os": "windows"}}, {"digest": "sha256:m", "platform": {"os": "linux"}}
        ]}  # fmt: skip
        return {
            "/v2/": {},
            "/v2/_catalog": {"repositories": ["team/train", "team/empty", 5]},
            "/v2/team/train/tags/list": {"tags": ["1.0", "2.0"]},
            "/v2/team/empty/tags/list": {"tags": None},
            "/v2/team/train/manifests/1.0": manifest,
            "/v2/team/train/manifests/2.0": index,
            "/v2/team/train/manifests/sha256:m": manifest,
            "/v2/team/train/blobs/sha256:c1": {"created": "2026-01-02T03:04:05Z"},
        }

    def gitlab(self, path: str) -> tuple[int, Any, dict[str, str]]:
        api = "/api/v4/projects"
        if path.startswith(f"{api}?"):
            return 200, [{"id": 7}, {"id": 8}], {}
        if path.startswith(f"{api}/7/registry/repositories?"):
            where = f"{self.host}/team/train"
            tags = [{"name": "v1", "location": f"{where}:v1"}]
            return 200, [{"id": 70, "path": "team/train", "location": where, "tags": tags}], {}
        if path == f"{api}/7/registry/repositories/70/tags/v1":
            return 200, {"total_size": 4096, "created_at": "2026-03-04T05:06:07.000Z"}, {}
        return 403, {}, {}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
