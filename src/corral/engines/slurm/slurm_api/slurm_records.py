"""Slurm's nodes and jobs, in corral's terms: pure, and the same for every version of Slurm's JSON.

Slurm 22.05 gives plain numbers and strings where 23.02 and later give `{"set": …, "number": …}` and lists; fields moved
as well. All differences between versions are handled here.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from corral.engines.slurm.slurm_api.hostlist import expand, parts

log = logging.getLogger("corral.engines.slurm")

_Read = TypeVar("_Read")

#: One item of a list. A type may begin with a digit (4090, 1g.5gb); a number alone is the count.
_GPUS = re.compile(r"(?:gres[:/])?gpu(?:[:=](?P<all>\d+)|:(?P<type>[^:=,(]+)(?:[:=](?P<count>\d+))?)?(?P<more>\(.*\))?")
_INDEXES = re.compile(r"\(IDX:(\d+(?:[,-]\d+)*)\)")
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
#: SLURMDB's error number for an empty answer, which is no error
NOTHING_FOUND = 9003
_FINAL = frozenset(
    [
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmNode:
    name: str
    #: the address for other nodes
    address: str = ""
    #: in capitals, without flags: IDLE, MIXED, ALLOCATED, DOWN, …
    state: str
    flags: frozenset[str] = frozenset()
    reason: str = ""
    cpus: int = 0
    memory_mib: int = 0
    #: how many GPUs of each type there are; "" for those without one
    gpus: Mapping[str, int] = field(default_factory=dict)
    used_gpus: int = 0
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    #: when slurmd was started there; None if Slurm does not know
    daemon_started_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmJob:
    id: int
    #: "" if it was not read: users can give jobs any name
    name: str = ""
    #: in capitals, without flags
    state: str
    #: the owner; accounting has only the name, and squeue's table only the number
    uid: int | None = None
    user: str = ""
    #: why it is pending or how it ended
    reason: str = ""
    comment: str = ""
    nodes: tuple[str, ...] = ()
    #: GPUs on each of its nodes, if all have the same number
    gpus: int = 0
    #: number and indexes of its GPUs by node, as far as Slurm reports them
    gpu_counts: Mapping[str, int] = field(default_factory=dict)
    gpu_indexes: Mapping[str, frozenset[int]] = field(default_factory=dict)
    cpus: int = 0
    memory_mib: int = 0
    exit_code: int | None = None
    signal: int | None = None
    submitted_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        return self.state in _FINAL

    @property
    def name_in_comment(self) -> str:
        """The first word of a comment that corral wrote."""
        return self.comment.partition(" ")[0]

    def gpus_on(self, node: str) -> int:
        return self.gpu_counts.get(node, self.gpus)

    @property
    def holds_nodes(self) -> bool:
        return not self.is_over and self.state not in ("PENDING", "REQUEUED") and bool(self.nodes)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOwner:
    """The account of an attempt's Slurm job, as far as this machine knows it."""

    uid: int | None = None
    name: str = ""

    def owns(self, job: SlurmJob) -> bool:
        """False if Slurm names another account. Users of Slurm choose the names of their jobs, but not this."""
        if self.uid is not None and job.uid is not None:
            return self.uid == job.uid
        return not self.name or not job.user or self.name == job.user


class Unreadable(Exception):
    """Slurm answered with something else than the requested data."""


def nodes_of(document: Mapping[str, Any]) -> list[SlurmNode]:
    """Raises Unreadable: an empty list is a cluster without nodes, but an answer without a list of nodes is an
    error."""
    return [node for node in _each(document, "nodes", _node) if node.name]  # a hidden node has no name


def jobs_of(document: Mapping[str, Any]) -> list[SlurmJob]:
    """Reads jobs from squeue or sacct. Raises Unreadable."""
    return _each(document, "jobs", _job)


def reserved_in(document: Mapping[str, Any], now: float) -> list[str]:
    """The nodes of reservations that have begun, and are not over. Raises Unreadable."""
    return [
        name
        for item in _list(document, "reservations")
        if (_time(item.get("start_time")) or 0.0) <= now < (_time(item.get("end_time")) or math.inf)
        for name in expand(_node_list(item.get("node_list")))
    ]


def errors_of(document: Mapping[str, Any]) -> str:
    """One message; "" without errors."""
    errors = [item for item in document.get("errors") or () if item.get("error_number") != NOTHING_FOUND]
    return "; ".join(str(item.get("error") or item.get("description") or item) for item in errors)


def gpus_in(text: str) -> dict[str, int]:
    """GPUs by type, from `gpu:a100:8(S:0-1)`, `gres/gpu:a100=8,gres/gpu=8` and similar. GPUs that are listed in total
    and by type count once."""
    by_type: dict[str, int] = {}
    for found in _gpu_parts(text):
        kind = found["type"] or ""
        by_type[kind] = by_type.get(kind, 0) + int(found["all"] or found["count"] or 1)
    if len(by_type) > 1 and (in_all := by_type.pop("", 0)) > (typed := sum(by_type.values())):
        # Slurm does not count every type
        by_type[""] = in_all - typed
    return by_type


def memory_mib(totals: str) -> int:
    """Reads the memory from text such as `cpu=1,mem=100M,node=1`."""
    found = _MEMORY.search(totals)
    return int(float(found[1]) * _UNITS.get(found[2], 1)) if found else 0


