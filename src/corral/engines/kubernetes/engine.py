"""The Kubernetes engine: runs each instance of an attempt as one pod, on the node that the plan names.

To launch an attempt, the engine records the order, and creates a pod for each instance with a name made from the
attempt's id, pinned to its node by affinity and placed by the cluster's own scheduler. In the pod corral's wrapper
(`attempts/wrapper.sh`) starts the program, and writes how it ended into the termination message. Two watches, of nodes
and of pods, wake the watcher, which reports each change to the controller. Logs are followed through the API, and kept
here.

The state is in Kubernetes and in the engine's own records: a new engine over the same root knows everything that an
earlier one knew. A finalizer keeps each pod until its end is recorded.

Folders: `api/` (kubeconfig, requests, watches), `cluster/` (nodes, what other pods hold, drains), `attempts/` (pods,
records, logs and ends of attempts).
"""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from corral.control.ports import (
    AttemptStatus,
    EnginePart,
    EngineUnavailable,
    LaunchOrder,
    LaunchRefused,
    Leadership,
    LogChunk,
    NodeExporter,
    Observation,
    ShellStream,
)
from corral.core.model import EndReason
from corral.engines.attempts.fold_worker import QUIET_SECONDS, FoldHomes, FoldWorker, keep_homes
from corral.engines.attempts.terms import TERM, read_term, write_term
from corral.engines.forgetting import forget_each
from corral.engines.kubernetes import pod_adoption
from corral.engines.kubernetes.api.client import ApiClient, Json
from corral.engines.kubernetes.api.objects import annotations_of, joined, name_of
from corral.engines.kubernetes.api.streams import Streams
from corral.engines.kubernetes.attempts import pod_attempt
from corral.engines.kubernetes.attempts.job_accounts import JobAccount, JobAccounts
from corral.engines.kubernetes.attempts.log_streams import LogStreams
from corral.engines.kubernetes.attempts.pod_attempt import Attempt, clock
from corral.engines.kubernetes.attempts.pod_commands import NameTaken, PodCommands
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pods import ATTEMPT_LABEL, check_order, is_safe_id
from corral.engines.kubernetes.attempts.records import Records
from corral.engines.kubernetes.attempts.tracking import PodTracker, is_of
from corral.engines.kubernetes.attempts.watcher import Watcher
from corral.engines.kubernetes.cluster.cache import NodeCache, PodCache
from corral.engines.kubernetes.cluster.capacities import Capacities
from corral.engines.kubernetes.cluster.drains import NodeDrains
from corral.engines.kubernetes.cluster.exporters import ExporterPods
from corral.engines.kubernetes.cluster.nodes import nodes_seen
from corral.engines.kubernetes.cluster.occupancy import devices_of, named_gpus, others_use, own_pods
from corral.engines.kubernetes.cluster.parts import api_server, kubelets
from corral.engines.kubernetes.cluster.watches import ClusterWatches
from corral.engines.kubernetes.pod_launches import PodLaunches
from corral.engines.kubernetes.pod_sessions import PodSessions
from corral.engines.kubernetes.removals import Removals
from corral.engines.storage.storage_specs import StoragePlaces

log = logging.getLogger("corral.engines.kubernetes")

#: How long the logs of attempts that ended while no server lived are waited for at the start.
ADOPT_SECONDS = 20.0


