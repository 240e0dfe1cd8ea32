"""Slurm's partitions: which partition a job is submitted to, and with which time limit. Pure, except for a cache.

For nodes of two partitions Slurm refuses a job with a message that does not mention partitions, and a job that is
longer than its partition allows waits for ever. So both are checked before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from corral.control.ports import LaunchRefused
from corral.core.counts import counted
from corral.core.quantities import format_duration
from corral.engines.slurm.slurm_api.hostlist import expand

log = logging.getLogger("corral.engines.slurm")

#: An administrator changes partitions a few times a year.
KEPT_SECONDS = 300.0
#: While a partition is closed, it is probably opened again soon.
CLOSED_SECONDS = 60.0
#: An answer that is younger than this is not refreshed, even after a refusal.
FRESH_SECONDS = 5.0
#: A time limit of 0 minutes means none.
UNLIMITED = 0
#: In these states Slurm accepts no jobs; if a partition is DOWN, it accepts jobs, and they wait.
_CLOSED = frozenset({"DRAIN", "INACTIVE"})
_LABEL_HINT = "a job that asks for the label slurm.partition.NAME=yes is planned within one partition"

_Answer = TypeVar("_Answer")


class PartitionClosed(Exception):
    """The partition accepts no jobs now: try again later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    name: str
    nodes: frozenset[str] = frozenset()
    #: UP, DOWN, DRAIN or INACTIVE
    state: str = "UP"
    is_default: bool = False
    #: restricted to some users, or hidden from some
    is_special: bool = False
    #: None: no limit
    max_minutes: int | None = None
    #: the time limit of a job that asks for none; None: the maximum
    default_minutes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The partition of a job, and Slurm's own time limit for it: None leaves it to Slurm."""

    partition: str
    minutes: int | None