def _node(item: Mapping[str, Any]) -> SlurmNode:
    state, flags = _state(item.get("state"), item.get("state_flags"))
    return SlurmNode(
        name=str(item["name"] or ""),
        address=str(item.get("address") or item["name"]),
        state=state,
        flags=flags,
        reason=str(item.get("reason") or ""),
        cpus=_number(item.get("cpus")) or 0,
        memory_mib=_number(item.get("real_memory")) or 0,
        gpus=gpus_in(str(item.get("gres") or "")),
        # After a crash of the controller the two may differ, and Slurm gives out no more than the larger one leaves.
        used_gpus=max(sum(gpus_in(str(item.get(name) or "")).values()) for name in ("gres_used", "tres_used")),
        partitions=_names(item.get("partitions")),
        features=_names(item.get("active_features")),
        daemon_started_at=_time(item.get("slurmd_start_time")),
    )


def _job(item: Mapping[str, Any]) -> SlurmJob:
    state, flags = _state(item.get("job_state", _current(item)), None)
    code, signal = _exit(item.get("exit_code"))
    nodes = expand(_node_list(item.get("nodes")))
    totals = str(item.get("tres_alloc_str") or item.get("tres_req_str") or "")
    share = max(1, len(nodes))
    details = _gpu_details(nodes, item.get("gres_detail") or ())
    counts = {name: _total(detail) for name, detail in details.items()}
    return SlurmJob(
        id=int(item["job_id"]),
        name=str(item.get("name") or ""),
        uid=_number(item.get("user_id")),
        user=str(item.get("user_name") or item.get("user") or ""),
        # Over except for the clean-up on its nodes, which it holds until then. Older versions report only that flag.
        state="COMPLETING" if "COMPLETING" in flags else state,
        reason=str(item.get("state_reason") or _of(item, "state", "reason") or ""),
        comment=_comment(item.get("comment")),
        nodes=tuple(nodes),
        gpus=_total(totals) // share or max(counts.values(), default=0),
        gpu_counts=counts,
        gpu_indexes={name: frozenset(_indexes(detail)) for name, detail in details.items()},
        cpus=(_number(item.get("cpus")) or 0) // share,
        memory_mib=memory_mib(totals) // share,
        exit_code=code,
        signal=signal,
        submitted_at=float(_number(item.get("submit_time", _of(item, "time", "submission"))) or 0),
        started_at=_time(item.get("start_time", _of(item, "time", "start"))),
        ended_at=_time(item.get("end_time", _of(item, "time", "end"))),
    )


def _gpu_details(nodes: Sequence[str], details: Sequence[Any]) -> dict[str, str]:
    """`gpu:a100:4(IDX:0-2,5)` for each node, in the order of its nodes; empty if Slurm does not report it."""
    if len(details) != len(nodes) or not any(_total(str(detail)) for detail in details):
        return {}
    return {node: str(detail) for node, detail in zip(nodes, details, strict=True)}


def _total(text: str) -> int:
    return sum(gpus_in(text).values())


def _indexes(detail: str) -> Iterable[int]:
    for part in _gpu_parts(detail):
        if found := _INDEXES.fullmatch(part["more"] or ""):
            yield from _numbers(found[1])


def _gpu_parts(text: str) -> Iterable[re.Match[str]]:
    """The items of a list that are GPUs; `vgpu:4` and `shard:8` are not."""
    return filter(None, map(_GPUS.fullmatch, parts(text or "", "()")))


def _numbers(text: str) -> Iterable[int]:
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _state(value: Any, flags: Any) -> tuple[str, frozenset[str]]:
    """The state and its flags: newer versions put both into one list."""
    words = [str(word).upper() for word in ([value] if isinstance(value, str) else value or ["UNKNOWN"])]
    if len(words) == 1:
        words = words[0].split()  # "CANCELLED by 0"
    return words[0], frozenset([*words[1:], *(str(flag).upper() for flag in flags or ())])


def _current(item: Mapping[str, Any]) -> Any:
    """The state in sacct's records."""
    state = item.get("state")
    return state.get("current") if isinstance(state, Mapping) else None


def _list(document: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = document.get(name)
    if not isinstance(found, list):
        raise Unreadable(f"there are no {name} in what Slurm answered, but {', '.join(document) or 'nothing'}")
    return found


def _each(document: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any]], _Read]) -> list[_Read]:
    """A row that cannot be read is skipped: one job must not hide the others. The GPUs that such a job holds still
    count as used on their nodes (`nodes.unexplained`)."""
    found, problem = list[_Read](), None
    items = _list(document, name)
    for item in items:
        try:
            found.append(read(item))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("one of Slurm's %s cannot be read (%r): %.300r", name, error, item)
            problem = error
    if problem is not None and not found:
        raise Unreadable(f"its {name} have a form that is not known here ({problem!r})") from problem
    return found


def _number(value: Any) -> int | None:
    if isinstance(value, Mapping):
        return int(value["number"]) if value.get("set") and not value.get("infinite") else None
    return None if value in (None, "") else int(value)


def _time(value: Any) -> float | None:
    number = _number(value)
    return float(number) if number else None


def _exit(value: Any) -> tuple[int | None, int | None]:
    """The exit code, and the signal that ended it. A plain number is a wait() status."""
    if isinstance(value, Mapping):
        signal = _number(_of(value, "signal", "signal_id") or _of(value, "signal", "id"))
        return _number(value.get("return_code")), signal or None
    if value is None:
        return None, None
    return (int(value) >> 8) & 0xFF, (int(value) & 0x7F) or None


def _of(item: Mapping[str, Any], *path: str) -> Any:
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, list):
        return value[0] if value else None
    return value


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    return tuple(sorted(str(word) for word in value or () if word))


def _comment(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("job")
    return str(value or "")


def _node_list(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("list") or value.get("nodes")
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return "" if text in ("None assigned", "(null)") else text