class KubernetesEngine:
    """See `corral.control.ports.Engine`. Safe for use by several threads."""

    #: creating pods mostly waits for the API server
    launches_at_once = 8

    def __init__(
        self,
        *,
        root: Path,
        api: ApiClient,
        rules: PodRules,
        accounts: JobAccounts | None = None,
        storage: StoragePlaces | None = None,
        look_seconds: float = 1.0,
        fold_after_seconds: float = QUIET_SECONDS,
        fold_homes: FoldHomes = keep_homes,
    ) -> None:
        self._api = api
        self._rules = rules
        self._records = Records(Path(root).resolve())
        self._commands = PodCommands(api, rules.namespace, self._check_leads)
        self._drains = NodeDrains(api, self._check_leads)
        self._lock = threading.RLock()
        #: chosen by the attempt's id: two threads never launch the same attempt at the same time
        self._launch_locks = tuple(threading.Lock() for _ in range(64))
        self._attempts: dict[str, Attempt] = {}
        self._on_nodes: Callable[[], None] = lambda: None
        self._closed = False
        self._term_path, self._term = str(self._records.root / TERM), 0
        self._load()
        self._adopts = self._records.may_adopt
        #: attempts of an earlier server
        self._earlier = list(self._attempts.values())
        self._removals = Removals(self._records, self._commands, self._attempts.values())
        self._is_adopted = threading.Event()
        self._watcher = Watcher(self, look_seconds=look_seconds, at_start=self._adopt)
        self._exporters = ExporterPods(rules.exporter_namespace)
        self._pods = PodCache(
            self._records.installation, rules.namespace, self._pod_changed, self._pod_removed, self._exporters
        )
        self._nodes = NodeCache(
            self._nodes_changed,
            rules.lost_seconds,
            Capacities(self._records.root / "capacities", rules.fleet.is_gpu),
        )
        self._launches = PodLaunches(
            records=self._records,
            commands=self._commands,
            rules=rules,
            accounts=accounts or JobAccounts(JobAccount(uid=rules.uid, gid=rules.gid)),
            storage=storage,
            nodes=self._nodes,
            remove_pod=self._remove_pod,
        )
        self._sessions = PodSessions(api, self._pod_of, self._commands.api_path)
        self._watches = ClusterWatches(self._nodes, self._pods, rules.namespace)
        self._streams = Streams(api, (self._watches.watch_nodes, self._watches.watch_pods))
        self._logs = LogStreams(
            streams=self._streams,
            records=self._records,
            limit_bytes=rules.log_limit_bytes,
            log_path=self._commands.log_path,
            on_up=self._begun,
            on_done=lambda attempt_id: self._watcher.look_at([attempt_id]),
            is_superseded=lambda: self._is_superseded,
        )
        self._tracker = PodTracker(
            records=self._records,
            commands=self._commands,
            rules=rules,
            logs=self._logs,
            pod=self._pods.get,
            nodes=self._nodes,
        )
        self._streams.start()
        self._watcher.start()
        self._watcher.look_at(self._attempts)
        self._fold_worker = FoldWorker(self._records, quiet_seconds=fold_after_seconds, fold_homes=fold_homes)
        self._fold_worker.start()

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return read_term(self._term_path)

    def lead(self, leadership: Leadership) -> None:
        write_term(self._term_path, leadership.term)
        self._term = leadership.term

    # -------------------------------------------------------------------------------------------- Engine

    def observe(self) -> Observation:
        self._check_open()
        # Several clusters are opened one after the other, and observed at the same time.
        self._is_adopted.wait()
        self._watches.wait_for_lists()
        if trouble := self._watches.trouble:
            raise EngineUnavailable(f"Kubernetes: {trouble}")
        self._adopt_pods()
        nodes = self._nodes.nodes().values()
        with self._lock:
            attempts = list(self._attempts.values())
            others = others_use(self._pods.others(), self._pods.own(), attempts)
            statuses = [attempt.status() for attempt in attempts]
        return Observation(
            nodes=nodes_seen(
                nodes, others, named_gpus(attempts), self._nodes.lost(), self._rules.fleet, own_pods(attempts)
            ),
            attempts=tuple(status for status in statuses if status is not None),
            withheld=self._drains.found(nodes),
        )

    def launch(self, order: LaunchOrder) -> None:
        check_order(order, self._rules)
        with self._launch_locks[zlib.crc32(order.attempt_id.encode()) % len(self._launch_locks)]:
            self._check_open()
            with self._lock:
                attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                attempt = self._record(order)
            if attempt.is_created or attempt.is_over:
                return
            if (bad := next((word for word in order.command if "\0" in word), None)) is not None:
                self._conclude(attempt, EndReason.LAUNCH_ERROR, f"{bad!r}: execve: embedded null byte")
                return
            self._fold_worker.note_launch()
            try:
                self._create(order, attempt)
            except NameTaken as taken:
                # The next attempt has another name.
                self._conclude(attempt, EndReason.PREEMPTED, str(taken))
            except LaunchRefused as refusal:
                self._conclude(attempt, EndReason.LAUNCH_ERROR, str(refusal))
                raise

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._check_open()
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is None or attempt.is_over:
                return
            if not attempt.is_created:
                # A thread that is just creating its pods removes them.
                self._conclude(attempt, EndReason.EXIT_CODE, "stopped before it began")
                return
        self._tracker.stop(attempt, grace_seconds)
        self._watcher.look_at([attempt_id])

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        if not is_safe_id(attempt_id):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        places = self._records.log(attempt_id, rank)
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            # Checked before reading: nothing is written to the log after the end.
            is_over = attempt is None or attempt.is_over or rank in attempt.exits
        data, next_offset = places.read(offset, max(1, limit))
        return LogChunk(data=data, next_offset=next_offset, at_end=is_over and next_offset >= places.end())

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        safe = filter(is_safe_id, attempt_ids)
        try:
            forget_each(safe, lambda attempt_id: self._forget(attempt_id, delete_logs=delete_logs))
        finally:
            self._watcher.look_at()

    def _forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is not None:
                if not attempt.is_over:
                    return  # a running attempt must stay known
                del self._attempts[attempt_id]
                self._removals.add_attempt(attempt)
                self._logs.forget(attempt_id, len(attempt.nodes))
        self._records.forget(attempt_id, delete_logs=delete_logs)

    def withhold(self, node: str, reason: str) -> None:
        self._drains.withhold(node, reason)

    def release(self, node: str, *, force: bool) -> None:
        self._drains.release(node, self._nodes.get(node), force=force)

    def has(self, attempt_id: str) -> bool:
        return is_safe_id(attempt_id) and self._records.has(attempt_id)

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._watcher.subscribe(sink)

    def follow_nodes(self, changed: Callable[[], None]) -> None:
        self._on_nodes = changed

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._watcher.stop()
        self._streams.stop()
        self._fold_worker.stop()
        self._api.close()

    def describe(self) -> Mapping[str, str]:
        return {
            "kind": "kubernetes",
            "namespace": self._rules.namespace,
            "installation": self._records.installation,
        }

    # -------------------------------------------------------------------------------------------- HasParts

    def parts(self) -> Sequence[EnginePart]:
        note = joined((self._watches.note, self._drains.note, self._rules.note))
        return [api_server(self._watches.trouble, note), *kubelets(self._nodes.nodes().values())]

    def part_log(self, name: str, limit_bytes: int) -> str:
        """Daemons of Kubernetes write their logs on their own machines."""
        return ""

    # -------------------------------------------------------------------------------------------- HasExporters

    def exporters(self) -> Sequence[NodeExporter]:
        return self._exporters.found()

    def held_devices(self) -> Mapping[str, str]:
        with self._lock:
            return devices_of(self._attempts.values())

    # -------------------------------------------------------------------------------------------- HasShells

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ShellStream:
        return await self._sessions.open_shell(
            attempt_id, rank, command, has_terminal=has_terminal, has_input=has_input
        )

    # -------------------------------------------------------------------------------------------- AttemptsElsewhere

    def listen_address(self) -> str:
        return self._sessions.listen_address()

    def reach(self, attempt_id: str, port: int) -> tuple[str, int] | int:
        return self._sessions.reach(attempt_id, port)

    # -------------------------------------------------------------------------------------------- for the watcher

    def attempt(self, attempt_id: str) -> Attempt | None:
        with self._lock:
            return self._attempts.get(attempt_id)

    def waiting(self) -> list[str]:
        silent = self._nodes.silent()
        with self._lock:
            return [
                attempt.id
                for attempt in self._attempts.values()
                if not attempt.is_over
                and (
                    len(attempt.up) < len(attempt.nodes)
                    or attempt.end_seen_at
                    or attempt.was_stopped
                    or not silent.isdisjoint(attempt.nodes)
                )
            ]

    def refresh(self, attempt: Attempt) -> bool:
        if self._is_superseded:
            return True
        if self._watches.trouble:
            return attempt.is_over
        self._tracker.refresh(attempt, clock())
        return True

    def clean(self) -> None:
        if not self._is_superseded:
            self._removals.work(self._pods.get)

    # -------------------------------------------------------------------------------------------- from the watches

    def _pod_changed(self, pod: Json) -> None:
        attempt_id = annotations_of(pod).get(ATTEMPT_LABEL, "")
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            # The pod of an attempt that was taken back may appear after that.
            is_unknown = attempt is None and not self._adopts
            if is_unknown or (attempt is not None and attempt.verdict is not None):
                self._removals.add(name_of(pod))
        self._watcher.look_at([attempt_id])

    def _pod_removed(self, name: str) -> None:
        self._removals.drop(name)
        with self._lock:
            touched = [attempt.id for attempt in self._attempts.values() if name in attempt.pods]
        self._watcher.look_at(touched)

    def _nodes_changed(self) -> None:
        self._on_nodes()
        there = self._nodes.nodes().keys() - self._nodes.silent()
        with self._lock:
            touched = [one.id for one in self._attempts.values() if not one.is_over and not there >= set(one.nodes)]
        self._watcher.look_at(touched)

    def _begun(self, attempt_id: str, rank: int, at: float, devices: str) -> None:
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is None or self._is_superseded or attempt.devices.get(rank):
                return
            if rank not in attempt.up:
                # Clocks of nodes may be wrong.
                at = min(max(at, attempt.created_at), clock())
            elif devices:
                # Its log was not readable before.
                at = attempt.up[rank]
            else:
                return
            pod_attempt.note(self._records, attempt, {"up": [rank, at, devices]})
        self._watcher.look_at([attempt_id])

    # -------------------------------------------------------------------------------------------- inside

    @property
    def _is_superseded(self) -> bool:
        return 0 < self._term < self.term_seen()

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the Kubernetes engine is closed")
        self._check_leads()

    def _check_leads(self) -> None:
        if self._is_superseded:
            raise EngineUnavailable(
                f"another server has taken over {self._records.root} (it has term {self.term_seen()}, this server has "
                f"term {self._term}): this server no longer starts or stops jobs there"
            )

    def _load(self) -> None:
        for attempt_id in self._records.live():
            if (attempt := pod_attempt.load(self._records, attempt_id)) is None:
                # A crash has cut off the order, and no pod was created.
                self._records.forget(attempt_id, delete_logs=True)
            else:
                self._attempts[attempt_id] = attempt

    def _adopt(self) -> None:
        """Updates the attempts of an earlier server: `observe` reports what happened to them meanwhile."""
        try:
            self._bring_up_to_date()
        except Exception:
            log.exception("attempts of an earlier server are brought up to date later")
        finally:
            self._is_adopted.set()

    def _bring_up_to_date(self) -> None:
        if not self._earlier and not self._adopts:
            return
        self._watches.wait_for_lists()
        if not self._watches.trouble:
            self._earlier += self._adopt_pods()
        deadline = time.monotonic() + ADOPT_SECONDS
        pending: Iterable[Attempt] = list(self._earlier)
        while pending and time.monotonic() < deadline and not self._watches.trouble and not self._closed:
            for attempt in pending:
                try:
                    self.refresh(attempt)
                except EngineUnavailable as error:
                    log.warning("attempt %s: %s", attempt.id, error)
            # Only those whose logs are still read.
            pending = [one for one in pending if one.end_seen_at and not one.is_over]
            time.sleep(0.01 if pending else 0.0)
        # Not those that were launched meanwhile: their ends are to be reported.
        for attempt in self._earlier:
            if (status := attempt.status()) is not None:
                attempt.reported = status.phase

    def _adopt_pods(self) -> list[Attempt]:
        """Once, before the first observation: a restored server goes on with what still runs, and removes the rest.
        Returns what still runs."""
        adopted: list[Attempt] = []
        with self._lock:
            if not self._adopts:
                return adopted
            pods = list(self._pods.own().values())
            for attempt_id, document in pod_adoption.documents(pods, self._records.installation, clock()):
                if attempt_id not in self._attempts and not self._records.was_ordered(attempt_id):
                    attempt = pod_attempt.record(self._records, attempt_id, document)
                    pod_attempt.note(self._records, attempt, {"created": clock()}, sync=True)
                    self._attempts[attempt_id] = attempt
                    adopted.append(attempt)
                    log.warning("attempt %s runs in Kubernetes without a record: it is taken up again", attempt_id)
            for pod in pods:
                if annotations_of(pod).get(ATTEMPT_LABEL, "") not in self._attempts:
                    self._removals.add(name_of(pod))
            self._records.note_adopted()
            self._adopts = False
        self._watcher.look_at(attempt.id for attempt in adopted)
        return adopted

    def _record(self, order: LaunchOrder) -> Attempt:
        with self._lock:
            self._attempts[order.attempt_id] = attempt = self._launches.record(order)
        return attempt

    def _create(self, order: LaunchOrder, attempt: Attempt) -> None:
        """Create all pods. Raises NameTaken, LaunchRefused and EngineUnavailable."""
        self._launches.create(order, attempt, self._term)
        with self._lock:
            if attempt.is_over:
                # It was stopped meanwhile. The watch shows its pods, and they are removed when it is forgotten.
                self._removals.add(*attempt.pods)
            else:
                pod_attempt.note(self._records, attempt, {"created": clock()})
        self._watcher.look_at([attempt.id])

    def _remove_pod(self, name: str) -> None:
        self._removals.add(name)
        self._watcher.look_at()

    def _pod_of(self, attempt_id: str, rank: int) -> Json | None:
        """The pod of a live attempt's instance, as last seen by the watch."""
        attempt = self.attempt(attempt_id)
        if attempt is None or attempt.is_over or not 0 <= rank < len(attempt.pods):
            return None
        pod = self._pods.get(attempt.pods[rank])
        return pod if pod is not None and is_of(attempt, rank, pod) else None

    def _conclude(self, attempt: Attempt, reason: EndReason, message: str) -> None:
        with self._lock:
            pod_attempt.conclude(self._records, attempt, reason, message)
            self._removals.add(*attempt.pods)
        self._watcher.look_at([attempt.id])
