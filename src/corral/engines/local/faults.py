"""Faults of virtual GPUs and nodes, for drills and tests: the meaning of the drill file, and how it is read and
written.

    {"gpus": {"a10-001-gpu0": {"temperature": 97}}, "nodes": {"a10-003": "down"}}

Telemetry applies a fault to readings, the engine applies it to attempts. Beside the drill file lies the list of nodes
and GPUs that a drill can name; the fleet writes it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corral.core.model import Node

logger = logging.getLogger(__name__)

FAULTS_FILE = "faults.json"
#: the nodes and GPUs of the virtual fleet that a server has in this home
FLEET_FILE = "virtual-fleet.json"
MAX_TEMPERATURE = 200.0
MAX_XID = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFault:
    #: degrees Celsius, independent of the load
    temperature: float | None = None
    #: the device no longer answers
    lost: bool = False
    #: zero utilisation although a job holds it
    idle: bool = False
    #: each is reported once, in this order; a repeated code is reported again
    xids: tuple[int, ...] = ()
    ecc_uncorrected: int = 0
    remap_failed: bool = False

    @property
    def is_none(self) -> bool:
        return self == GpuFault()


@dataclass(frozen=True, kw_only=True, slots=True)
class Faults:
    gpus: Mapping[str, GpuFault] = field(default_factory=dict)
    #: the nodes that are down
    down: frozenset[str] = frozenset()


def parse_faults(body: Any) -> Faults:
    """Raises ValueError with what is wrong and where."""
    parts = _members(body, "the drill", ("gpus", "nodes"))
    gpus = _members(parts.get("gpus", {}), "gpus")
    nodes = _members(parts.get("nodes", {}), "nodes")
    for node, state in nodes.items():
        if state != "down":
            raise ValueError(f'nodes.{node}: expected "down", not {state!r}')
    return Faults(gpus={name: _gpu_fault(name, fault) for name, fault in gpus.items()}, down=frozenset(nodes))


def _gpu_fault(name: str, body: Any) -> GpuFault:
    where = f"gpus.{name}"
    fields = _members(body, where, ("temperature", "lost", "idle", "xids", "ecc_uncorrected", "remap_failed"))
    xids = fields.get("xids", [])
    if not isinstance(xids, list):
        raise ValueError(f"{where}.xids: expected a list of numbers, not {xids!r}")
    temperature = fields.get("temperature")
    return GpuFault(
        temperature=None if temperature is None else _number(temperature, f"{where}.temperature", MAX_TEMPERATURE),
        lost=_flag(fields.get("lost", False), f"{where}.lost"),
        idle=_flag(fields.get("idle", False), f"{where}.idle"),
        xids=tuple(int(_number(code, f"{where}.xids", MAX_XID, whole=True)) for code in xids),
        ecc_uncorrected=int(_number(fields.get("ecc_uncorrected", 0), f"{where}.ecc_uncorrected", 1e9, whole=True)),
        remap_failed=_flag(fields.get("remap_failed", False), f"{where}.remap_failed"),
    )


def _members(body: Any, where: str, known: Sequence[str] | None = None) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ValueError(f"{where}: expected an object, not {body!r}")
    for key in body:
        if known is not None and key not in known:
            raise ValueError(f"{where}: {key!r} is unknown; there is {', '.join(known)}")
    return body


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where}: expected true or false, not {value!r}")
    return value


def _number(value: Any, where: str, most: float, *, whole: bool = False) -> float:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{where}: expected {kind} from 0 to {most:g}, not {value!r}")
    return float(value)


def faults_body(faults: Faults) -> dict[str, Any]:
    """The opposite of `parse_faults`; parts without a fault are left out."""
    gpus = {name: _fault_body(fault) for name, fault in sorted(faults.gpus.items()) if not fault.is_none}
    return {"gpus": gpus, "nodes": dict.fromkeys(sorted(faults.down), "down")}


def _fault_body(fault: GpuFault) -> dict[str, Any]:
    body: dict[str, Any] = {
        "lost": fault.lost,
        "idle": fault.idle,
        "xids": list(fault.xids),
        "ecc_uncorrected": fault.ecc_uncorrected,
        "remap_failed": fault.remap_failed,
    }
    wrong = {key: value for key, value in body.items() if value not in (False, 0, [])}
    # A temperature of 0 is a fault, too.
    return wrong if fault.temperature is None else {"temperature": fault.temperature, **wrong}


def read_faults(path: Path) -> Faults:
    """The content of the file; without a file there are no faults. Raises ValueError or OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Faults()
    return parse_faults(json.loads(text))


def write_faults(path: Path, faults: Faults) -> None:
    _replace(path, faults_body(faults))


def _replace(path: Path, body: Mapping[str, Any]) -> None:
    """Atomic, because a fleet may read at any moment. A file with this content is not written again, so it needs no
    disk space."""
    text = json.dumps(body, indent=2) + "\n"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == text:
            return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


class FaultFile:
    """The drill file of one home, read again whenever it changes. A broken file is logged once and ignored. Safe for
    use by several threads."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FAULTS_FILE
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._faults = Faults()

    def current(self) -> Faults:
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                try:
                    self._faults = read_faults(self._path)
                except (ValueError, OSError) as error:
                    logger.warning("the drill file %s is ignored: %s", self._path, error)
            return self._faults

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def announce_fleet(directory: Path, nodes: Sequence[Node]) -> None:
    """Write the names that a drill may use; remove the list if these nodes are real."""
    if not nodes:
        (directory / FLEET_FILE).unlink(missing_ok=True)
        return
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(directory / FLEET_FILE, {"nodes": {node.id: [gpu.id for gpu in node.gpus] for node in nodes}})


def announced_fleet(directory: Path) -> dict[str, list[str]] | None:
    """The GPUs of each virtual node; None if no server with virtual GPUs was started in this home."""
    try:
        nodes = json.loads((directory / FLEET_FILE).read_text(encoding="utf-8"))["nodes"]
        return {str(node): [str(gpu) for gpu in gpus] for node, gpus in nodes.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
