"""The local engine: attempts as real processes of this machine.

It hands instances to the spawner, reads what their supervisors leave on disk, and reports changes. All truth is on
disk: a new engine over the same root knows everything that an earlier one knew, except launches that no supervisor
has claimed, which control orders again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from corral.control.ports import (
    AttemptStatus,
    AttemptTaken,
    EngineUnavailable,
    LaunchOrder,
    Leadership,
    LogChunk,
    Observation,
)
from corral.core.model import EndReason, Node, NodeState
from corral.engines.attempts.aggregation import aggregate, must_stop
from corral.engines.attempts.environment import MASTER_ADDR, base_environment
from corral.engines.attempts.fold_worker import QUIET_SECONDS, FoldWorker
from corral.engines.attempts.instance_messages import encode
from corral.engines.attempts.isolation import Isolation
from corral.engines.attempts.job_places import remove_tree
from corral.engines.attempts.rendezvous import meeting_port
from corral.engines.attempts.terms import read_term, write_term
from corral.engines.local.attempts import AttemptFiles, Marker, Tracked, read_exit
from corral.engines.local.cgroups import CgroupSupport, cgroup_support, sweep
from corral.engines.local.containers.container_orders import ContainerRuntime, container_name
from corral.engines.local.containers.container_runtime import (
    find_runtime,
    in_background,
    remove_container,
    remove_leftovers,
)
from corral.engines.local.fleet import HostFleet, VirtualFleet
from corral.engines.local.fold import LocalFolds
from corral.engines.local.instance_specs import SpecWriter
from corral.engines.local.logs import DEFAULT_LIMIT_BYTES, PREFIX, LogPlaces
from corral.engines.local.rundir import TMP, WORK, Layout, folded_prefix, is_folded, is_safe_id
from corral.engines.local.supervisors.spawner_link import SpawnerLink
from corral.engines.local.watcher import Watcher
from corral.engines.storage.scratch import sweep_scratch
from corral.engines.storage.storage_specs import StoragePlaces

#: A launch that nobody has claimed after this long is sent again, this many times.
PATIENCE_SECONDS = 30.0
MAX_SENDS = 3
_RESTART_PAUSE_SECONDS = 0.2


@dataclass(kw_only=True, slots=True)
class _Pending:
    """A launch that was sent and not yet claimed."""

    payloads: Mapping[int, bytes] = field(default_factory=dict)
    sent_at: float
    sends: int = 1


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
    ) -> None:
        """Without `runtime` the engine looks for Podman or Docker itself; without `storage` all is below the root."""
        self._layout = Layout(str(Path(root).resolve()))
        self._layout.prepare()
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
        self._folds = LocalFolds(self._layout)
        self._fold_worker = FoldWorker(self._folds, quiet_seconds=fold_after_seconds)
        self._lock = threading.RLock()
        self._tracked: dict[str, Tracked] = {}
        self._pending: dict[str, _Pending] = {}
        self._link: SpawnerLink | None = None
        self._link_started_at = 0.0
        self._closed = False
        with self._lock:
            self._scan()
            self._sweep_cgroups()
            self._start_spawner()
        # What is over or up by now is for `observe` to tell.
        self._watcher = Watcher(self, self._layout.events_path, rescan_seconds)
        self._watcher.prime(self._tracked.values())
        self._watcher.start()
        self._fold_worker.start()
        self._remove_leftovers()
        in_background(lambda: sweep_scratch(self._places, name, self._is_live))

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return read_term(self._layout.term_path)

    def lead(self, leadership: Leadership) -> None:
        with self._lock:
            write_term(self._layout.term_path, leadership.term)
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
        self._specs.check(order)
        with self._lock:
            self._check_open()
            tracked = self._find(order.attempt_id)
            if tracked is None or len(tracked.instances) != len(order.instances):
                tracked = self._files.create(order.attempt_id, self._marker_for(order))
                if tracked is None:
                    raise AttemptTaken(
                        f"attempt {order.attempt_id} is over here already: its id was given a second time, as happens "
                        "when an older store is put back. The next attempt has another id."
                    )
                self._tracked[order.attempt_id] = tracked
            elif order.attempt_id in self._pending:
                return
            else:
                self._files.refresh(tracked)
            payloads = {
                instance.rank: encode(self._specs.spec(order, instance, tracked.marker.master_port))
                for instance in order.instances
                if tracked.instances[instance.rank].claimed_at is None
            }
            if payloads:
                if order.image:
                    self._layout.note_containers()
                self._fold_worker.note_launch()
                self._pending[order.attempt_id] = _Pending(payloads=payloads, sent_at=time.monotonic())
                self._send(b"".join(payloads.values()))
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
            self._files.stop(tracked, max(0.0, grace_seconds), self._term)
            self._pending.pop(attempt_id, None)
        self._watcher.look_at(attempt_id)

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        whole, directory = self._layout.attempt_dir(attempt_id), self._layout.rank_dir(attempt_id, rank)
        if not is_safe_id(attempt_id) or not os.path.isdir(whole):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        # Asked before reading: after the end nothing is written any more.
        is_over = read_exit(directory) is not None or is_folded(os.listdir(whole))
        places = LogPlaces(((directory, PREFIX), (whole, folded_prefix(rank))))
        data, next_offset = places.read(offset, max(1, limit))
        at_end = is_over and next_offset >= places.end()
        return LogChunk(data=data, next_offset=next_offset, at_end=at_end)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        for attempt_id in attempt_ids:
            if not is_safe_id(attempt_id):
                continue
            with self._lock:
                tracked = self._find(attempt_id)
                if tracked is not None:
                    self._files.refresh(tracked)
                    self._files.withdraw(tracked, EndReason.LOST, "forgotten before it started")
                    if not tracked.is_over:
                        continue  # a running attempt must stay known
                self._tracked.pop(attempt_id, None)
                self._pending.pop(attempt_id, None)
            if delete_logs:
                self._files.remove(attempt_id)
            else:
                self._folds.forget(attempt_id)

    def has(self, attempt_id: str) -> bool:
        return is_safe_id(attempt_id) and os.path.isdir(self._layout.attempt_dir(attempt_id))

    def fold_homes_with(self, fold_homes: Callable[[Sequence[str]], None]) -> None:
        self._fold_worker.fold_homes = fold_homes

    def directories(self, attempt_id: str) -> Sequence[str]:
        with self._lock:
            tracked = self._find(attempt_id)
            ranks = [] if tracked is None else [instance.rank for instance in tracked.instances]
        own = [os.path.join(self._layout.rank_dir(attempt_id, rank), name) for rank in ranks for name in (WORK, TMP)]
        return [*own, *(self._places.scratch_of(self._specs.engine, attempt_id, rank) for rank in ranks)]

    def kept_directory(self, attempt_id: str) -> str:
        return self._layout.attempt_dir(attempt_id)

    def withhold(self, node: str, reason: str) -> None:
        """Nobody but corral starts anything here."""

    def release(self, node: str, *, whoever_withheld: bool) -> None:
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
            if self._link is not None:
                self._link.close()

    def describe(self) -> Mapping[str, str]:
        """For `about` and `doctor`: what is enforced here, and where the files are."""
        runtime = self._specs.runtime
        return {
            "kind": "local",
            "root": self._layout.root,
            "cgroups": self._cgroups.detail,
            "containers": runtime.detail if runtime is not None else "neither Podman nor Docker is there",
        }

    # -------------------------------------------------------------------------------------------- for the watcher

    def look(self, attempt_id: str) -> Tracked | None:
        """Bring one attempt up to date, and stop the rest of a gang in which one instance ended badly."""
        with self._lock:
            tracked = self._find(attempt_id)
            if tracked is not None and not self._is_superseded:
                self._look(tracked)
            return tracked

    def look_at_all(self) -> list[Tracked]:
        """The safety net: everything not over, launches that nobody claimed included, and nodes that went down."""
        nodes = self.fleet.nodes()
        with self._lock:
            if not self._is_superseded:
                for tracked in self._tracked.values():
                    self._look(tracked)
                self._end_on_lost_nodes(nodes)
                self._send_overdue()
            return list(self._tracked.values())

    def spawner_fileno(self) -> tuple[int, bool]:
        """The descriptor to poll, and whether it should be polled for writing; -1 without a spawner."""
        with self._lock:
            return (-1, False) if self._link is None else (self._link.fileno(), self._link.has_unsent)

    def serve_spawner(self) -> None:
        """Its socket is ready: send on, or start another one if it died."""
        with self._lock:
            if self._link is None or self._closed:
                return
            try:
                dead = self._link.is_dead()
                self._link.flush()
            except OSError:
                dead = True
            if dead:
                self._replace_spawner()

    # -------------------------------------------------------------------------------------------- inside the lock

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the local engine is closed")
        if self._is_superseded:
            raise EngineUnavailable(
                f"another server has taken over {self._layout.root} (it has term {self.term_seen()}, and this one "
                f"{self._term}): this one starts and stops nothing any more"
            )

    @property
    def _term(self) -> int:
        return self._specs.leadership.term

    @property
    def _is_superseded(self) -> bool:
        """Another server gives the orders here. One that was never given a term, as in a test, obeys whoever asks."""
        return 0 < self._term < self.term_seen()

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
            self._pending.pop(tracked.attempt_id, None)
        if not tracked.stop_sent and must_stop(tracked.instances):
            self._files.stop(tracked, tracked.marker.grace_seconds, self._term)

    def _end_on_lost_nodes(self, nodes: Iterable[Node]) -> None:
        """A virtual node that a drill took down takes its attempts along, as a real one would."""
        down = {node.id for node in nodes if node.state is NodeState.DOWN}
        if not down:
            return
        for tracked in self._tracked.values():
            if not tracked.is_over and not down.isdisjoint(tracked.marker.nodes):
                self._pending.pop(tracked.attempt_id, None)
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
        """A dead supervisor left it. Nobody waits for it: its processes are ended already."""
        runtime = self._specs.runtime
        if runtime is None:
            return

        def remove() -> None:
            remove_container(runtime, container_name(self._specs.engine, attempt_id, rank))
            self._files.group(attempt_id, rank).remove()

        in_background(remove)

    def _remove_leftovers(self) -> None:
        """Containers of attempts that are over, where a supervisor had no time to remove them."""
        runtime = self._specs.runtime
        if runtime is not None and self._layout.had_containers():
            in_background(lambda: self._without(remove_leftovers(runtime, self._specs.engine, self._is_live)))

    def _remove_scratch(self, attempt_id: str, rank: int) -> None:
        """A dead supervisor left it. Nobody waits for it: it may be much."""
        scratch = self._places.scratch_of(self._specs.engine, attempt_id, rank)
        if os.path.isdir(scratch):
            in_background(lambda: remove_tree(scratch))

    def _without(self, removed: Sequence[str]) -> None:
        """Containers are gone, and so can be the groups that they were in."""
        with self._lock:
            if removed and not self._closed:
                self._sweep_cgroups()

    def _is_live(self, attempt_id: str) -> bool:
        with self._lock:
            tracked = self._find(attempt_id)
            return tracked is not None and not tracked.is_over

    def _send(self, payload: bytes) -> None:
        if self._link is None:
            self._replace_spawner()
            return
        try:
            self._link.send(payload)
        except OSError:
            self._replace_spawner()  # which sends everything pending, this too
            return
        if self._link.has_unsent:
            self._watcher.wake()

    def _start_spawner(self) -> SpawnerLink:
        self._link_started_at = time.monotonic()
        self._link = SpawnerLink(self._layout.spawner_log)
        return self._link

    def _replace_spawner(self) -> None:
        """Start another spawner and send it what the dead one may not have started. Claims prevent doubles."""
        if self._link is not None:
            self._link.close()
            self._link = None
        # Should it die at once again and again, this must not become a busy loop.
        time.sleep(max(0.0, self._link_started_at + _RESTART_PAUSE_SECONDS - time.monotonic()))
        self._send_again(self._start_spawner(), list(self._pending))
        self._watcher.wake()

    def _send_overdue(self) -> None:
        if self._link is None:
            if self._pending:
                self._replace_spawner()
            return
        overdue_since = time.monotonic() - PATIENCE_SECONDS
        self._send_again(self._link, [key for key, pending in self._pending.items() if pending.sent_at < overdue_since])

    def _send_again(self, link: SpawnerLink, attempt_ids: Iterable[str]) -> None:
        for attempt_id in attempt_ids:
            pending = self._pending[attempt_id]
            tracked = self._tracked[attempt_id]
            if pending.sends >= MAX_SENDS:
                del self._pending[attempt_id]
                self._files.withdraw(tracked, EndReason.LOST, "the spawner did not start it")
                self._watcher.look_at(attempt_id)
                continue
            pending.sends += 1
            pending.sent_at = time.monotonic()
            # Should it be dead again, its closed socket brings the watcher here once more.
            with contextlib.suppress(OSError):
                link.send(b"".join(pending.payloads.values()))
