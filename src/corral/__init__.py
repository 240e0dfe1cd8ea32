"""corral: shared, fair and observable GPUs. `from corral import Client` is the Python SDK."""

from __future__ import annotations

import importlib
from typing import Any

_LAZY = {"AsyncClient": "corral.client.async_client", "Client": "corral.client.client"}


def __getattr__(name: str) -> Any:
    # Programs in jobs import parts of this package with nothing but the standard library.
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name == "load_ipython_extension":
        # `%load_ext corral` in a notebook
        return importlib.import_module("corral.client.notebook.magic").load_ipython_extension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
