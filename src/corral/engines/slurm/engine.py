"""The Slurm engine: runs each attempt as one Slurm job, on the nodes and with the number of GPUs that the plan names.

To launch an attempt, the engine writes a directory per instance on the file system that it shares with the nodes, and
submits a batch script (`attempts/attempt.sh`) with sbatch or slurmrestd. On the nodes that script runs the program of
the job and writes what happens (claimed, up, end) into the instance's directory. The watcher, a thread of this engine,
reads those files many times per second and queries Slurm every few seconds, and reports each change to the controller.
What the nodes wrote counts first; Slurm's own state counts where a node wrote nothing, for example because it died.

All state is in these files and in Slurm: a new engine over the same root knows everything that an earlier one knew. A
Slurm job belongs to an attempt by its id and its account. If the engine crashed before it stored the id, it finds the
job again by a secret in the job's name. If a job was submitted twice, only the first can claim the attempt and run it.
Slurm is queried for all attempts together: one squeue and one sinfo, whatever the number of attempts.

Folders: `attempts/` (files, submission and tracking of attempts), `cluster/` (nodes, partitions, drains, and GPUs that
other jobs hold), `slurm_api/` (the commands and the REST interface of Slurm).
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
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
    Observation,
)
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import must_stop
from corral.engines.attempts.fold_worker import QUIET_SECONDS, FoldHomes, FoldWorker, keep_homes
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.fence import Fence
from corral.engines.forgetting import forget_each
from corral.engines.slurm.attempts import run_directory, slurm_attempt
from corral.engines.slurm.attempts.installation import engine_id, installed_program
from corral.engines.slurm.attempts.job_orders import SlurmRules, check_order
from corral.engines.slurm.attempts.logs import read_log, trim_log
from corral.engines.slurm.attempts.node_reports import NodeReports
from corral.engines.slurm.attempts.preparation import Preparations, Prepared
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.storage import take_long, with_sources
from corral.engines.slurm.attempts.submissions import Submissions
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.attempts.tracking import JobTracker, asked
from corral.engines.slurm.attempts.watcher import Watcher
from corral.engines.slurm.cluster.daemons import Daemons
from corral.engines.slurm.cluster.drains import NodeDrains
from corral.engines.slurm.cluster.nodes import nodes_seen, others_use, vanished
from corral.engines.slurm.cluster.occupancy import Occupancy, named_gpus
from corral.engines.slurm.cluster.partitions import PartitionClosed, Partitions, closed_nodes
from corral.engines.slurm.cluster.reservation_nodes import ReservationNodes
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.devices import Devices
from corral.engines.slurm.slurm_api.slurm_records import JobOwner
from corral.engines.storage.storage_specs import StoragePlaces

log = logging.getLogger("corral.engines.slurm")


class SlurmEngine:
    """See `corral.control.ports.Engine`. Safe for use by several threads."""

    #: sbatch mostly waits for the controller and the disk
    launches_at_once = 8

    def __init__(
        self,
        *,
        root: Path,
        slurm: Slurm,
        rules: SlurmRules | None = None,
        account_of: Callable[[LaunchOrder], Submitter | None] = lambda order: None,
        storage: StoragePlaces | None = None,
        top: str = "",
        look_seconds: float = 0.02,
        rescan_seconds: float = 2.0,
        fold_after_seconds: float = QUIET_SECONDS,
        fold_homes: FoldHomes = keep_homes,
    ) -> None:
        """`account_of` returns the submitter of an attempt's Slurm job; None means the server's own account. Below
        `top`, the path to a job's directories may be opened for its account."""
        self._slurm = slurm
        self._rules = rules or SlurmRules()
        root = Path(root).resolve()
        self._layout = run_directory.Layout(str(root))
        self._layout.prepare()
        self._node_reports = NodeReports(self._layout.reports)
        self._drains = NodeDrains(root, slurm)
        self._mark = f"corral-{engine_id(root)}-"
        self._submissions = Submissions(
            slurm=slurm,
            layout=self._layout,
            rules=self._rules,
            account_of=account_of,
            storage=storage,
            top=top,
            program=str(installed_program(root)),
            mark=self._mark,
        )
        self._lock = threading.RLock()
        #: chosen by the attempt's id: two threads never launch the same attempt at the same time
        self._launch_locks = tuple(threading.Lock() for _ in range(64))
        self._attempts: dict[str, Attempt] = {}
        self._devices = Devices()
        self._partitions = Partitions(slurm.partitions, refused=SlurmRefused)
        self._occupancy = Occupancy()
        self._daemons = Daemons(slurm.daemon)
        self._reservation_nodes = ReservationNodes(slurm, self._rules.extra)
        self._tracker = JobTracker(slurm, self._layout, self._mark, self._submitted, self._lock)
        self._closed = False
        self._fence = Fence(root)
        for attempt_id in self._layout.live():
            if (attempt := slurm_attempt.load(self._layout, attempt_id)) is None:
                # An earlier server was preparing this attempt. The controller launches it again.
                try:
                    self._layout.forget(attempt_id, delete_logs=True)
                except OSError as error:
                    log.warning("the files of attempt %s cannot be removed: %s", attempt_id, error)
            else:
                self._attempts[attempt_id] = attempt
                if (status := attempt.status()) is not None:
                    # `observe` reports attempts that run or are over by now.
                    attempt.reported = status.phase
        self._preparations = Preparations(self._mark, self._layout, storage, os.environ, self._take_prepared)
        self._watcher = Watcher(self, look_seconds=look_seconds, rescan_seconds=rescan_seconds)
        self._watcher.start()
        self._fold_worker = FoldWorker(self._layout, quiet_seconds=fold_after_seconds, fold_homes=fold_homes)
        self._fold_worker.start()

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return self._fence.term_seen()

    def lead(self, leadership: Leadership) -> None:
        # If an older server submits an attempt after this, both jobs are for the same attempt: only one can claim it.
        self._fence.lead(leadership.term)

    # -------------------------------------------------------------------------------------------- Engine

    def observe(self) -> Observation:
        try:
            seen, live = asked(self._slurm.nodes), asked(self._slurm.live)
        except EngineUnavailable as error:
            with self._lock:
                self._daemons.failed(str(error))
            raise
        with self._lock:
            self._daemons.answered(seen)
        with self._lock:
            self._check_open()
            mine, stuck = self._occupancy.own_jobs(self._attempts, live, slurm_attempt.clock())
            overran = self._occupancy.overran(live, slurm_attempt.clock())
        jobs = asked(lambda: self._devices.complete(live, mine, self._slurm.jobs))
        reserved = self._reservation_nodes.nodes(seen, slurm_attempt.clock())
        closed = closed_nodes(asked(self._partitions.now), self._rules.partitions)
        if stuck:
            log.warning("Slurm jobs %s still run although their attempts are over: cancelling them", stuck)
            asked(lambda: self._slurm.cancel(*stuck))
        self._tracker.follow(self._attempts.values(), jobs, slurm_attempt.clock())
        # The watcher does this too, but it queries Slurm rarely after a slow answer.
        self._tracker.take_back(list(self._attempts.values()), slurm_attempt.clock(), self._rules.pending_seconds)
        with self._lock:
            named = named_gpus(self._attempts.values(), self._preparations.orders())
            lost = self._occupancy.lost_gpus(seen, jobs)
            seen += vanished(seen, self._submissions.known_nodes, named)
            self._submissions.known_nodes = {node.name: node for node in seen}
            statuses = [attempt.status() for attempt in self._attempts.values()]
            being_prepared = [one for one in self._preparations.statuses() if one.attempt_id not in self._attempts]
        self._watcher.check_soon()
        return Observation(
            nodes=nodes_seen(seen, others_use(jobs, mine, lost), named, self._rules.fleet, reserved, closed),
            attempts=(*(status for status in statuses if status is not None), *being_prepared),
            withheld=self._drains.found(seen),
            overran=overran,
        )

    def launch(self, order: LaunchOrder) -> None:
        check_order(order)
        # Without the engine's lock: writing files and sbatch take long, and other calls must not wait for them.
        with self._launch_locks[zlib.crc32(order.attempt_id.encode()) % len(self._launch_locks)]:
            with self._lock:
                self._check_open()
                attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                if self._preparations.has(order.attempt_id):
                    return
                specs = self._submissions.specs(order)
                if take_long(specs[0]):
                    self._submissions.check_new(order)
                    self._preparations.begin(order, specs[0])
                    return
                attempt = self._prepare(order, specs)
                if (bad := next((word for word in order.command if "\0" in word), None)) is not None:
                    attempt.give_up(
                        EndReason.LAUNCH_ERROR, f"{bad!r}: execve: embedded null byte", slurm_attempt.clock()
                    )
                    self._watcher.check_soon()
                    return
            elif attempt.was_submitted or attempt.is_over:
                return
            elif (job := self._tracker.job_of(attempt)) is not None:
                # An earlier server submitted it and crashed before it stored the job's id.
                with self._lock:
                    self._submitted(attempt, job.id)
                return
            self._fold_worker.note_launch()
            self._submit(order, attempt)

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        with self._lock:
            self._check_open()
            attempt = self._attempts.get(attempt_id)
            if attempt is None:
                if (order := self._preparations.drop(attempt_id)) is not None:
                    self._end_unlaunched(order, EndReason.EXIT_CODE, "stopped before it began")
                return
            attempt.read_reports(self._layout)
            if attempt.is_over:
                return
            attempt.was_stopped = True
            run_directory.write_text(self._layout.stop(attempt_id), f"{max(0.0, grace_seconds):.3f}\n", mode=0o644)
        if (job_id := self._job_id_of(attempt)) is None or not self._tracker.confirms(attempt):
            return
        # A pending job is cancelled at once. A job that runs gets SIGTERM, and the nodes enforce its grace time.
        asked(lambda: self._slurm.cancel(job_id, only_pending=True))
        asked(lambda: self._slurm.signal(job_id, "TERM", to_steps=len(attempt.nodes) > 1))
        self._watcher.check_soon()

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        if not run_directory.is_safe_id(attempt_id):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        place = self._layout.place(attempt_id, rank)
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            # Checked before reading: nothing is written to the log after the end.
            if attempt is None:
                is_over = not self._preparations.has(attempt_id)
            else:
                is_over = attempt.is_over or rank in attempt.exits
        data, next_offset, end = read_log(place, offset, max(1, limit))
        return LogChunk(data=data, next_offset=next_offset, at_end=is_over and next_offset >= end)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        safe = filter(run_directory.is_safe_id, attempt_ids)
        forget_each(safe, lambda attempt_id: self._forget(attempt_id, delete_logs=delete_logs))

    def _forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is not None:
                attempt.read_reports(self._layout)
                if not attempt.is_over:
                    return  # a running attempt must stay known
                del self._attempts[attempt_id]
                self._occupancy.note_over(attempt, slurm_attempt.clock())
        self._layout.forget(attempt_id, delete_logs=delete_logs)

    def withhold(self, node: str, reason: str) -> None:
        self._drains.withhold(node, reason)

    def release(self, node: str, *, force: bool) -> None:
        self._drains.release(node, force=force)

    def address_of(self, node: str) -> str:
        return self._submissions.address_of(node)

    def has(self, attempt_id: str) -> bool:
        return run_directory.is_safe_id(attempt_id) and (
            os.path.exists(self._layout.place(attempt_id, 0))
            or run_directory.has_folded_log(self._layout.place(attempt_id, 0))
            or self._preparations.has(attempt_id)
        )

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._watcher.subscribe(sink)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._preparations.close()
        self._watcher.stop()
        self._fold_worker.stop()

    def describe(self) -> Mapping[str, str]:
        return {"kind": "slurm", "root": str(self._layout.root), "mark": self._mark}

    # -------------------------------------------------------------------------------------------- OnThisDisk

    def directories(self, attempt_id: str) -> Sequence[str]:
        """The places of its instances, on the file system that the server shares with the nodes. They hold the logs,
        too, which are bounded."""
        with self._lock:
            attempt = self._attempts.get(attempt_id)
        ranks = range(len(attempt.nodes)) if attempt is not None else ()
        return [self._layout.place(attempt_id, rank) for rank in ranks]

    def temporary_directories(self, attempt_id: str) -> Sequence[str]:
        """None: they are on the nodes' own disks, which only Slurm can limit."""
        return ()

    def kept_directory(self, attempt_id: str) -> str:
        return self._layout.place(attempt_id, 0)

    # -------------------------------------------------------------------------------------------- HasParts

    def parts(self) -> Sequence[EnginePart]:
        with self._lock:
            return self._daemons.parts(self._drains.note)

    def part_log(self, name: str, limit_bytes: int) -> str:
        """Slurm's daemons write their logs on their own machines."""
        return ""

    # -------------------------------------------------------------------------------------------- for the watcher

    def take_events(self) -> list[Attempt]:
        """Refresh and return the attempts for which nodes have reported a change."""
        touched = self._node_reports.take()
        with self._lock:
            found = [attempt for name in touched if (attempt := self._attempts.get(name)) is not None]
            for attempt in found:
                attempt.read_reports(self._layout)
                if attempt.is_over:
                    trim_log(self._layout, attempt, self._rules.log_limit_bytes)
            broken = [attempt for attempt in found if self._is_broken(attempt)]
        self._stop_broken(broken)
        return found

    @property
    def is_busy(self) -> bool:
        """Whether an attempt is not over."""
        with self._lock:
            return any(not attempt.is_over for attempt in self._attempts.values())

    def rescan(self) -> list[Attempt]:
        """The safety net: refresh all attempts that are not over, with Slurm's state of their jobs. Without such an
        attempt Slurm is not queried."""
        with self._lock:
            if self._fence.is_superseded:
                return list(self._attempts.values())
            live = [attempt for attempt in self._attempts.values() if not attempt.is_over]
        if live:
            jobs = asked(self._slurm.live)
            self._tracker.follow(self._attempts.values(), jobs, slurm_attempt.clock())
            with self._lock:
                for attempt in live:
                    trim_log(self._layout, attempt, self._rules.log_limit_bytes)
                broken = [attempt for attempt in live if self._is_broken(attempt)]
            self._stop_broken(broken)
            self._tracker.take_back(live, slurm_attempt.clock(), self._rules.pending_seconds)
        with self._lock:
            return list(self._attempts.values())

    # -------------------------------------------------------------------------------------------- inside

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the Slurm engine is closed")
        self._fence.check()

    def _take_prepared(self, order: LaunchOrder, prepared: Prepared) -> None:
        """The storage of the attempt is ready, or failed. Runs on a thread of its own, so it handles every error."""
        try:
            with self._launch_locks[zlib.crc32(order.attempt_id.encode()) % len(self._launch_locks)]:
                if order.attempt_id in self._attempts:
                    return  # it was stopped meanwhile
                if prepared.problem:
                    self._end_unlaunched(order, EndReason.LAUNCH_ERROR, prepared.problem)
                    return
                specs = {
                    rank: with_sources(mine, prepared.sources) for rank, mine in self._submissions.specs(order).items()
                }
                self._submit(order, self._prepare(order, specs, prepared.log_lines))
        except LaunchRefused as refusal:
            self._end_unlaunched(order, EndReason.LAUNCH_ERROR, str(refusal))
        except EngineUnavailable as error:
            # The controller finds the attempt missing and launches it again.
            log.warning("attempt %s: %s", order.attempt_id, error)
        except Exception as error:
            log.exception("attempt %s could not be launched", order.attempt_id)
            self._end_unlaunched(order, EndReason.LAUNCH_ERROR, f"{type(error).__name__}: {error}")

    def _end_unlaunched(self, order: LaunchOrder, reason: EndReason, message: str) -> None:
        """The attempt ends before it is submitted."""
        with self._lock:
            attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                self._submissions.check_new(order)
                attempt = slurm_attempt.create(self._layout, order, slurm_attempt.clock(), JobOwner())
                self._attempts[order.attempt_id] = attempt
            if not attempt.is_over and not attempt.was_submitted:
                slurm_attempt.conclude(self._layout, attempt, reason, message)
        self._watcher.check_soon()

    def _prepare(
        self, order: LaunchOrder, specs: Mapping[int, list[StorageSpec]], log_lines: Sequence[str] = ()
    ) -> Attempt:
        attempt = self._submissions.prepare(order, specs, log_lines)
        with self._lock:
            self._attempts[order.attempt_id] = attempt
        return attempt

    def _submit(self, order: LaunchOrder, attempt: Attempt) -> None:
        self._check_open()
        try:
            job_id = self._partitions.decide(
                lambda known: self._slurm.submit(self._submissions.submission(order, attempt, known))
            )
        except PartitionClosed as closed:
            # The next plan may choose other nodes: the nodes of that partition count as closed from now on.
            with self._lock:
                slurm_attempt.conclude(self._layout, attempt, EndReason.PREEMPTED, f"Slurm did not begin it: {closed}")
            self._watcher.check_soon()
            return
        except SlurmUnavailable as error:
            raise EngineUnavailable(f"Slurm: {error}") from error
        except (SlurmRefused, LaunchRefused) as refusal:
            message = f"Slurm refuses it: {refusal}" if isinstance(refusal, SlurmRefused) else str(refusal)
            with self._lock:
                slurm_attempt.conclude(self._layout, attempt, EndReason.LAUNCH_ERROR, message)
            raise LaunchRefused(message) from refusal
        with self._lock:
            self._submitted(attempt, job_id)

    def _submitted(self, attempt: Attempt, job_id: int) -> None:
        slurm_attempt.note_job(self._layout, attempt, job_id)
        self._layout.note_submission(slurm_attempt.clock())
        if attempt.was_stopped:
            # It was stopped during the submission.
            with contextlib.suppress(EngineUnavailable):
                if self._tracker.confirms(attempt):
                    asked(lambda: self._slurm.cancel(job_id))
        self._watcher.check_soon()

    def _job_id_of(self, attempt: Attempt) -> int | None:
        """The Slurm job of an attempt that is being stopped. Without a job the attempt is over; a thread that is just
        submitting it cancels the job."""
        found = None if attempt.was_submitted else self._tracker.job_of(attempt)
        with self._lock:
            if not attempt.was_submitted and found is not None:
                attempt.job_id = found.id
            if not attempt.was_submitted:
                attempt.give_up(EndReason.EXIT_CODE, "stopped before it began", slurm_attempt.clock())
            return attempt.job_id

    def _is_broken(self, attempt: Attempt) -> bool:
        return not attempt.was_stopped and must_stop(attempt.instances())

    def _stop_broken(self, broken: Iterable[Attempt]) -> None:
        """Stop the rest of a gang in which one instance failed."""
        for attempt in broken:
            self.stop(attempt.id, attempt.grace_seconds)
