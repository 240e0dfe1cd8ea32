"""Ports of this server for workbenches, one each, for browsers that know this machine by one name only.

A workbench keeps its port over restarts of the workbench and of the server, so that open pages find it again. An
assigned port stays open, so that no job can take it, and is assigned to another workbench only if no other port is
left.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import uvicorn

log = logging.getLogger("corral.server.workbenches")

FILE = "workbench-ports.json"
#: Begins to serve at a listening socket.
Serve = Callable[[socket.socket], Awaitable[None]]
#: Which of these workbenches have not ended.
Live = Callable[[Collection[str]], Awaitable[set[str]]]


class NoPortLeft(Exception):
    """All ports belong to workbenches that run, or to other programs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    job_id: str
    #: stored by browsers for this port: a different mark is that of an earlier workbench
    mark: str


class WorkbenchPorts:
    """All methods are for the event loop. `path` is the file of the leases."""

    def __init__(self, *, path: Path, host: str, ports: range, live: Live) -> None:
        self._path = path
        self._host = host
        self._ports = ports
        self._live = live
        self._serve: Serve | None = None
        self._lock = asyncio.Lock()
        #: in the order of their last use, the latest last
        self._leases: dict[int, Lease] = {}
        self._open: set[int] = set()

    async def start(self, serve: Serve) -> None:
        """Serve again at the ports that were assigned before."""
        self._serve = serve
        async with self._lock:
            known = await asyncio.to_thread(_read, self._path)
            self._leases = {port: lease for port, lease in known.items() if port in self._ports}
            for port in list(self._leases):
                if not await self._opened(port):
                    log.warning("port %d of workbench %s is in use by another program", port, self._leases[port].job_id)
                    del self._leases[port]

    def job_at(self, port: int) -> str | None:
        lease = self._leases.get(port)
        return None if lease is None else lease.job_id

    def mark_at(self, port: int) -> str | None:
        lease = self._leases.get(port)
        return None if lease is None else lease.mark

    async def port_of(self, job_id: str) -> int:
        """The workbench's port; assigned and opened if it has none. Raises NoPortLeft."""
        async with self._lock:
            known = next((port for port, lease in self._leases.items() if lease.job_id == job_id), None)
            if known is not None:
                self._leases[known] = self._leases.pop(known)
                return known
            port = await self._free_port()
            self._leases.pop(port, None)
            self._leases[port] = Lease(job_id=job_id, mark=secrets.token_urlsafe(16))
            await asyncio.to_thread(_write, self._path, dict(self._leases))
            return port

    async def _free_port(self) -> int:
        """A port that no workbench has had yet, otherwise the one that was used the longest time ago."""
        for port in self._ports:
            if port not in self._leases and await self._opened(port):
                return port
        live = await self._live({lease.job_id for lease in self._leases.values()})
        for port, lease in self._leases.items():
            if lease.job_id not in live:
                return port
        raise NoPortLeft(
            f"all ports of workbench.ports ({self._ports.start}-{self._ports.stop - 1}) are in use: "
            "stop a workbench, or let an operator configure more"
        )

    async def _opened(self, port: int) -> bool:
        if port in self._open:
            return True
        if self._serve is None:
            return False
        try:
            listener = listening_socket(self._host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                log.error("port %d cannot be opened for workbenches: %s", port, error)
            return False
        await self._serve(listener)
        self._open.add(port)
        return True


def listening_socket(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError:
        listener.close()
        raise
    return listener


async def serve_at(server: uvicorn.Server, listener: socket.socket) -> None:
    """Adds a listening socket to a running server; the server closes it with the others."""
    config = server.config

    def protocol() -> asyncio.Protocol:
        return config.http_protocol_class(  # type: ignore[call-arg]
            config=config, server_state=server.server_state, app_state=server.lifespan.state
        )

    opened = await asyncio.get_running_loop().create_server(
        protocol, sock=listener, backlog=config.backlog, ssl=config.ssl
    )
    server.servers.append(opened)


def _read(path: Path) -> dict[int, Lease]:
    try:
        known = json.loads(path.read_text())
        return {int(port): Lease(job_id=str(lease["job_id"]), mark=str(lease["mark"])) for port, lease in known.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # Workbenches get other ports then, and open pages do not find them again.
        log.error("%s cannot be read: %s", path, error)
        return {}


def _write(path: Path, leases: dict[int, Lease]) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump({str(port): asdict(lease) for port, lease in leases.items()}, file)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
