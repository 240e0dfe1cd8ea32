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
from collections.abc import Callable, Mapping, Sequence
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
from corral.engines.fence import Fence
from corral.engines.forgetting import forget_each
from corral.engines.kubernetes.api.client import ApiClient, Json
from corral.engines.kubernetes.api.objects import annotations_of, joined
from corral.engines.kubernetes.api.pod_refs import ref_of
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
from corral.engines.kubernetes.cluster.drains import NodeDrains
from corral.engines.kubernetes.cluster.nodes import nodes_seen
from corral.engines.kubernetes.cluster.occupancy import devices_of, leaving_gpus, named_gpus, others_use, own_pods
from corral.engines.kubernetes.cluster.parts import api_server, kubelets
from corral.engines.kubernetes.cluster.watches import ClusterWatches
from corral.engines.kubernetes.devices.node_devices import DeviceGone
from corral.engines.kubernetes.earlier_attempts import EarlierAttempts
from corral.engines.kubernetes.pod_attempts import PodAttempts
from corral.engines.kubernetes.pod_launches import PodLaunches
from corral.engines.kubernetes.pod_sessions import PodSessions
from corral.engines.kubernetes.removals import Removals
from corral.engines.launch_locks import LaunchLocks
from corral.engines.order_checks import command_problem
from corral.engines.storage.storage_specs import StoragePlaces

