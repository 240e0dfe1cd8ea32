"""Limits on memory, CPUs and the number of processes by control groups: version 2, or version 1 where the controllers
are mounted separately.

There is one group per limited instance, under a directory `corral`. Only processes of jobs join the groups. Supervisors
stay outside, so the kernel never kills the process that has to record the end. Without writable groups no limit is
enforced, and `cgroup_support` reports why. The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

CGROUP_MOUNT = "/sys/fs/cgroup"
_DIRECTORY = "corral"
_PERIOD_USEC = 100_000
_REMOVE_SECONDS = 1.0
_NEAR_LIMIT = 0.98


@dataclass(frozen=True, kw_only=True, slots=True)
class CgroupSupport:
    """The limits that can be enforced: per controller the directory for new groups, or "" if it is not enforced."""

    version: int
    memory: str = ""
    cpu: str = ""
    pids: str = ""
    detail: str = ""

    @property
    def writable(self) -> bool:
        return bool(self.memory and self.cpu)


def cgroup_support(mount: str = CGROUP_MOUNT, own: str = "/proc/self/cgroup") -> CgroupSupport:
    """Find (and create) the directories under which groups can be made."""
    own_paths = _own_paths(own)
    if os.path.exists(os.path.join(mount, "cgroup.controllers")):
        return _support_v2(mount, own_paths.get("", "/"))
    if os.path.isdir(os.path.join(mount, "memory")):
        return _support_v1(mount, own_paths)
    return CgroupSupport(version=0, detail=f"no control groups are mounted at {mount}")


def _support_v2(mount: str, own_path: str) -> CgroupSupport:
    # The top directory needs root. A delegated systemd unit whose server is in a subgroup may use the level above it.
    own = os.path.normpath(mount + own_path)
    candidates = [mount]
    if own != os.path.normpath(mount):
        candidates += [os.path.dirname(own), own]
    problem = ""
    for parent in candidates:
        base = os.path.join(parent, _DIRECTORY)
        try:
            _enable_controllers(parent)
            os.makedirs(base, exist_ok=True)
            _enable_controllers(base)
        except OSError as error:
            problem = f"{error.filename or base}: {error.strerror}"
            continue
        pids = base if _enable_pids(parent) and _enable_pids(base) else ""
        return CgroupSupport(version=2, memory=base, cpu=base, pids=pids, detail=f"version 2, groups under {base}")
    return CgroupSupport(version=2, detail=f"version 2, not writable ({problem})")


def _enable_controllers(directory: str, controllers: tuple[str, ...] = ("memory", "cpu")) -> None:
    path = os.path.join(directory, "cgroup.subtree_control")
    with open(path, encoding="ascii") as source:
        enabled = set(source.read().split())
    for controller in controllers:
        if controller not in enabled:
            _write(path, f"+{controller}")


def _enable_pids(directory: str) -> bool:
    """Whether the number of processes can be limited below this directory. Memory and CPUs are limited in any case."""
    try:
        with open(os.path.join(directory, "cgroup.controllers"), encoding="ascii") as source:
            if "pids" not in source.read().split():
                return False
        _enable_controllers(directory, ("pids",))
    except OSError:
        return False
    return True


def _support_v1(mount: str, own_paths: dict[str, str]) -> CgroupSupport:
    found: dict[str, str] = {}
    problems: list[str] = []
    for controller in ("memory", "cpu", "pids"):
        top = os.path.join(mount, controller)
        if controller == "pids" and not os.path.isdir(top):
            continue
        for parent in (top, os.path.normpath(top + own_paths.get(controller, "/"))):
            base = os.path.join(parent, _DIRECTORY)
            try:
                os.makedirs(base, exist_ok=True)
            except OSError as error:
                problems.append(f"{base}: {error.strerror}")
                continue
            if os.access(base, os.W_OK):
                found[controller] = base
                break
    usable = {"memory", "cpu"} <= found.keys()
    detail = "version 1, " + (
        f"groups under {' and '.join(found.values())}" if usable else f"not writable ({'; '.join(problems)})"
    )
    return CgroupSupport(version=1, detail=detail, **found)


def _own_paths(own: str) -> dict[str, str]:
    """This process's group per controller, from lines like `4:memory:/a/b`; version 2 has the empty name."""
    paths: dict[str, str] = {}
    try:
        with open(own, encoding="utf-8") as source:
            lines = source.read().splitlines()
    except OSError:
        return paths
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryReport:
    """The kernel's counters. `own_limit` is False if the whole machine, not the group, ran out of memory."""

    oom_kills: int
    peak_bytes: int
    own_limit: bool