def place_for(
    partitions: Sequence[Partition],
    nodes: Collection[str],
    *,
    named: Sequence[str],
    limit_seconds: float | None,
    spare_seconds: float,
    max_minutes: int | None = None,
) -> Place:
    """`named` are the partitions that corral may use, the best first; empty means all. A job without a limit gets the
    maximum, a job with a limit also `spare_seconds` on top, as far as the partition allows. `max_minutes` is the most
    that Slurm allows for other reasons. Raises LaunchRefused and PartitionClosed."""
    wanted = None if limit_seconds is None else int((limit_seconds + spare_seconds) // 60) + 2
    if not partitions:
        # Slurm shows them to no user.
        return Place(partition=named[0] if named else "", minutes=wanted if wanted is not None else max_minutes)
    whole = [partition for partition in _ranked(partitions, named) if partition.nodes.issuperset(nodes)]
    if not whole:
        raise LaunchRefused(_no_partition(partitions, nodes, named))
    enough = [partition for partition in whole if _allows(_most(partition, max_minutes), limit_seconds)]
    if not enough:
        raise LaunchRefused(_too_long(whole, limit_seconds or 0.0, max_minutes))
    ready = [partition for partition in enough if partition.state not in _CLOSED]
    if not ready:
        raise PartitionClosed(_closed(enough[0]))
    best = min(ready, key=lambda partition: partition.state != "UP")
    return Place(partition=best.name, minutes=_minutes(best, wanted, _most(best, max_minutes)))


def closed_nodes(partitions: Sequence[Partition], named: Sequence[str]) -> dict[str, str]:
    """The nodes on which Slurm starts no jobs of corral because none of their partitions is up, with the reason."""
    mine = _ranked(partitions, named)
    is_open = {node for partition in mine if partition.state == "UP" for node in partition.nodes}
    return {node: _closed(partition) for partition in mine for node in partition.nodes if node not in is_open}


def partitions_in(table: str) -> list[Partition]:
    """Parses the output of `scontrol --oneliner show partition`."""
    return [_parse_partition(line) for line in table.splitlines() if line.startswith("PartitionName=")]


def partitions_of(document: Mapping[str, Any]) -> list[Partition]:
    """Parses the answer of slurmrestd. Versions v0.0.40 to v0.0.44 do not report which partition is the default, or
    special.
    """
    return [_of_json(item) for item in document.get("partitions") or ()]


class Partitions:
    """A cache of the partitions. A job is never refused because of an old answer."""

    def __init__(
        self,
        ask: Callable[[], list[Partition]],
        *,
        refused: type[Exception],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`refused` is the error that is raised when Slurm refuses an action or a query."""
        self._ask = ask
        self._refused = refused
        self._clock = clock
        self._lock = threading.Lock()
        self._known: list[Partition] = []
        self._asked_at = float("-inf")

    def now(self) -> Sequence[Partition]:
        """The partitions, queried again only if the cache is old."""
        is_closed = any(partition.state != "UP" for partition in self._known)
        return self._fetched(CLOSED_SECONDS if is_closed else KEPT_SECONDS)

    def decide(self, do: Callable[[Sequence[Partition]], _Answer]) -> _Answer:
        """The result of `do` with the partitions. After a refusal it is repeated once if the partitions have
        changed."""
        known = self.now()
        try:
            return do(known)
        except (LaunchRefused, PartitionClosed, self._refused):
            now = self._fetched(FRESH_SECONDS)
            if now == known:
                raise
            return do(now)

    def _fetched(self, seconds: float) -> list[Partition]:
        """Threads that come during a query wait for its answer."""
        with self._lock:
            if self._clock() - self._asked_at >= seconds:
                try:
                    self._known = self._ask()
                except self._refused as refusal:
                    log.warning("Slurm does not list its partitions: %s", refusal)
                    self._known = []
                self._asked_at = self._clock()
            return self._known


def _ranked(partitions: Sequence[Partition], named: Sequence[str]) -> list[Partition]:
    """The partitions in the order of preference."""
    if named:
        by_name = {partition.name: partition for partition in partitions}
        return [by_name[name] for name in named if name in by_name]
    return sorted(partitions, key=lambda partition: (not partition.is_default, partition.is_special))


def _most(partition: Partition, max_minutes: int | None) -> int | None:
    limits = [limit for limit in (partition.max_minutes, max_minutes) if limit is not None]
    return min(limits, default=None)


def _allows(most: int | None, limit_seconds: float | None) -> bool:
    return most is None or limit_seconds is None or limit_seconds <= most * 60


def _minutes(partition: Partition, wanted: int | None, most: int | None) -> int | None:
    if wanted is not None:
        return wanted if most is None else min(wanted, most)
    if partition.default_minutes is None and most == partition.max_minutes:
        # Slurm applies the maximum by itself, and no more than accounts and QOS allow.
        return None
    return UNLIMITED if most is None else most


def _closed(partition: Partition) -> str:
    return f"partition {partition.name} begins no jobs for now (it is in state {partition.state})"


def _no_partition(partitions: Iterable[Partition], nodes: Collection[str], named: Sequence[str]) -> str:
    """Lists the partitions of each node."""
    mine = [partition for partition in partitions if not named or partition.name in named]
    of = {
        node: " and ".join(partition.name for partition in mine if node in partition.nodes) or "none" for node in nodes
    }
    listed = "; ".join(f"{node} is in {of[node]}" for node in sorted(of)[:8])
    more = f"; and {counted(len(of) - 8, 'node')} more" if len(of) > 8 else ""
    there = f"those of slurm.partitions ({', '.join(named)})" if named else "Slurm's partitions"
    return f"none of {there} has all of its nodes: {listed}{more}. Slurm runs a job in one partition; {_LABEL_HINT}"


def _too_long(whole: Iterable[Partition], limit_seconds: float, max_minutes: int | None) -> str:
    listed = ", ".join(
        f"{partition.name} {format_duration((_most(partition, max_minutes) or 0) * 60)}" for partition in whole
    )
    return (
        f"its time limit of {format_duration(limit_seconds)} is longer than Slurm allows on its nodes ({listed}): "
        f"ask for less, or for another partition; {_LABEL_HINT}"
    )


def _parse_partition(line: str) -> Partition:
    fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
    return Partition(
        name=fields["PartitionName"],
        nodes=_node_names(fields.get("Nodes")),
        state=fields.get("State", "UP").upper(),
        is_default=fields.get("Default") == "YES",
        is_special="YES" in (fields.get("Hidden"), fields.get("RootOnly")),
        max_minutes=_minutes_in(fields.get("MaxTime", "")),
        default_minutes=_minutes_in(fields.get("DefaultTime", "")),
    )


def _of_json(item: Mapping[str, Any]) -> Partition:
    nodes, flags = item.get("nodes"), {str(flag).lower() for flag in item.get("flags") or ()}
    state = item.get("state") or (item.get("partition") or {}).get("state") or "UP"
    most = item.get("max_time_limit", (item.get("maximums") or {}).get("time"))
    default = item.get("default_time_limit", (item.get("defaults") or {}).get("time"))
    return Partition(
        name=str(item["name"]),
        nodes=_node_names(nodes.get("configured") if isinstance(nodes, Mapping) else nodes),
        state=str(state if isinstance(state, str) else state[0]).upper(),
        is_default="default" in flags,
        is_special=bool(flags & {"hidden", "root_only"}),
        max_minutes=_number(most),
        default_minutes=_number(default),
    )


def _node_names(text: Any) -> frozenset[str]:
    return frozenset(expand(str(text))) if text and text != "(null)" else frozenset()


def _minutes_in(text: str) -> int | None:
    """Parses a duration such as `1-12:30:00`. Words (UNLIMITED, NONE) mean no limit."""
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in (*parts, days or "0")):
        return None
    hours, minutes, seconds = map(int, parts)
    return (int(days or 0) * 24 + hours) * 60 + minutes + (seconds > 0)


def _number(value: Any) -> int | None:
    """v0.0.38 has -1 or null for no limit."""
    if isinstance(value, Mapping):
        return int(value.get("number") or 0) if value.get("set") and not value.get("infinite") else None
    return int(value) if value is not None and int(value) >= 0 else None
