"""Runs a short command in the container of a pod, over a WebSocket of the API server."""

from __future__ import annotations

import contextlib
import time

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from corral.engines.kubernetes.api.kubeconfig import Access
from corral.engines.kubernetes.api.upgrades import address_of, opening, options

_PROTOCOL = "v4.channel.k8s.io"
#: A command that takes longer is left alone: the shell is the image's own, and may do anything.
LONGEST_SECONDS = 10.0


def run_in_pod(access: Access, path: str, container: str, command: tuple[str, ...]) -> None:
    """Run the command and wait for its end, up to LONGEST_SECONDS; its output and its exit code are not read. Raises
    ApiError and ApiUnavailable."""
    arguments = [("command", word) for word in command]
    query = [*arguments, ("container", container), ("stdout", "true"), ("stderr", "true")]
    with opening():
        token = access.credential.token()
        with connect(address_of(access, f"{path}/exec", query), **options(access, token, _PROTOCOL)) as connection:
            _wait_for_close(connection, time.monotonic() + LONGEST_SECONDS)


def _wait_for_close(connection: ClientConnection, until: float) -> None:
    """The API server closes the connection at the end of the command."""
    with contextlib.suppress(ConnectionClosed, TimeoutError):
        while (left := until - time.monotonic()) > 0:
            connection.recv(timeout=left)
