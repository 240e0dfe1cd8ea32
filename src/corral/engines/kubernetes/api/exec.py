"""Runs a short command in the container of a pod, over a WebSocket of the API server."""

from __future__ import annotations

import contextlib
import time
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from corral.engines.kubernetes.api.client import ApiError, ApiUnavailable, check, ssl_context, unreachable
from corral.engines.kubernetes.api.credentials import CredentialError
from corral.engines.kubernetes.api.kubeconfig import Access

_PROTOCOL = Subprotocol("v4.channel.k8s.io")
TIMEOUT_SECONDS = 10.0
#: A command that takes longer is left alone: the shell is the image's own, and may do anything.
LONGEST_SECONDS = 10.0


def run_in_pod(access: Access, path: str, container: str, command: tuple[str, ...]) -> None:
    """Run the command and wait for its end, up to LONGEST_SECONDS; its output and its exit code are not read. Raises
    ApiError and ApiUnavailable."""
    words = [("command", word) for word in command]
    query = urlencode([*words, ("container", container), ("stdout", "true"), ("stderr", "true")])
    url = f"ws{access.server.removeprefix('http')}{path}/exec?{query}"
    is_secure = access.server.startswith("https://")
    try:
        token = access.credential.token()
        with connect(
            url,
            ssl=ssl_context(access) if is_secure else None,
            server_hostname=access.server_name or None if is_secure else None,
            additional_headers={"Authorization": f"Bearer {token}"} if token else None,
            subprotocols=[_PROTOCOL],
            open_timeout=TIMEOUT_SECONDS,
            close_timeout=1.0,
            proxy=access.proxy,
        ) as connection:
            _wait_for_close(connection, time.monotonic() + LONGEST_SECONDS)
    except InvalidStatus as refusal:
        status = refusal.response.status_code
        check(status, bytes(refusal.response.body or b""))
        raise ApiError(status, f"HTTP status {status}") from refusal
    except (InvalidHandshake, WebSocketException, OSError, CredentialError) as error:
        raise ApiUnavailable(unreachable(error)) from error


def _wait_for_close(connection: ClientConnection, until: float) -> None:
    """The API server closes the connection at the end of the command."""
    with contextlib.suppress(ConnectionClosed, TimeoutError):
        while (left := until - time.monotonic()) > 0:
            connection.recv(timeout=left)
