"""WebSockets of the API server: how they are opened, and what a refusal of one means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from corral.engines.kubernetes.api.client import ApiError, ApiUnavailable, check, ssl_context, unreachable
from corral.engines.kubernetes.api.credentials import CredentialError
from corral.engines.kubernetes.api.kubeconfig import Access

TIMEOUT_SECONDS = 10.0
#: A piece of output or of a forwarded connection is far smaller.
_MAX_MESSAGE_BYTES = 16 << 20


def address_of(access: Access, path: str, query: Sequence[tuple[str, str]]) -> str:
    return f"ws{access.server.removeprefix('http')}{path}?{urlencode(query)}"


def options(access: Access, token: str, *protocols: str) -> dict[str, Any]:
    """Arguments of `connect`, of threads and of event loops alike."""
    is_secure = access.server.startswith("https://")
    return {
        "ssl": ssl_context(access) if is_secure else None,
        "server_hostname": access.server_name or None if is_secure else None,
        "additional_headers": {"Authorization": f"Bearer {token}"} if token else None,
        "subprotocols": [Subprotocol(protocol) for protocol in protocols],
        "open_timeout": TIMEOUT_SECONDS,
        "close_timeout": 1.0,
        "max_size": _MAX_MESSAGE_BYTES,
        "proxy": access.proxy,
    }


@contextmanager
def opening() -> Iterator[None]:
    """Raises ApiError and ApiUnavailable for what goes wrong inside."""
    try:
        yield
    except InvalidStatus as refusal:
        status = refusal.response.status_code
        check(status, bytes(refusal.response.body or b""))
        raise ApiError(status, f"HTTP status {status}") from refusal
    except (InvalidHandshake, WebSocketException, OSError, CredentialError) as error:
        raise ApiUnavailable(unreachable(error)) from error
