"""How a workbench is reached: on this machine by a socket, on another one through its relay.

The address of the other machine comes from the plan and from the cluster's engine, never from the workbench: its owner
could name any other address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from dataclasses import dataclass, replace
from typing import Any

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.ports import AttemptsElsewhere, EngineUnavailable, NodesElsewhere
from corral.core.model import attempt_id
from corral.engines.workbenches.workbench_relay import keep_alive
from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches
from corral.stores.workbenches.workbench_keys import NAME, WorkbenchKeys

CONNECT_SECONDS = 10.0
_ASK_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A non-blocking connection, and the steps that are left before it can be used."""

    connection: socket.socket
    #: the address to connect to: a machine that does not answer must not block a thread
    address: tuple[str, int] | None = None
    #: protocols to negotiate
    tls: ssl.SSLContext | None = None

    async def open(self) -> Way:
        """Connected. Raises OSError."""
        if self.address is None:
            return self
        try:
            connecting = asyncio.get_running_loop().sock_connect(self.connection, self.address)
            await asyncio.wait_for(connecting, CONNECT_SECONDS)
        except OSError as error:
            self.connection.close()
            host, port = self.address
            reason = str(error) or f"no answer within {CONNECT_SECONDS:.0f} s"
            raise ConnectionError(f"{host} port {port} cannot be reached: {reason}") from error
        except asyncio.CancelledError:
            self.connection.close()
            raise
        return replace(self, address=None)

    @property
    def agreeing(self) -> dict[str, Any]:
        """Arguments for opening streams on it."""
        if self.tls is None:
            return {}
        return {"ssl": self.tls, "server_hostname": NAME, "ssl_handshake_timeout": CONNECT_SECONDS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The node of an attempt's plan."""

    attempt: int
    cluster: str
    node: str


class WorkbenchRoutes:
    def __init__(self, *, controller: Controller, files: DirectoryWorkbenches, keys: WorkbenchKeys) -> None:
        self._controller = controller
        self._files = files
        self._keys = keys

    def is_elsewhere(self, cluster: str) -> bool:
        return isinstance(self._controller.engines.get(cluster), NodesElsewhere | AttemptsElsewhere)

    def clusters(self) -> list[str]:
        return list(self._controller.engines)

    def has_ssh(self, cluster: str) -> bool:
        """Users cannot reach the network of an attempt by SSH."""
        return not isinstance(self._controller.engines.get(cluster), AttemptsElsewhere)

    def listens_at(self, cluster: str, node: str) -> str | None:
        """The address that a workbench there must listen on for this server; None on this machine. Raises
        EngineUnavailable."""
        engine = self._controller.engines.get(cluster)
        if isinstance(engine, AttemptsElsewhere):
            return engine.listen_address()
        address = self.node_address(cluster, node)
        return None if address is None else listen_address(address)

    def has_elsewhere(self) -> bool:
        return any(map(self.is_elsewhere, self._controller.engines))

    def node_address(self, cluster: str, node: str) -> str | None:
        """The address of a node; None if the node is this machine. Raises EngineUnavailable."""
        engine = self._controller.engines.get(cluster)
        return engine.address_of(node) if isinstance(engine, NodesElsewhere) else None

    def address(self, place: Place) -> str | None:
        """The address for users; None for this machine."""
        try:
            return self.node_address(place.cluster, place.node)
        except EngineUnavailable:
            return place.node  # the cluster's name of the node

    def way(self, job_id: str) -> Way:
        """Connect to the workbench's Jupyter. Reads files, so call it on a thread. Raises OSError (BlockingIOError: try
        again in a moment)."""
        place = self._place(job_id) if self.has_elsewhere() else None
        if place is None or not self.is_elsewhere(place.cluster):
            return Way(connection=self._files.connect(job_id))
        status = self._files.status(job_id)
        if status is None or status.attempt != place.attempt or status.relay_port is None:
            raise ConnectionError(f"workbench {job_id} does not say where it listens")
        tls = self._keys.context(job_id)
        try:
            address = self._address(job_id, place, status.relay_port)
        except EngineUnavailable as error:
            raise ConnectionError(f"the address of node {place.node} is unknown: {error}") from error
        if isinstance(address, int):
            connection = socket.socket(fileno=address)
            connection.setblocking(False)
            return Way(connection=connection, tls=tls)
        family, kind, _, _, found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        connection = socket.socket(family, kind)
        connection.setblocking(False)
        keep_alive(connection)
        return Way(connection=connection, address=(str(found[0]), status.relay_port), tls=tls)

    def _address(self, job_id: str, place: Place, port: int) -> tuple[str | None, int] | int:
        """Raises EngineUnavailable."""
        engine = self._controller.engines.get(place.cluster)
        if isinstance(engine, AttemptsElsewhere):
            return engine.reach(attempt_id(job_id, place.attempt), port)
        return self.node_address(place.cluster, place.node), port

    def _place(self, job_id: str) -> Place | None:
        """Raises ConnectionError."""
        try:
            return self._controller.inspect(place_of, job_id).result(_ASK_SECONDS)
        except (ControllerStopped, TimeoutError) as error:
            raise ConnectionError(f"the node of {job_id} is unknown: {error}") from error


def place_of(state: State, job_id: str) -> Place | None:
    job = state.snapshot.jobs.get(job_id)
    if job is None or job.allocation is None:
        return None
    node = state.snapshot.nodes.get(job.allocation.grants[0].node)
    return None if node is None else Place(attempt=job.attempt, cluster=node.cluster, node=node.id)


def listen_address(address: str) -> str:
    """The address that a workbench on another machine listens on: the machine's address, or, if only its name is known,
    all addresses, since many machines resolve their own name to the loopback address."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except OSError:
        return "0.0.0.0"
    return "::" if all(family == socket.AF_INET6 for family, *_ in found) else "0.0.0.0"
