"""The local engine: runs attempts as real processes of this machine.

An attempt has one instance per node of its allocation (virtual nodes are all this machine). To launch it, the engine
writes a marker file, makes one message per instance and sends the messages to the spawner, a small process that forks
one supervisor per instance. A supervisor claims its instance, runs the job's process, keeps its log, and records how it
ended, all in the run directory. It then writes the attempt's id to a pipe, on which the watcher, a thread of this
engine, listens: the watcher reads the files of that attempt and reports the change to the controller. Every few seconds
it reads the files of all attempts, in case a supervisor was killed before it could write.

Supervisors do not need the engine. The server can stop, crash and start again while jobs run: a new engine over the
same root finds in the files everything that the earlier one knew. Only launches that no supervisor has claimed are
lost; the controller finds them missing and launches them again.

Files: `rundir` (paths), `attempts` (states of attempts), `launches` (sending to the spawner), `watcher` (events),
`supervisors/` (the spawner and the supervisors), `instance_specs` (the messages), `fold` (fewer files for ended
attempts).
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from corral.control.ports import (
    AttemptStatus,
    AttemptTaken,
    EnginePart,
    EngineUnavailable,
    LaunchOrder,
    Leadership,
    LogChunk,
    Observation,
    ShellStream,
)
from corral.core.model import EndReason, Node, NodeState
from corral.engines.attempts.aggregation import aggregate, must_stop
from corral.engines.attempts.environment import MASTER_ADDR, base_environment
from corral.engines.attempts.fold_worker import QUIET_SECONDS, FoldHomes, FoldWorker, keep_homes
from corral.engines.attempts.instance_messages import encode
from corral.engines.attempts.isolation import Isolation
from corral.engines.attempts.job_places import remove_tree
from corral.engines.attempts.log_segments import DEFAULT_LIMIT_BYTES
from corral.engines.attempts.rendezvous import meeting_port
from corral.engines.fence import Fence
from corral.engines.forgetting import forget_each
from corral.engines.local.attempts import AttemptFiles, LocalLogs, Marker, Tracked
from corral.engines.local.cgroups import CgroupSupport, cgroup_support, sweep
from corral.engines.local.containers.container_orders import ContainerRuntime, container_name
from corral.engines.local.containers.container_runtime import (
    find_runtime,
    in_background,
    layer_of,
    remove_container,
    remove_leftovers,
)
from corral.engines.local.fleet import HostFleet, VirtualFleet
from corral.engines.local.fold import LocalFolds
from corral.engines.local.instance_specs import SpecWriter
from corral.engines.local.launches import SPAWNER, Launches
from corral.engines.local.rundir import TMP, WORK, Layout, is_safe_id
from corral.engines.local.shells.local_shells import LocalShells
from corral.engines.local.supervisors.spawner_link import log_tail
from corral.engines.local.watcher import Watcher
from corral.engines.storage.scratch import sweep_scratch
from corral.engines.storage.storage_specs import StoragePlaces


class LocalEngine:
    """See `corral.control.ports.Engine`. Safe for use by several threads."""

    def __init__(
        self,
        *,
        root: Path,
        fleet: HostFleet | VirtualFleet,
        log_limit_bytes: int = DEFAULT_LIMIT_BYTES,
        rescan_seconds: float = 2.0,
        server_env: Mapping[str, str] | None = None,
        cgroups: CgroupSupport | None = None,
        isolation: Isolation | None = None,
        runtime: ContainerRuntime | None = None,
        storage: StoragePlaces | None = None,
        fold_after_seconds: float = QUIET_SECONDS,
        fold_homes: FoldHomes = keep_homes,
    ) -> None:
        """Without `runtime` the engine searches for Podman or Docker itself; without `storage` all storage is below
        the root."""
        self._layout = Layout(str(Path(root).resolve()))
        self._layout.prepare()
        self._logs = LocalLogs(self._layout)
        self.fleet = fleet
        environ = os.environ if server_env is None else server_env
        self._cgroups = cgroup_support() if cgroups is None else cgroups
        # Several engines may share a machine, and their attempts may have the same ids.
        name = hashlib.sha256(self._layout.root.encode()).hexdigest()[:8]
        self._places = storage or StoragePlaces.below(os.path.join(self._layout.root, "storage"))
        self._files = AttemptFiles(
            self._layout, self._cgroups, f"{name}-", self._remove_container, self._remove_scratch
        )
        self._specs = SpecWriter(
            layout=self._layout,
            engine=name,
            boot_id=self._files.boot_id,
            base_env=base_environment(environ, python_dir=os.path.dirname(sys.executable)),
            cgroups=self._cgroups,
            log_limit_bytes=log_limit_bytes,
            isolation=isolation or Isolation(),
            runtime=runtime or find_runtime(self._cgroups, environ),
            places=self._places,
            environ=environ,
        )
        self._shells = LocalShells(self._layout, self._files, name, lambda: self._specs.runtime, environ)
        self._folds = LocalFolds(self._layout)
        self._fold_worker = FoldWorker(self._folds, quiet_seconds=fold_after_seconds, fold_homes=fold_homes)
        self._lock = threading.RLock()
        self._tracked: dict[str, Tracked] = {}
        #: by attempt and rank: see `_layer`
        self._layers: dict[str, dict[int, str]] = {}
        self._closed = False
        self._fence = Fence(self._layout.root)
        with self._lock:
            # The watcher exists before the first launch.
            self._launches = Launches(
                self._layout.spawner_log, give_up=self._give_up, wake=lambda: self._watcher.wake()
            )
            self._scan()
            self._sweep_cgroups()
        # `observe` reports the attempts that run or are over by now.
        self._watcher = Watcher(self, self._layout.events_path, rescan_seconds)
        self._watcher.prime(self._tracked.values())
        self._watcher.start()
        self._fold_worker.start()
        self._remove_leftovers()
        in_background(lambda: sweep_scratch(self._places, name, self._is_live))

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return self._fence.term_seen()

    def lead(self, leadership: Leadership) -> None:
        with self._lock:
            self._fence.lead(leadership.term)
            self._specs = replace(self._specs, leadership=leadership)

    # -------------------------------------------------------------------------------------------- Engine

    def observe(self) -> Observation:
        nodes = self.fleet.nodes()
        with self._lock:
            self._check_open()
            self._scan()
            self._end_on_lost_nodes(nodes)
            statuses = [aggregate(tracked.attempt_id, tracked.instances) for tracked in self._tracked.values()]
        return Observation(nodes=nodes, attempts=tuple(status for status in statuses if status is not None))

    def launch(self, order: LaunchOrder) -> None:
        account = self._specs.check(order)
        # Without the lock: other calls must not wait for a program of one account.
        pipe = self._specs.share_pipe(order, account)
        with self._lock:
            self._check_open()
            tracked = self._find(order.attempt_id)
            if tracked is None or len(tracked.instances) != len(order.instances):
                tracked = self._files.create(order.attempt_id, self._marker_for(order))
                if tracked is None:
                    raise AttemptTaken(order.attempt_id)
                self._tracked[order.attempt_id] = tracked
            elif order.attempt_id in self._launches:
                return
            else:
                self._files.refresh(tracked)
            payloads = {
                instance.rank: encode(self._specs.spec(order, instance, account, tracked.marker.master_port, pipe))
                for instance in order.instances
                if tracked.instances[instance.rank].claimed_at is None
            }
            if payloads:
                if order.image:
                    self._layout.note_containers()
                self._fold_worker.note_launch()
                self._launches.add(order.attempt_id, payloads)
                self._end_on_lost_nodes(self.fleet.nodes())

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        with self._lock:
            self._check_open()
            tracked = self._find(attempt_id)
            if tracked is None:
                return
            self._files.refresh(tracked)
            if tracked.is_over:
                return
            self._files.stop(tracked, max(0.0, grace_seconds), self._fence.term)
            self._launches.drop(attempt_id)
        self._watcher.look_at(attempt_id)

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        return self._logs.logs(attempt_id, rank, offset, limit)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        safe = filter(is_safe_id, attempt_ids)
        forget_each(safe, lambda attempt_id: self._forget(attempt_id, delete_logs=delete_logs))

    def _forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        with self._lock:
            tracked = self._find(attempt_id)
            if tracked is not None:
                self._files.refresh(tracked)
                self._files.withdraw(tracked, EndReason.LOST, "forgotten before it started")
                if not tracked.is_over:
                    return  # a running attempt must stay known
            self._tracked.pop(attempt_id, None)
            self._layers.pop(attempt_id, None)
            self._launches.drop(attempt_id)
        if delete_logs:
            self._files.remove(attempt_id)
        else:
            self._folds.forget(attempt_id)

    def has(self, attempt_id: str) -> bool:
        return self._logs.has(attempt_id)

    def directories(self, attempt_id: str) -> Sequence[str]:
        with self._lock:
            tracked = self._find(attempt_id)
            ranks = [] if tracked is None else [instance.rank for instance in tracked.instances]
        own = [os.path.join(self._layout.rank_dir(attempt_id, rank), WORK) for rank in ranks]
        return [*own, *(self._places.scratch_of(self._specs.engine, attempt_id, rank) for rank in ranks)]

    def temporary_directories(self, attempt_id: str) -> Sequence[str]:
        with self._lock:
            tracked = self._find(attempt_id)
            instances = [] if tracked is None else list(tracked.instances)
        own = [os.path.join(self._layout.rank_dir(attempt_id, instance.rank), TMP) for instance in instances]
        layers = [self._layer(attempt_id, instance.rank) for instance in instances if instance.prepares]
        return [*own, *filter(None, layers)]

    def _layer(self, attempt_id: str, rank: int) -> str:
        """The directory with what a container has changed in its image; "" for an instance without a container."""
        runtime = self._specs.runtime
        if runtime is None or not self._layout.had_containers():
            return ""
        layers = self._layers.setdefault(attempt_id, {})
        if rank not in layers:
            layers[rank] = layer_of(runtime, container_name(self._specs.engine, attempt_id, rank))
        return layers[rank]

    def kept_directory(self, attempt_id: str) -> str:
        return self._layout.attempt_dir(attempt_id)

    def withhold(self, node: str, reason: str) -> None:
        """Does nothing: only corral starts processes on these nodes."""

    def release(self, node: str, *, force: bool) -> None:
        """See `withhold`."""

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._watcher.subscribe(sink)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._watcher.stop()
        self._fold_worker.stop()
        with self._lock:
            self._launches.close()

    def describe(self) -> Mapping[str, str]:
        """Describes for `about` and `doctor` which limits are enforced, and where the files are."""
        runtime = self._specs.runtime
        return {
            "kind": "local",
            "root": self._layout.root,
            "cgroups": self._cgroups.detail,
            "containers": runtime.detail if runtime is not None else "neither Podman nor Docker is installed",
        }

    # -------------------------------------------------------------------------------------------- HasParts

    def parts(self) -> Sequence[EnginePart]:
        return (self._launches.spawner(),)

    def part_log(self, name: str, limit_bytes: int) -> str:
        return log_tail(self._layout.spawner_log, limit_bytes) if name == SPAWNER else ""

    # -------------------------------------------------------------------------------------------- HasShells

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ShellStream:
        return await self._shells.open_shell(attempt_id, rank, command, has_terminal=has_terminal, has_input=has_input)

    # -------------------------------------------------------------------------------------------- for the watcher

    def look(self, attempt_id: str) -> Tracked | None:
        """Updates one attempt, and stops the rest of a gang in which one instance ended badly."""
        with self._lock:
            tracked = self._find(attempt_id)
            if tracked is not None and not self._fence.is_superseded:
                self._look(tracked)
            return tracked

    def poll_all(self) -> list[Tracked]:
        """The safety net: refresh every attempt that is not over, handle nodes that went down, and send the launches
        again that no supervisor has claimed."""
        nodes = self.fleet.nodes()
        with self._lock:
            if not self._fence.is_superseded:
                for tracked in self._tracked.values():
                    self._look(tracked)
                self._end_on_lost_nodes(nodes)
                self._launches.send_overdue()
            return list(self._tracked.values())

    def spawner_fileno(self) -> tuple[int, bool]:
        """See `Launches`."""
        with self._lock:
            return self._launches.spawner_fileno()

    def serve_spawner(self) -> None:
        """See `Launches`."""
        with self._lock:
            if not self._closed:
                self._launches.serve_spawner()

    # -------------------------------------------------------------------------------------------- inside the lock

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the local engine is closed")
        self._fence.check()

    def _marker_for(self, order: LaunchOrder) -> Marker:
        taken = {tracked.marker.master_port or 0 for tracked in self._tracked.values()}
        meets = order.is_distributed or len(order.instances) > 1
        return Marker(
            nodes=tuple(instance.node for instance in order.instances),
            grace_seconds=order.grace_seconds,
            master_port=meeting_port(MASTER_ADDR, taken) if meets else None,
        )

    def _find(self, attempt_id: str) -> Tracked | None:
        tracked = self._tracked.get(attempt_id)
        if tracked is None:
            tracked = self._files.load(attempt_id)
            if tracked is not None:
                self._tracked[attempt_id] = tracked
        return tracked

    def _scan(self) -> None:
        listed = self._layout.live_attempts()
        for attempt_id in self._tracked.keys() - set(listed):
            del self._tracked[attempt_id]
        for attempt_id in listed:
            tracked = self._find(attempt_id)
            if tracked is not None:
                self._look(tracked)

    def _look(self, tracked: Tracked) -> None:
        if tracked.is_over:
            return
        self._files.refresh(tracked)
        if tracked.is_claimed:
            self._launches.drop(tracked.attempt_id)
        if not tracked.stop_sent and must_stop(tracked.instances):
            self._files.stop(tracked, tracked.marker.grace_seconds, self._fence.term)

    def _end_on_lost_nodes(self, nodes: Iterable[Node]) -> None:
        """End the attempts on virtual nodes that a drill took down, as on a real node that goes down."""
        down = {node.id for node in nodes if node.state is NodeState.DOWN}
        if not down:
            return
        for tracked in self._tracked.values():
            if not tracked.is_over and not down.isdisjoint(tracked.marker.nodes):
                self._launches.drop(tracked.attempt_id)
                self._files.lose(tracked, down)
                self._watcher.look_at(tracked.attempt_id)

    def _sweep_cgroups(self) -> None:
        keep = {
            self._files.cgroup_name(tracked.attempt_id, instance.rank)
            for tracked in self._tracked.values()
            for instance in tracked.instances
        }
        sweep(self._cgroups, f"{self._specs.engine}-", keep)

    def _remove_container(self, attempt_id: str, rank: int) -> None:
        """Remove the container of a dead supervisor, in the background: its processes have ended already."""
        runtime = self._specs.runtime
        if runtime is None:
            return

        def remove() -> None:
            remove_container(runtime, container_name(self._specs.engine, attempt_id, rank))
            self._files.group(attempt_id, rank).remove()

        in_background(remove)

    def _remove_leftovers(self) -> None:
        """Remove containers of attempts that are over and whose supervisor had no time to remove them."""
        runtime = self._specs.runtime
        if runtime is not None and self._layout.had_containers():
            in_background(lambda: self._without(remove_leftovers(runtime, self._specs.engine, self._is_live)))

    def _remove_scratch(self, attempt_id: str, rank: int) -> None:
        """Remove the scratch directory of a dead supervisor, in the background: it may hold many files."""
        scratch = self._places.scratch_of(self._specs.engine, attempt_id, rank)
        if os.path.isdir(scratch):
            in_background(lambda: remove_tree(scratch))

    def _without(self, removed: Sequence[str]) -> None:
        """Remove the control groups of removed containers."""
        with self._lock:
            if removed and not self._closed:
                self._sweep_cgroups()

    def _is_live(self, attempt_id: str) -> bool:
        with self._lock:
            tracked = self._find(attempt_id)
            return tracked is not None and not tracked.is_over

    def _give_up(self, attempt_id: str) -> None:
        self._files.withdraw(self._tracked[attempt_id], EndReason.LOST, "the spawner did not start it")
        self._watcher.look_at(attempt_id)
