"""Workbenches for tests: made, looked at, waited for, and entered by SSH."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

#: Stands in for Jupyter in the environment of a workbench, as an owner could have it: reports the requests that it got.
ECHO = """#!/usr/bin/env python3
import http.server, os, socketserver, sys

class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_own = self.path.endswith(("api/status", "api/kernels", "api/terminals"))
        body = b"[]" if is_own else str(self.headers).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        for path in ("/", "/workbenches/"):
            self.send_header("Set-Cookie", f"corral_session=stolen; Path={path}")
            self.send_header("Set-Cookie", f"mine=1; Path={path}; Domain=example.org")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    def get_request(self):
        return super().get_request()[0], ("local", 0)

where = next(word.partition("=")[2] for word in sys.argv if word.startswith("--ServerApp.sock="))
Server(where, Echo).serve_forever()
"""

JUPYTER_SECONDS = 120.0


def token(server: CorralServer, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token(user)}"}


def create(server: CorralServer, user: str, name: str, **body: Any) -> dict[str, Any]:
    """A workbench that is ready."""
    with server.http(user) as http:
        answer = http.post("/workbenches", json={"name": name, **body})
        assert answer.status_code == 201, answer.text
    return until_ready(server, user, name)


def look(server: CorralServer, user: str, name: str) -> dict[str, Any]:
    with server.http(user) as http:
        answer = http.get(f"/workbenches/{name}")
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


def until_ready(server: CorralServer, user: str, name: str) -> dict[str, Any]:
    def is_ready() -> bool:
        view = look(server, user, name)
        assert view["state"] not in ("failed", "stopped"), view
        return view["state"] == "running" and all(part["ready"] for part in (view["jupyter"], view["ssh"]) if part)

    wait_until(is_ready, f"workbench {name} is ready", JUPYTER_SECONDS)
    return look(server, user, name)


def until_state(server: CorralServer, user: str, name: str, state: str) -> dict[str, Any]:
    wait_until(lambda: look(server, user, name)["state"] == state, f"workbench {name} is {state}")
    return look(server, user, name)


def ssh(view: dict[str, Any], key: Path, *command: str, known_hosts: Path) -> subprocess.CompletedProcess[str]:
    where = view["ssh"]
    known_hosts.write_text(f"[{where['host']}]:{where['port']} {where['host_key']}\n")
    options = ["UserKnownHostsFile=" + str(known_hosts), "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"]
    options += ["BatchMode=yes", "IdentityAgent=none"]
    # The command as people copy it, with what a test must not take from the machine it runs on.
    words = where["command"].split()
    line = [
        words[0],
        "-F",
        "none",
        "-i",
        str(key),
        *(part for option in options for part in ("-o", option)),
        *words[1:],
    ]
    return subprocess.run([*line, *command], capture_output=True, text=True, timeout=60, check=False)
