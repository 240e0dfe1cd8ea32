"""A connection to a port of a pod through the API server, as a socket of this process."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from corral.engines.kubernetes.api.kubeconfig import Access
from corral.engines.kubernetes.api.upgrades import address_of, opening, options

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PIECE_BYTES = 1 << 16
_PORT = struct.Struct("<H")


def forward(access: Access, path: str, port: int) -> socket.socket:
    """A socket whose other end is the port of the pod. If the pod does not answer there, the socket is closed. Raises
    ApiError and ApiUnavailable."""
    with opening():
        token = access.credential.token()
        address = address_of(access, f"{path}/portforward", [("ports", str(port))])
        # The threads below close it.
        connection = contextlib.ExitStack().enter_context(connect(address, **options(access, token, _PROTOCOL)))
    ours, theirs = socket.socketpair()
    for work in (_to_pod, _from_pod):
        name = f"kubernetes-forward-{work.__name__.strip('_')}"
        threading.Thread(target=work, args=(connection, theirs), name=name, daemon=True).start()
    return ours


def _to_pod(connection: ClientConnection, inside: socket.socket) -> None:
    """Copies data to the pod until this end closes."""
    try:
        while piece := inside.recv(_PIECE_BYTES):
            connection.send(bytes([_DATA]) + piece)
    except (ConnectionClosed, OSError):
        pass  # the other thread closes the socket
    finally:
        connection.close()


def _from_pod(connection: ClientConnection, inside: socket.socket) -> None:
    """Copies data from the pod until it closes or reports an error; then the user of the socket sees the end."""
    #: each channel begins with the number of the port
    begun: set[int] = set()
    try:
        while True:
            message = connection.recv()
            data = message.encode() if isinstance(message, str) else message
            if not data:
                continue
            channel, rest = data[0], data[1:]
            if channel not in begun:
                begun.add(channel)
                rest = rest[_PORT.size :]
            if channel == _ERROR and rest:
                break
            if channel == _DATA and rest:
                inside.sendall(rest)
    except (ConnectionClosed, OSError):
        pass  # one of both ends is gone
    finally:
        connection.close()
        # The other thread may wait for data of it.
        with contextlib.suppress(OSError):
            inside.shutdown(socket.SHUT_RDWR)
        inside.close()
