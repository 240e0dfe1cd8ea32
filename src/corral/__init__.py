"""corral: shared, fair and observable GPUs. `from corral import Client` is the Python SDK."""

from __future__ import annotations

import importlib
from typing import Any

#: The names of `corral.client`, which is loaded at the first use of one of them.
_SDK = (
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
)


def __getattr__(name: str) -> Any:
    # Programs in jobs import parts of this package with nothing but the standard library.
    if name in _SDK:
        return getattr(importlib.import_module("corral.client"), name)
    if name == "load_ipython_extension":
        # `%load_ext corral` in a notebook
        return importlib.import_module("corral.client.notebook.magic").load_ipython_extension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SDK])
