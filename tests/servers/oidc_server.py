"""A real OpenID Connect provider for tests: the certified npm package `oidc-provider`, on the loopback interface.

Installed with `npm ci` beside its lock file when it is first needed; and a browser that signs people in there.
"""

from __future__ import annotations

import fcntl
import functools
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from tests.console_steps import load
from tests.servers.corral_server import free_port

console_build = load()

DIRECTORY = Path(__file__).parent / "oidc"
CLIENT_ID = "corral-client"
CLIENT_SECRET = "oidc-client-secret"


@functools.cache
def node_environment() -> dict[str, str]:
    """An environment with the Node.js that builds the console: the system's, or one from a Python package."""
    found: dict[str, str] = console_build.node_environment()
    return found


def reason_to_skip() -> str | None:
    """Why the server cannot be started here, or None."""
    try:
        return _install()
    except console_build.BuildFailed as failure:
        return str(failure)


def _install() -> str | None:
    """`npm ci`, once per lock file, also when several test processes come here together."""
    lock = (DIRECTORY / "package-lock.json").read_text()
    stamp = DIRECTORY / "node_modules" / ".corral-installed"
    with (DIRECTORY / ".install.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == lock:
            return None
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts"],
            cwd=DIRECTORY,
            env=node_environment(),
            capture_output=True,
            text=True,
            timeout=240,
        )
        if done.returncode != 0:
            return f"npm ci failed in tests/servers/oidc: {done.stderr[-500:]}"
        stamp.write_text(lock)
        return None


class OidcServer:
    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self._log = directory / "oidc.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *redirect_uris: str) -> None:
        client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "redirect_uris": list(redirect_uris)}
        settings = json.dumps({"port": self.port, "clients": [client]})
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["node", str(DIRECTORY / "server.mjs")],
                env={**node_environment(), "OIDC_SETTINGS": settings, "NODE_ENV": "test"},
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx.get(f"{self.issuer}/.well-known/openid-configuration", timeout=2).is_success:
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.02)
        raise AssertionError(f"the OIDC server does not start:\n{self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=10)

    def seen(self) -> dict[str, Any]:
        """The parameters of the sign-ins so far, and what became of their codes."""
        return self._control("seen")

    def rotate_keys(self) -> None:
        self._control("rotate")

    def set_groups(self, groups: dict[str, list[str]]) -> None:
        """The groups of people, by their login."""
        self._control("groups", groups=json.dumps(groups))

    def set_code_seconds(self, seconds: int) -> None:
        self._control("code-seconds", seconds=str(seconds))

    def _control(self, name: str, **form: str) -> dict[str, Any]:
        answer = httpx.post(f"{self.issuer}/_test/{name}", data=form, timeout=30)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body


class Browser:
    """A user at a browser: cookies, and redirects that are followed one by one."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.http = httpx.Client(timeout=30, headers={"Accept": "text/html,application/xhtml+xml"})

    def get(self, path: str, **params: str) -> httpx.Response:
        return self.http.get(urljoin(self.server, path), params=params or None)

    def change(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """Change something as the console does: with the session's CSRF token, which `/me` returns."""
        csrf = self.get("/api/v1/me").json()["csrf_token"]
        return self.http.request(method, urljoin(self.server, path), json=body, headers={"X-CSRF-Token": csrf})

    def to_provider(self, provider: str, **params: str) -> httpx.Response:
        """The redirect with which the sign-in begins."""
        return self.get(f"/api/v1/auth/{provider}/login", **params)

    def at_provider(self, start: httpx.Response, **form: str) -> str:
        """Sign in at the provider; the address that it sends the browser back to."""
        assert start.status_code == 302, start.text
        answer = self.http.get(start.headers["location"])
        while answer.is_redirect or answer.status_code == 200:
            if answer.is_redirect:
                where = urljoin(str(answer.url), answer.headers["location"])
                if where.startswith(self.server):
                    return where
                answer = self.http.get(where)
            else:
                answer = self.http.post(answer.url, data=form)
        raise AssertionError(f"the provider answers {answer.status_code}: {answer.text[:500]}")

    def sign_in(self, provider: str, **form: str) -> httpx.Response:
        """All the way, up to the answer that the provider's redirect gets here."""
        return self.http.get(self.at_provider(self.to_provider(provider), **form))

    def signed_in_as(self) -> str | None:
        answer = self.get("/api/v1/me")
        assert answer.status_code in (200, 401), answer.text
        return str(answer.json()["name"]) if answer.is_success else None
