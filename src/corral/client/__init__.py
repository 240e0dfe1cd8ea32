"""The Python SDK: a typed client of corral's HTTP API. The command line uses the same client.

    from corral.client import Client

    with Client.from_environment() as corral:
        job = corral.jobs.submit({"command": ["python", "train.py"], "gpus": 2})

The types of requests and answers are in `corral.client.views`. docs/how-to/python-sdk.md is the guide.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from corral.client.http.errors import ApiProblem, ClientError, Forbidden, NotFound, NotSignedIn, ServerUnreachable

if TYPE_CHECKING:
    from corral.client.async_client import AsyncClient
    from corral.client.client import Client
    from corral.client.functions.calls import Call
    from corral.client.functions.payload import CallFailed
    from corral.client.http.streams import LogEnd, LogText

__all__ = [
    "ApiProblem",
    "AsyncClient",
    "Call",
    "CallFailed",
    "Client",
    "ClientError",
    "Forbidden",
    "LogEnd",
    "LogText",
    "NotFound",
    "NotSignedIn",
    "ServerUnreachable",
]

#: Names that load the HTTP library, which takes longer than the rest of a command: imported at their first use.
_LAZY = {
    "AsyncClient": "corral.client.async_client",
    "Call": "corral.client.functions.calls",
    "CallFailed": "corral.client.functions.payload",
    "Client": "corral.client.client",
    "LogEnd": "corral.client.http.streams",
    "LogText": "corral.client.http.streams",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
