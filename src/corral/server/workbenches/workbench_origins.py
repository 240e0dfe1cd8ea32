"""The origin of each workbench's pages, which differs from the console's and from every other workbench's.

Browsers isolate origins: a page can only do in another origin what that origin allows, which is nothing. An origin is a
host name of its own (`j-12.localhost`, or by `workbench.url`), which also isolates cookies; or, for browsers that use
the server's IP address, a port of its own.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from urllib.parse import urlsplit

from starlette.datastructures import URL
from starlette.types import Scope

from corral.server.http.problems import Problem
from corral.server.settings.settings import Settings
from corral.server.workbenches.workbench_ports import NoPortLeft, WorkbenchPorts

log = logging.getLogger("corral.server.workbenches")

_JOB = r"(j-[0-9]+)"
_LOOPBACK = re.compile(rf"{_JOB}\.localhost(?::[0-9]+)?", re.IGNORECASE)


class WorkbenchOrigins:
    def __init__(self, settings: Settings, ports: WorkbenchPorts) -> None:
        self.ports = ports
        self._server = settings.server
        self._pattern = settings.workbench.url
        self._hosts = _LOOPBACK if self._pattern is None else _hosts_of(self._pattern)
        if self._pattern is None and (self._server.public_url or self._server.secure_cookie):
            log.warning(
                "workbench.url is not set: behind a proxy, pages of workbenches cannot be opened in a browser until it "
                "is (https://{workbench}.wb.example.org)"
            )

    def job_at(self, scope: Scope) -> str | None:
        """The workbench of the request's origin; None for the console's own."""
        server = scope.get("server")
        job_id = self.ports.job_at(server[1]) if server is not None else None
        if job_id is not None or self._hosts is None:
            return job_id
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        found = self._hosts.fullmatch(host.decode("latin-1"))
        return None if found is None else found[1].lower()

    async def url_of(self, job_id: str, asked: URL) -> str:
        """The workbench's origin for a browser that uses the console at `asked`. Raises Problem."""
        host = asked.hostname or ""
        if self._pattern is not None and "{workbench}" in self._pattern:
            return self._pattern.replace("{workbench}", job_id)
        if self._pattern is None and is_loopback(host) and asked.scheme == "http":
            return f"http://{job_id}.localhost:{asked.port or 80}"
        scheme = "https" if self._server.has_tls else "http"
        if self._pattern is None and (asked.scheme != scheme or is_loopback(self._server.host)):
            raise _no_way()
        try:
            port = await self.ports.port_of(job_id)
        except NoPortLeft as error:
            raise Problem(503, "No port left", f"{error}.", slug="no-port") from None
        if self._pattern is not None:
            return self._pattern.replace("{port}", str(port))
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def own_url(self, job_id: str, scope: Scope, asked: URL) -> str:
        """The origin of the request, which is for this workbench."""
        if self._pattern is None:
            return f"{'https' if asked.scheme in ('https', 'wss') else 'http'}://{asked.netloc}"
        return self._pattern.replace("{workbench}", job_id).replace("{port}", str((scope.get("server") or ("", 0))[1]))

    def mark(self, scope: Scope) -> str | None:
        """A mark by which a browser detects that this port belongs to another workbench than before; None for host
        names."""
        server = scope.get("server")
        return self.ports.mark_at(server[1]) if server is not None else None

    def console_url(self, asked: URL) -> str:
        """The console's probable address, for a browser without a pass."""
        if self._server.public_url is not None:
            return self._server.public_url
        if _LOOPBACK.fullmatch(asked.netloc):
            return f"http://{'127.0.0.1' if ':' not in self._server.host else '[::1]'}:{asked.port or 80}"
        host = asked.hostname or "localhost"
        return f"http://[{host}]:{self._server.port}" if ":" in host else f"http://{host}:{self._server.port}"


def is_loopback(host: str) -> bool:
    """Whether a browser that uses this name runs on this machine, or uses a tunnel."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _hosts_of(pattern: str) -> re.Pattern[str] | None:
    if "{workbench}" not in pattern:
        return None
    before, _, after = urlsplit(pattern).netloc.partition(":")[0].partition("{workbench}")
    return re.compile(rf"{re.escape(before)}{_JOB}{re.escape(after)}(?::[0-9]+)?", re.IGNORECASE)


def _no_way() -> Problem:
    return Problem(
        409,
        "No address for workbenches",
        "Pages of workbenches have addresses of their own, and behind a proxy the server cannot know them: an "
        "operator sets workbench.url, such as https://{workbench}.wb.example.org. SSH and tokens work meanwhile.",
        slug="no-workbench-address",
    )
