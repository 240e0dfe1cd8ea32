"""Slurm's partitions: which of them a job is given to, and for how long. Pure, but for what is remembered of them.

Slurm itself refuses a job for nodes of two partitions in words that say nothing of partitions, and leaves one that is
longer than a partition allows waiting for ever. So both are looked at before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from corral.control.ports import LaunchRefused
from corral.core.quantities import format_duration
from corral.engines.slurm.slurm_api.hostlist import expand

log = logging.getLogger("corral.engines.slurm")

#: An administrator changes partitions a few times a year.
KEPT_SECONDS = 300.0
#: While one of them is closed, somebody is about to open it again.
CLOSED_SECONDS = 60.0
#: What is younger than this is not asked again, whatever Slurm refuses.
FRESH_SECONDS = 5.0
#: In place of minutes: no limit at all.
UNLIMITED = 0
#: In these Slurm takes no jobs; where one is DOWN it takes them, and they wait.
_CLOSED = frozenset({"DRAIN", "INACTIVE"})
_LABEL_HINT = "a job that asks for the label slurm.partition.NAME=yes is planned within one partition"

_Answer = TypeVar("_Answer")


class PartitionClosed(Exception):
    """Nothing is taken there for now: the same again later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    name: str
    nodes: frozenset[str] = frozenset()
    #: UP, DOWN, DRAIN or INACTIVE
    state: str = "UP"
    is_default: bool = False
    #: not for everybody, or not shown to everybody
    is_special: bool = False
    #: None: no limit
    max_minutes: int | None = None
    #: what a job gets that asks for no time; None: the most
    default_minutes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a job is given to, and Slurm's own limit for it: None leaves it to Slurm."""

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
    """`named` are those that corral may use, the best first; none of them means all. A job without a limit gets the
    most that there is, one with a limit also `spare_seconds` behind it, as far as the partition allows. `max_minutes`
    is the most that Slurm allows for other reasons. Raises LaunchRefused and PartitionClosed."""
    wanted = None if limit_seconds is None else int((limit_seconds + spare_seconds) // 60) + 2
    if not partitions:
        # Slurm tells nobody of them.
        return Place(partition=named[0] if named else "", minutes=wanted if wanted is not None else max_minutes)
    whole = [one for one in _ranked(partitions, named) if one.nodes.issuperset(nodes)]
    if not whole:
        raise LaunchRefused(_no_partition(partitions, nodes, named))
    enough = [one for one in whole if _allows(_most(one, max_minutes), limit_seconds)]
    if not enough:
        raise LaunchRefused(_too_long(whole, limit_seconds or 0.0, max_minutes))
    ready = [one for one in enough if one.state not in _CLOSED]
    if not ready:
        raise PartitionClosed(_closed(enough[0]))
    best = min(ready, key=lambda one: one.state != "UP")
    return Place(partition=best.name, minutes=_minutes(best, wanted, _most(best, max_minutes)))


def closed_nodes(partitions: Sequence[Partition], named: Sequence[str]) -> dict[str, str]:
    """The nodes on which Slurm begins no jobs of corral's because none of their partitions is up, and why."""
    mine = _ranked(partitions, named)
    is_open = {node for one in mine if one.state == "UP" for node in one.nodes}
    return {node: _closed(one) for one in mine for node in one.nodes if node not in is_open}


def partitions_in(table: str) -> list[Partition]:
    """Of `scontrol --oneliner show partition`."""
    return [_parse_partition(line) for line in table.splitlines() if line.startswith("PartitionName=")]


def partitions_of(document: Mapping[str, Any]) -> list[Partition]:
    """Of slurmrestd. From v0.0.40 to v0.0.44 it does not tell which one is the default, or special."""
    return [_of_json(item) for item in document.get("partitions") or ()]


class Partitions:
    """As they were last told. Nothing is refused because of something that was asked long ago."""

    def __init__(
        self,
        ask: Callable[[], list[Partition]],
        *,
        refused: type[Exception],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`refused` is what is raised for what Slurm will not do, or not tell."""
        self._ask = ask
        self._refused = refused
        self._clock = clock
        self._lock = threading.Lock()
        self._known: list[Partition] = []
        self._asked_at = float("-inf")

    def now(self) -> Sequence[Partition]:
        """As far as is known without asking too often."""
        is_closed = any(one.state != "UP" for one in self._known)
        return self._told(CLOSED_SECONDS if is_closed else KEPT_SECONDS)

    def decide(self, do: Callable[[Sequence[Partition]], _Answer]) -> _Answer:
        """What `do` makes of the partitions. What is refused is done once more if they have changed since they were
        asked for."""
        known = self.now()
        try:
            return do(known)
        except (LaunchRefused, PartitionClosed, self._refused):
            now = self._told(FRESH_SECONDS)
            if now == known:
                raise
            return do(now)

    def _told(self, seconds: float) -> list[Partition]:
        """Whoever comes while they are asked for waits for the same answer."""
        with self._lock:
            if self._clock() - self._asked_at >= seconds:
                try:
                    self._known = self._ask()
                except self._refused as refusal:
                    log.warning("Slurm does not tell its partitions: %s", refusal)
                    self._known = []
                self._asked_at = self._clock()
            return self._known


def _ranked(partitions: Sequence[Partition], named: Sequence[str]) -> list[Partition]:
    """In the order in which they are preferred."""
    if named:
        by_name = {one.name: one for one in partitions}
        return [by_name[name] for name in named if name in by_name]
    return sorted(partitions, key=lambda one: (not one.is_default, one.is_special))


def _most(partition: Partition, max_minutes: int | None) -> int | None:
    limits = [limit for limit in (partition.max_minutes, max_minutes) if limit is not None]
    return min(limits, default=None)


def _allows(most: int | None, limit_seconds: float | None) -> bool:
    return most is None or limit_seconds is None or limit_seconds <= most * 60


def _minutes(partition: Partition, wanted: int | None, most: int | None) -> int | None:
    if wanted is not None:
        return wanted if most is None else min(wanted, most)
    if partition.default_minutes is None and most == partition.max_minutes:
        # Slurm gives the most by itself, and no more than accounts and QOS allow.
        return None
    return UNLIMITED if most is None else most


def _closed(partition: Partition) -> str:
    return f"partition {partition.name} begins no jobs for now (it is in state {partition.state})"


def _no_partition(partitions: Iterable[Partition], nodes: Collection[str], named: Sequence[str]) -> str:
    """Names what each of the nodes is in."""
    mine = [one for one in partitions if not named or one.name in named]
    of = {node: " and ".join(one.name for one in mine if node in one.nodes) or "none" for node in nodes}
    told = "; ".join(f"{node} is in {of[node]}" for node in sorted(of)[:8])
    more = f"; and {len(of) - 8} nodes more" if len(of) > 8 else ""
    there = f"those of slurm.partitions ({', '.join(named)})" if named else "Slurm's partitions"
    return f"none of {there} has all of its nodes: {told}{more}. Slurm runs a job in one partition; {_LABEL_HINT}"


def _too_long(whole: Iterable[Partition], limit_seconds: float, max_minutes: int | None) -> str:
    told = ", ".join(f"{one.name} {format_duration((_most(one, max_minutes) or 0) * 60)}" for one in whole)
    return (
        f"its time limit of {format_duration(limit_seconds)} is longer than Slurm allows on its nodes ({told}): "
        f"ask for less, or for another partition; {_LABEL_HINT}"
    )


def _parse_partition(line: str) -> Partition:
    words = dict(word.split("=", 1) for word in line.split() if "=" in word)
    return Partition(
        name=words["PartitionName"],
        nodes=_node_names(words.get("Nodes")),
        state=words.get("State", "UP").upper(),
        is_default=words.get("Default") == "YES",
        is_special="YES" in (words.get("Hidden"), words.get("RootOnly")),
        max_minutes=_minutes_in(words.get("MaxTime", "")),
        default_minutes=_minutes_in(words.get("DefaultTime", "")),
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
    """Of `1-12:30:00`. Words (UNLIMITED, NONE) are no limit."""
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in (*parts, days or "0")):
        return None
    hours, minutes, seconds = map(int, parts)
    return (int(days or 0) * 24 + hours) * 60 + minutes + (seconds > 0)


def _number(value: Any) -> int | None:
    """Without a limit v0.0.38 says -1 or null."""
    if isinstance(value, Mapping):
        return int(value.get("number") or 0) if value.get("set") and not value.get("infinite") else None
    return int(value) if value is not None and int(value) >= 0 else None
