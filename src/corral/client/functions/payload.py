"""Functions and arguments as the command of a job, and results back from its files."""

from __future__ import annotations

import base64
import importlib.resources
import pickle
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corral.client.functions.program import RESULT
from corral.client.http.errors import ClientError

__all__ = [
    "MOST_ARRAY_BYTES",
    "MOST_BYTES",
    "RESULT",
    "CallFailed",
    "RemoteTraceback",
    "command_of",
    "is_call",
    "value_of",
]

#: Function and arguments are arguments of a process, whose size the kernel limits.
MOST_BYTES = 256 * 1024
#: Every job of an array stores the arguments of all.
MOST_ARRAY_BYTES = 64 * 1024
PIECE_CHARACTERS = 60_000

Arguments = tuple[Sequence[Any], Mapping[str, Any]]


class CallFailed(ClientError):
    """The job of a call ended without a result."""


class RemoteTraceback(Exception):
    """The traceback in the job, as the cause of the exception that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


def command_of(function: Callable[..., Any], calls: Sequence[Arguments], *, python: str) -> list[str]:
    """The command that makes the call of its index in the array, else the only one."""
    content = {
        "python": list(sys.version_info[:2]),
        "function": _pickled(function),
        "calls": [_pickled((tuple(args), dict(keywords))) for args, keywords in calls],
    }
    packed = base64.b85encode(zlib.compress(_pickled(content))).decode()
    most = MOST_BYTES if len(calls) == 1 else MOST_ARRAY_BYTES
    if len(packed) > most:
        raise ClientError(
            f"function and arguments take {len(packed) // 1024 + 1} KiB; at most {most // 1024} KiB can be sent",
            hint="Pass the path of a file, a volume or a dataset instead of the data.",
        )
    pieces = [packed[at : at + PIECE_CHARACTERS] for at in range(0, len(packed), PIECE_CHARACTERS)]
    return [python, "-c", _program(), *pieces]


def is_call(command: Sequence[str]) -> bool:
    """Whether a job's command makes a call; also one that an earlier version submitted."""
    return len(command) > 3 and command[1] == "-c" and command[2].splitlines()[:1] == _program().splitlines()[:1]


def _program() -> str:
    return importlib.resources.files("corral.client.functions").joinpath("program.py").read_text(encoding="utf-8")


def value_of(content: bytes) -> Any:
    """The value that the function returned; raises the exception that it raised. Unpickling runs code of the result's
    author: only results of the caller's own jobs come here."""
    result = pickle.loads(content)
    if "error" not in result:
        return result["value"]
    raise result["error"] from RemoteTraceback(str(result["traceback"]))


def _pickled(value: Any) -> bytes:
    import cloudpickle  # loads more than a command of the command line needs

    try:
        return bytes(cloudpickle.dumps(value))
    except (TypeError, pickle.PicklingError) as error:
        raise ClientError(
            f"cannot be sent to a job: {error}", hint="Create such objects inside the function."
        ) from error
