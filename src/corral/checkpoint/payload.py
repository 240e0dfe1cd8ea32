"""Converts a state to bytes and back.

With torch in the program, `torch.save` and `torch.load` are used for everything: they support tensors, and all other
objects as pickle does. Without it, pickle is used. JSON is not offered: it would turn tuples into lists and numeric
keys into text, and a program would resume with something else than it had saved.

Reading a pickle can run code. Only files of the job's own checkpoint directory are read, where no other user can write,
and only if their digest is right.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast


def choose_kind() -> str:
    """A state with tensors means that torch is loaded; torch is never imported only to find that out."""
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and hasattr(torch, "save") else "pickle"


def dump(state: Any, stream: Any, kind: str) -> None:
    """`stream` has `write` and `flush`; both use no other method."""
    if kind == "torch":
        sys.modules["torch"].save(state, stream)
    else:
        # The newest protocol of Python 3.9, which does not copy large arrays.
        pickle.dump(state, stream, protocol=5)


def load(path: Path, kind: str, map_location: Any) -> Any:
    if kind == "files":
        return path
    with open(path, "rb") as stream:
        if kind == "torch":
            torch = importlib.import_module("torch")
            # A state is more than weights: optimisers, counters, random states, a program's own classes.
            return torch.load(stream, map_location=map_location, weights_only=False)
        return pickle.load(cast(BinaryIO, stream))