log = logging.getLogger("corral.engines.kubernetes")


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
        root = Path(root).resolve()
        self._api = api
        self._rules = rules
        self._fence = Fence(root)
        self._records = Records(root)
        self._commands = PodCommands(api, rules.namespace, self._fence.check)
        self._drains = NodeDrains(api, self._fence.check)
        self._launch_locks = LaunchLocks()
        self._attempts = PodAttempts(self._records)
        self._removals = Removals(self._records, self._commands, self._attempts.all())
        self._on_nodes: Callable[[], None] = lambda: None
        self._closed = False
        self._watches = self._cluster_watches()
        self._pods, self._nodes = self._watches.pods, self._watches.nodes
        self._earlier = EarlierAttempts(
            records=self._records,
            attempts=self._attempts,
            removals=self._removals,
            watches=self._watches,
            refresh=self.refresh,
            look_at=lambda ids: self._watcher.look_at(ids),
            is_closed=lambda: self._closed,
        )
        self._watcher = Watcher(self, look_seconds=look_seconds, at_start=self._earlier.bring_up_to_date)
        self._launches = PodLaunches(
            records=self._records,
            commands=self._commands,
            rules=rules,
            accounts=accounts or JobAccounts(JobAccount(uid=rules.uid, gid=rules.gid)),
            storage=storage,
            nodes=self._nodes,
            devices=self._watches.devices,
            remove_pod=self._remove_pod,
        )
        self._sessions = PodSessions(api, self._pod_of, self._commands.api_path)
        self._devices = self._watches.devices
        self._streams = Streams(api, self._watches.all())
        self._logs = self._log_streams()
        self._tracker = PodTracker(
            records=self._records,
            commands=self._commands,
            rules=rules,
            logs=self._logs,
            pod=self._pods.get,
            nodes=self._nodes,
            why_no_gpus=self._devices.why_not,
        )
        self._fold_worker = FoldWorker(self._records, quiet_seconds=fold_after_seconds, fold_homes=fold_homes)
        self._start()

    def _cluster_watches(self) -> ClusterWatches:
        return ClusterWatches(
            root=self._records.root,
            installation=self._records.installation,
            rules=self._rules,
            more_namespaces=self._attempts.namespaces(self._rules.namespace),
            pod_changed=self._pod_changed,
            pod_removed=self._pod_removed,
            nodes_changed=self._nodes_changed,
        )

    def _log_streams(self) -> LogStreams:
        return LogStreams(
            streams=self._streams,
            records=self._records,
            limit_bytes=self._rules.log_limit_bytes,
            log_path=self._commands.log_path,
            on_up=self._begun,
            on_done=lambda attempt_id: self._watcher.look_at([attempt_id]),
            is_superseded=lambda: self._fence.is_superseded,
        )

    def _start(self) -> None:
        self._streams.start()
        self._watcher.start()
        self._watcher.look_at(attempt.id for attempt in self._attempts.all())
        self._fold_worker.start()

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return self._fence.term_seen()

    def lead(self, leadership: Leadership) -> None:
        self._fence.lead(leadership.term)

    # -------------------------------------------------------------------------------------------- Engine

    def observe(self) -> Observation:
        self._check_open()
        # Several clusters are opened one after the other, and observed at the same time.
        self._earlier.are_up_to_date.wait()
        self._watches.wait_for_lists()
        if trouble := self._watches.trouble:
            raise EngineUnavailable(f"Kubernetes: {trouble}")
        self._earlier.adopt_pods()
        nodes = self._nodes.nodes().values()
        with self._attempts.lock:
            attempts = self._attempts.all()
            own = self._pods.own()
            others = others_use(self._pods.others(), own, attempts)
            devices = self._devices.seen(leaving_gpus(own, attempts))
            statuses = [attempt.status() for attempt in attempts]
        return Observation(
            nodes=nodes_seen(
                nodes, others, named_gpus(attempts), self._nodes.lost(), self._rules.fleet, own_pods(attempts), devices
            ),
            attempts=tuple(status for status in statuses if status is not None),
            withheld=self._drains.found(nodes),
        )

    def launch(self, order: LaunchOrder) -> None:
        check_order(order, self._rules)
        with self._launch_locks.of(order.attempt_id):
            self._check_open()
            attempt = self._attempts.get(order.attempt_id) or self._record(order)
            if attempt.is_created or attempt.is_over:
                return
            if problem := command_problem(order.command):
                self._conclude(attempt, EndReason.LAUNCH_ERROR, problem)
                return
            self._fold_worker.note_launch()
            try:
                self._create(order, attempt)
            except (NameTaken, DeviceGone) as taken:
                # The next attempt has another name, and other GPUs.
                self._conclude(attempt, EndReason.PREEMPTED, str(taken))
            except LaunchRefused as refusal:
                self._conclude(attempt, EndReason.LAUNCH_ERROR, str(refusal))
                raise

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._check_open()
        with self._attempts.lock:
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
        with self._attempts.lock:
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
        with self._attempts.lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is not None:
                if not attempt.is_over:
                    return  # a running attempt must stay known
                self._attempts.remove(attempt_id)
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
        with self._attempts.lock:
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
        return self._watches.exporters.found()

    def held_devices(self) -> Mapping[str, str]:
        with self._attempts.lock:
            held = devices_of(self._attempts.all())
        # A driver names its devices, whether or not a job has one.
        return held | self._devices.devices()

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
        return self._attempts.get(attempt_id)

    def waiting(self) -> list[str]:
        return self._attempts.with_time_limit(self._nodes.silent())

    def refresh(self, attempt: Attempt) -> bool:
        if self._fence.is_superseded:
            return True
        if self._watches.trouble:
            return attempt.is_over
        self._tracker.refresh(attempt, clock())
        return True

    def clean(self) -> None:
        if not self._fence.is_superseded:
            self._removals.work(self._pods.get)

    # -------------------------------------------------------------------------------------------- from the watches

    def _pod_changed(self, pod: Json) -> None:
        attempt_id = annotations_of(pod).get(ATTEMPT_LABEL, "")
        with self._attempts.lock:
            attempt = self._attempts.get(attempt_id)
            # The pod of an attempt that was taken back may appear after that.
            is_unknown = attempt is None and not self._earlier.may_adopt
            if is_unknown or (attempt is not None and attempt.verdict is not None):
                self._removals.add(ref_of(pod, self._rules.namespace))
        self._watcher.look_at([attempt_id])

    def _pod_removed(self, name: str) -> None:
        self._removals.drop(name)
        self._watcher.look_at(self._attempts.with_pod(name))

    def _nodes_changed(self) -> None:
        self._on_nodes()
        there = self._nodes.nodes().keys() - self._nodes.silent()
        self._watcher.look_at(self._attempts.outside_of(there))

    def _begun(self, attempt_id: str, rank: int, at: float, devices: str) -> None:
        with self._attempts.lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is None or self._fence.is_superseded or attempt.devices.get(rank):
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

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the Kubernetes engine is closed")
        self._fence.check()

    def _record(self, order: LaunchOrder) -> Attempt:
        with self._attempts.lock:
            attempt = self._launches.record(order)
            self._attempts.add(attempt)
        return attempt

    def _create(self, order: LaunchOrder, attempt: Attempt) -> None:
        """Create all pods. Raises NameTaken, DeviceGone, LaunchRefused and EngineUnavailable."""
        self._launches.create(order, attempt, self._fence.term)
        with self._attempts.lock:
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
        with self._attempts.lock:
            pod_attempt.conclude(self._records, attempt, reason, message)
            self._removals.add(*attempt.pods)
        self._watcher.look_at([attempt.id])
