"""The files of attempts, as the engine reads and writes them: markers, states of instances, stops, clean-up.

This module knows what is on disk, and which processes exist. The engine decides when to read the files and to whom
changes are reported.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.control.ports import AttemptPhase, LogChunk
from corral.core.copies import replace
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit, InstanceState, parse_exit
from corral.engines.attempts.claims import CLAIM, Claim, ClaimState, claim_state, read_claim, record_end, take_claim
from corral.engines.attempts.environment import RUN_DIR_VARIABLE
from corral.engines.attempts.job_places import remove_tree
from corral.engines.attempts.json_files import read_json, write_json
from corral.engines.attempts.log_segments import PREFIX, LogPlaces
from corral.engines.attempts.processes import boot_id, processes_by_env, send, start_ticks
from corral.engines.local.cgroups import Cgroup, CgroupSupport
from corral.engines.local.rundir import (
    AUTH,
    ENVIRONMENT,
    EXIT,
    LOST,
    ORDER,
    TMP,
    Layout,
    folded_prefix,
    is_folded,
    is_safe_id,
    write_stop,
)
from corral.engines.storage.job_mounts import PRIVATE
from corral.engines.storage.preparation import PROGRESS
from corral.files.trash import Trash

log = logging.getLogger("corral.engines.local")

_CLEAN_UP_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """The data of an attempt that the engine needs after a restart."""

    nodes: tuple[str, ...]
    grace_seconds: float
    master_port: int | None = None


@dataclass(kw_only=True, slots=True)
class Tracked:
    """An attempt that is not yet forgotten, as last seen."""

    attempt_id: str
    marker: Marker
    instances: list[InstanceState] = field(default_factory=list)
    stop_sent: bool = False
    #: the last phase that was reported to listeners; set by the watcher
    reported: AttemptPhase | None = None

    def __post_init__(self) -> None:
        self.instances = [InstanceState(rank=rank, node=node) for rank, node in enumerate(self.marker.nodes)]

    @property
    def is_over(self) -> bool:
        return all(instance.exit is not None for instance in self.instances)

    @property
    def is_claimed(self) -> bool:
        return all(instance.claimed_at is not None for instance in self.instances)


class AttemptFiles:
    def __init__(
        self,
        layout: Layout,
        cgroups: CgroupSupport,
        cgroup_prefix: str,
        remove_container: Callable[[str, int], None] = lambda attempt_id, rank: None,
        remove_scratch: Callable[[str, int], None] = lambda attempt_id, rank: None,
    ) -> None:
        """`remove_container` is called with instances whose supervisor died and left a container, `remove_scratch` with
        every instance whose supervisor died. Both must return at once."""
        self._layout = layout
        self._trash = Trash(layout.removed_dir)
        self._trash.empty()
        self._remove_container = remove_container
        self._remove_scratch = remove_scratch
        self._cgroups = cgroups
        self._cgroup_prefix = cgroup_prefix
        self._boot_id = boot_id()

    @property
    def boot_id(self) -> str:
        return self._boot_id

    def cgroup_name(self, attempt_id: str, rank: int) -> str:
        return f"{self._cgroup_prefix}{attempt_id}-{rank}"

    def group(self, attempt_id: str, rank: int) -> Cgroup:
        """The control group of an instance; some of its directories may not exist."""
        name = self.cgroup_name(attempt_id, rank)
        return Cgroup(self._cgroups, name, memory_bytes=1, cpu_milli=1, max_processes=1)

    # -------------------------------------------------------------------------------------------- markers

    def create(self, attempt_id: str, marker: Marker) -> Tracked | None:
        """Create marker and directories of a new attempt; None if it was launched and forgotten before."""
        directory = self._layout.attempt_dir(attempt_id)
        try:
            os.makedirs(directory, mode=0o700)
        except FileExistsError:
            names = os.listdir(directory)
            if is_folded(names) or any(os.path.exists(os.path.join(directory, rank, CLAIM)) for rank in names):
                return None
        for rank in range(len(marker.nodes)):
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.join(directory, str(rank)), mode=0o700)
        body = {
            "nodes": list(marker.nodes),
            "grace_seconds": marker.grace_seconds,
            "master_port": marker.master_port,
        }
        # Kept in the run directory and linked: forgetting an attempt then removes a name but frees no file, which is
        # slow on some disks.
        order_path = os.path.join(directory, ORDER)
        write_json(order_path, body)
        marker_path = self._layout.marker(attempt_id)
        try:
            os.link(order_path, marker_path)
        except FileExistsError:
            os.unlink(marker_path)
            os.link(order_path, marker_path)
        return Tracked(attempt_id=attempt_id, marker=marker)

    def load(self, attempt_id: str) -> Tracked | None:
        """Read an attempt of an earlier engine; None if there is no marker."""
        if not is_safe_id(attempt_id) or not os.path.exists(self._layout.marker(attempt_id)):
            return None
        marker = _marker(read_json(self._layout.marker(attempt_id)) or {})
        if marker is None:
            # It was damaged when the machine lost power: the directories show the number of instances.
            ranks = [name for name in self._listed(attempt_id) if name.isdigit()]
            marker = Marker(nodes=("",) * len(ranks), grace_seconds=0.0)
        return Tracked(attempt_id=attempt_id, marker=marker)

    def _listed(self, attempt_id: str) -> list[str]:
        try:
            return os.listdir(self._layout.attempt_dir(attempt_id))
        except FileNotFoundError:
            return []

    def remove(self, attempt_id: str) -> None:
        """Removes the logs, too."""
        for path in (self._layout.marker(attempt_id), self._layout.ended(attempt_id)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._trash.discard(self._layout.attempt_dir(attempt_id))

    # -------------------------------------------------------------------------------------------- states

    def refresh(self, tracked: Tracked) -> None:
        """Read the states of the instances. If a supervisor died without recording an end, clean up after it."""
        for instance in tracked.instances:
            if instance.exit is None:
                tracked.instances[instance.rank] = self._refreshed(tracked.attempt_id, instance)

    def _refreshed(self, attempt_id: str, instance: InstanceState) -> InstanceState:
        directory = self._layout.rank_dir(attempt_id, instance.rank)
        state = claim_state(directory)
        if state is ClaimState.NONE:
            return instance
        claimed_at, started_at = instance.claimed_at, instance.started_at
        prepares, progress = instance.prepares, instance.progress
        if claimed_at is None:
            claimed_at = os.stat(f"{directory}/{CLAIM}").st_mtime
        # Read after the lock was tested: a supervisor records the exit before it releases its claim.
        claim = read_claim(directory)
        if started_at is None:
            started_at = _time_of(claim.started)
            # A supervisor of an earlier version, which outlives its server, writes `has_image` only.
            prepares = bool(claim.supervisor.get("prepares") or claim.supervisor.get("has_image"))
            progress = _progress(directory) if prepares and started_at is None else ""
        ended = _exit_of(claim, directory, also_old=state is ClaimState.FREE)
        if ended is None and state is ClaimState.FREE:
            ended = self._record_death(attempt_id, instance.rank, directory)
            self._clear_up(attempt_id, instance.rank, directory)
        return replace(
            instance, claimed_at=claimed_at, started_at=started_at, prepares=prepares, progress=progress, exit=ended
        )

    def _record_death(self, attempt_id: str, rank: int, directory: str) -> InstanceExit:
        """The supervisor is dead: kill the processes that it left behind, and record the end."""
        ended_at = time.time()
        claim = read_claim(directory)
        lost = read_json(os.path.join(self._layout.attempt_dir(attempt_id), LOST))
        if lost is not None:
            self._kill_orphans(attempt_id, rank, directory, claim.started)
            return self._record_lost(directory, rank, lost)
        if claim.supervisor.get("boot_id") != self._boot_id:
            message = "the machine was restarted while it ran"
        else:
            message = "its supervisor was killed, and its processes with it"
            self._kill_orphans(attempt_id, rank, directory, claim.started)
        return self._record(directory, EndReason.LOST, message, ended_at)

    def _kill_orphans(self, attempt_id: str, rank: int, directory: str, started: dict[str, Any]) -> None:
        leader = started.get("pid", 0)
        if leader and start_ticks(leader) == started.get("start_ticks"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        cgroup = self.group(attempt_id, rank)
        cgroup.forbid_forks()
        deadline = time.monotonic() + _CLEAN_UP_SECONDS
        while orphans := processes_by_env(RUN_DIR_VARIABLE).get(directory, set()) | cgroup.processes():
            if not send(orphans, signal.SIGKILL) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        cgroup.remove(_CLEAN_UP_SECONDS)

    def _clear_up(self, attempt_id: str, rank: int, directory: str) -> None:
        """Remove the files that the supervisor would have removed."""
        for name in (TMP, AUTH, PRIVATE):
            remove_tree(os.path.join(directory, name))
        self._remove_scratch(attempt_id, rank)
        if os.path.exists(os.path.join(directory, ENVIRONMENT)):
            self._remove_container(attempt_id, rank)

    def _record_lost(self, directory: str, rank: int, lost: dict[str, Any]) -> InstanceExit:
        """Record the end of an instance on a node that went down, or of an instance of the same gang."""
        if rank in lost["ranks"]:
            # The earliest end of the gang is the one that is reported. This must be it, however late it is recorded.
            return self._record(directory, EndReason.NODE_LOST, f"node {lost['node']} went down", lost["at"])
        message = f"the rest of the gang was on node {lost['node']}, which went down"
        return self._record(directory, EndReason.NODE_LOST, message, max(time.time(), lost["at"] + 0.001))

    def _record(self, directory: str, reason: EndReason, message: str, ended_at: float) -> InstanceExit:
        body = {"reason": reason.value, "message": message, "exit_code": None, "signal": None, "ended_at": ended_at}
        record_end(directory, body)
        return parse_exit(body)

    # -------------------------------------------------------------------------------------------- lost nodes

    def lose(self, tracked: Tracked, down: Collection[str]) -> None:
        """A node of the attempt went down: kill all its instances at once, without a warning."""
        ranks = [instance.rank for instance in tracked.instances if instance.node in down]
        lost = {"node": tracked.instances[ranks[0]].node, "ranks": ranks, "at": time.time()}
        # The file first: the clean-up, now or after a crash, reads from it why the instances died.
        write_json(os.path.join(self._layout.attempt_dir(tracked.attempt_id), LOST), lost)
        for instance in tracked.instances:
            if instance.exit is None and instance.claimed_at is None:
                self._withdraw_lost(tracked, instance, lost)
        dying = []
        for instance in tracked.instances:
            if instance.exit is None:
                directory = self._layout.rank_dir(tracked.attempt_id, instance.rank)
                descriptor = _signal_supervisor(directory, signal.SIGKILL)
                if descriptor is not None:
                    dying.append(descriptor)
        _await_deaths(dying)
        self.refresh(tracked)

    def _withdraw_lost(self, tracked: Tracked, instance: InstanceState, lost: dict[str, Any]) -> None:
        """End an instance that no supervisor has claimed yet."""
        directory = self._layout.rank_dir(tracked.attempt_id, instance.rank)
        claim = take_claim(directory, {"pid": 0, "boot_id": self._boot_id}) if os.path.isdir(directory) else None
        if claim is None:
            return
        try:
            end = self._record_lost(directory, instance.rank, lost)
        finally:
            os.close(claim)
        tracked.instances[instance.rank] = replace(instance, claimed_at=lost["at"], exit=end)

    # -------------------------------------------------------------------------------------------- stopping

    def stop(self, tracked: Tracked, grace_seconds: float, term: int = 0) -> None:
        """Make every supervisor end its instance; an instance without a supervisor never gets one.

        Supervisors ignore the stop if a later term has begun.
        """
        # The file first: a supervisor that claims its instance after the check below finds the file.
        try:
            write_stop(self._layout.attempt_dir(tracked.attempt_id), {"grace_seconds": grace_seconds, "term": term})
        except OSError as error:
            log.warning("the stop of %s cannot be written: %s", tracked.attempt_id, error)
        self.withdraw(tracked, EndReason.EXIT_CODE, "stopped before it started")
        tracked.stop_sent = True
        for instance in tracked.instances:
            if instance.exit is None:
                descriptor = _signal_supervisor(
                    self._layout.rank_dir(tracked.attempt_id, instance.rank), signal.SIGTERM
                )
                if descriptor is not None:
                    os.close(descriptor)

    def withdraw(self, tracked: Tracked, reason: EndReason, message: str) -> None:
        """End the instances that no supervisor has claimed, by claiming them."""
        for instance in tracked.instances:
            directory = self._layout.rank_dir(tracked.attempt_id, instance.rank)
            if instance.claimed_at is not None or not os.path.isdir(directory):
                continue
            claim = take_claim(directory, {"pid": 0, "boot_id": self._boot_id})
            if claim is None:
                continue
            try:
                at = time.time()
                end = self._record(directory, reason, message, at)
            finally:
                os.close(claim)
            tracked.instances[instance.rank] = replace(instance, claimed_at=at, exit=end)


def read_exit(directory: str, *, also_old: bool = True) -> InstanceExit | None:
    """How an instance ended, or None if it has not; `also_old` also reads the file that an earlier version wrote."""
    return _exit_of(read_claim(directory), directory, also_old=also_old)


def _exit_of(claim: Claim, directory: str, *, also_old: bool) -> InstanceExit | None:
    body = claim.end or (read_json(os.path.join(directory, EXIT)) if also_old else None)
    if not body:
        return None
    try:
        return parse_exit(body)
    except (KeyError, TypeError, ValueError) as error:
        # A damaged file, or one of another version: it concerns this instance only.
        message = f"the record of its end cannot be read: {error!r}"
        return InstanceExit(reason=EndReason.LOST, ended_at=os.stat(directory).st_mtime, message=message)


def _marker(body: Mapping[str, Any]) -> Marker | None:
    """The marker with this content; None if it is damaged."""
    try:
        nodes, port = tuple(map(str, body["nodes"])), body.get("master_port")
        return Marker(nodes=nodes, grace_seconds=float(body["grace_seconds"]), master_port=port)
    except (KeyError, TypeError, ValueError):
        return None


def _time_of(started: Mapping[str, Any]) -> float | None:
    """When the program began; None if it has not, or the record is damaged."""
    at = started.get("at")
    return float(at) if isinstance(at, int | float) else None


def _progress(directory: str) -> str:
    return str((read_json(os.path.join(directory, PROGRESS)) or {}).get("message", ""))


def _signal_supervisor(directory: str, number: signal.Signals) -> int | None:
    """Returns a descriptor of the process that received the signal, for the caller to close; None if it is gone."""
    pid = int(read_claim(directory).supervisor.get("pid", 0))
    if not pid:
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        # The descriptor pins the process and the claim is still locked, so the pid is that of the supervisor.
        if claim_state(directory) is ClaimState.HELD:
            signal.pidfd_send_signal(descriptor, number)
            return descriptor
    except ProcessLookupError:
        pass
    os.close(descriptor)
    return None


def _await_deaths(descriptors: Collection[int]) -> None:
    """Wait until these processes are gone, and close the descriptors. Bounded: a process that is stuck in the kernel is
    cleaned up later."""
    deadline = time.monotonic() + _CLEAN_UP_SECONDS
    for descriptor in descriptors:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(descriptor)


class LocalLogs:
    """Implements `corral.control.ports.AttemptLogs`. Needs no running engine: a server that stands by uses it alone."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def has(self, attempt_id: str) -> bool:
        return is_safe_id(attempt_id) and os.path.isdir(self._layout.attempt_dir(attempt_id))

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        if not self.has(attempt_id):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        whole, directory = self._layout.attempt_dir(attempt_id), self._layout.rank_dir(attempt_id, rank)
        # Checked before reading: nothing is written to the log after the end.
        is_over = read_exit(directory) is not None or is_folded(os.listdir(whole))
        places = LogPlaces(((directory, PREFIX), (whole, folded_prefix(rank))))
        data, next_offset = places.read(offset, max(1, limit))
        at_end = is_over and next_offset >= places.end()
        return LogChunk(data=data, next_offset=next_offset, at_end=at_end)