class Cgroup:
    """The group of one instance. With version 2 one directory, with version 1 one per controller."""

    def __init__(
        self, support: CgroupSupport, name: str, *, memory_bytes: int, cpu_milli: int, max_processes: int = 0
    ) -> None:
        """0 means no limit."""
        self._version = support.version
        self._memory_bytes = memory_bytes
        self._cpu_milli = cpu_milli
        self._max_processes = max_processes
        self._pids = os.path.join(support.pids, name) if support.pids and max_processes else ""
        self._memory = os.path.join(support.memory, name) if support.memory and memory_bytes else ""
        self._cpu = os.path.join(support.cpu, name) if support.cpu and cpu_milli else ""

    @property
    def _shadows(self) -> list[str]:
        """Directories of the same group that a container runtime has created in hierarchies without limits."""
        if self._version != 1 or not self.directories:
            return []
        base, name = os.path.split(self.directories[0])
        places = [os.path.join(place, name) for place in _all_hierarchies(base)]
        return [place for place in places if place not in self.directories and os.path.isdir(place)]

    @property
    def directories(self) -> list[str]:
        return sorted({path for path in (self._memory, self._cpu, self._pids) if path})

    def create(self) -> None:
        """Raises OSError when the kernel refuses a limit."""
        for path in self.directories:
            os.makedirs(path, exist_ok=True)
        if self._memory:
            self._limit_memory()
        if self._pids:
            _write(os.path.join(self._pids, "pids.max"), str(self._max_processes))
        if self._cpu:
            quota = max(1000, self._cpu_milli * _PERIOD_USEC // 1000)
            if self._version == 2:
                _write(os.path.join(self._cpu, "cpu.max"), f"{quota} {_PERIOD_USEC}")
            else:
                _write(os.path.join(self._cpu, "cpu.cfs_period_us"), str(_PERIOD_USEC))
                _write(os.path.join(self._cpu, "cpu.cfs_quota_us"), str(quota))

    def _limit_memory(self) -> None:
        # Swap is limited too: a job over its memory limit must end, instead of becoming very slow.
        limit = str(self._memory_bytes)
        if self._version == 2:
            _write(os.path.join(self._memory, "memory.max"), limit)
            optional = {"memory.swap.max": "0", "memory.oom.group": "1"}
        else:
            _write(os.path.join(self._memory, "memory.limit_in_bytes"), limit)
            optional = {"memory.memsw.limit_in_bytes": limit}
        for name, value in optional.items():
            path = os.path.join(self._memory, name)
            if os.path.exists(path):
                _write(path, value)

    def join(self) -> None:
        """Put the calling process into the group."""
        for path in self.directories:
            _write(os.path.join(path, "cgroup.procs"), "0")

    def processes(self) -> set[int]:
        """The processes of the group and of groups below it, which container runtimes create."""
        found: set[int] = set()
        for top in self.directories:
            for path, _, _ in os.walk(top):
                with contextlib.suppress(OSError), open(os.path.join(path, "cgroup.procs"), encoding="ascii") as source:
                    found.update(int(line) for line in source)
        return found

    def forbid_forks(self) -> None:
        """Forbids all processes of the group to fork: one pass of SIGKILL then reaches all of them."""
        if self._pids:
            with contextlib.suppress(OSError):
                _write(os.path.join(self._pids, "pids.max"), "0")

    def refused_forks(self) -> int:
        """How many forks the limit on processes has refused."""
        return dict(_pairs(os.path.join(self._pids, "pids.events"))).get("max", 0) if self._pids else 0

    def memory_report(self) -> MemoryReport:
        if not self._memory:
            return MemoryReport(oom_kills=0, peak_bytes=0, own_limit=False)
        if self._version == 2:
            events = dict(_pairs(os.path.join(self._memory, "memory.events")))
            failures = events.get("oom", 0)
            peak = _number(os.path.join(self._memory, "memory.peak"))
        else:
            events = dict(_pairs(os.path.join(self._memory, "memory.oom_control")))
            failures = _number(os.path.join(self._memory, "memory.failcnt"))
            peak = _number(os.path.join(self._memory, "memory.max_usage_in_bytes"))
        # Not every kernel counts failures; the peak is a second indicator.
        own_limit = failures > 0 or peak >= self._memory_bytes * _NEAR_LIMIT
        return MemoryReport(oom_kills=events.get("oom_kill", 0), peak_bytes=peak, own_limit=own_limit)

    def remove(self, seconds: float = _REMOVE_SECONDS, *, of_container: bool = True) -> None:
        """Retries for `seconds`, because processes that just died may still count. A group that stays is removed at the
        next start of the engine."""
        deadline = time.monotonic() + seconds
        for path in (*self.directories, *(self._shadows if of_container else ())):
            while not remove_group(path) and time.monotonic() < deadline:
                time.sleep(0.005)


def remove_group(path: str) -> bool:
    """Whether the group and the groups below it are gone; False while one of them has a process."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        pass  # it has groups below it, or a process
    else:
        return True
    try:
        for below, _, _ in os.walk(path, topdown=False):
            os.rmdir(below)
    except OSError as error:
        return error.errno != errno.EBUSY
    return True


def sweep(support: CgroupSupport, prefix: str, keep: set[str]) -> None:
    """Remove empty groups that a killed supervisor left behind."""
    bases = {support.memory, support.cpu, support.pids} - {""}
    if support.version == 1:
        bases |= {place for base in bases for place in _all_hierarchies(base) if os.path.isdir(place)}
    for base in bases:
        for name in os.listdir(base):
            if name.startswith(prefix) and name not in keep:
                remove_group(os.path.join(base, name))


def _all_hierarchies(base: str) -> list[str]:
    """Version 1: the same directory in every hierarchy, given its path in one of them."""
    if not base.startswith(f"{CGROUP_MOUNT}/"):
        return []
    below = os.path.relpath(base, CGROUP_MOUNT).partition("/")[2]
    return [os.path.join(CGROUP_MOUNT, hierarchy, below) for hierarchy in os.listdir(CGROUP_MOUNT)]


def _write(path: str, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, value.encode("ascii"))
    finally:
        os.close(descriptor)


def _pairs(path: str) -> Iterator[tuple[str, int]]:
    with contextlib.suppress(OSError), open(path, encoding="ascii") as source:
        for line in source:
            key, _, value = line.partition(" ")
            yield key, int(value)


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as source:
            return int(source.read())
    except (OSError, ValueError):
        return 0
