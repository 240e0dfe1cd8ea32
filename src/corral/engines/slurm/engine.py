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

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from corral.control.ports import (
    AttemptStatus,
    EnginePart,
    EngineUnavailable,
    LaunchOrder,
    Leadership,
    LogChunk,
    Observation,
    ShellStream,
)
from corral.engines.attempts.aggregation import must_stop
from corral.engines.attempts.fold_worker import QUIET_SECONDS, FoldHomes, FoldWorker, keep_homes
from corral.engines.fence import Fence
from corral.engines.forgetting import forget_each
from corral.engines.slurm.attempts import run_directory, slurm_attempt
from corral.engines.slurm.attempts.installation import engine_id, engine_key, installed_program
from corral.engines.slurm.attempts.job_orders import SlurmRules, check_order
from corral.engines.slurm.attempts.logs import read_log, trim_log
from corral.engines.slurm.attempts.node_reports import NodeReports
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.submissions import Submissions
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.attempts.tracking import asked
from corral.engines.slurm.attempts.watcher import Watcher
from corral.engines.slurm.cluster.daemons import Daemons
from corral.engines.slurm.cluster.drains import NodeDrains
from corral.engines.slurm.cluster.nodes import nodes_seen, others_use, vanished
from corral.engines.slurm.cluster.occupancy import Occupancy, named_gpus
from corral.engines.slurm.cluster.partitions import Partitions, closed_nodes
from corral.engines.slurm.cluster.reservation_nodes import ReservationNodes
from corral.engines.slurm.job_adoption import JobAdoption
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused
from corral.engines.slurm.slurm_api.devices import Devices
from corral.engines.slurm.slurm_attempts import SlurmAttempts
from corral.engines.slurm.slurm_launches import SlurmLaunches
from corral.engines.slurm.slurm_shells import SlurmShells
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
        root = Path(root).resolve()
        self._slurm = slurm
        self._rules = rules or SlurmRules()
        self._layout = run_directory.Layout(str(root))
        self._layout.prepare()
        self._node_reports = NodeReports(self._layout.reports)
        self._drains = NodeDrains(root, slurm)
        self._submissions = Submissions(
            slurm=slurm,
            layout=self._layout,
            rules=self._rules,
            account_of=account_of,
            storage=storage,
            top=top,
            program=str(installed_program(root)),
            mark=f"corral-{engine_id(root)}-",
            key=engine_key(root),
        )
        self._devices = Devices()
        self._partitions = Partitions(slurm.partitions, refused=SlurmRefused)
        self._occupancy = Occupancy()
        self._daemons = Daemons(slurm.daemon)
        self._reservation_nodes = ReservationNodes(slurm, self._rules.extra)
        self._closed = False
        self._fence = Fence(root)
        self._attempts = SlurmAttempts(self._layout)
        self._adoption = JobAdoption(self._submissions, self._attempts.adopt)
        self._fold_worker = FoldWorker(self._layout, quiet_seconds=fold_after_seconds, fold_homes=fold_homes)
        self._watcher = Watcher(self, look_seconds=look_seconds, rescan_seconds=rescan_seconds)
        self._launches = SlurmLaunches(
            attempts=self._attempts,
            submissions=self._submissions,
            partitions=self._partitions,
            check_open=self._check_open,
            on_submit=self._fold_worker.note_launch,
            on_change=self._watcher.check_soon,
        )
        self._shells = SlurmShells(self._layout, slurm, self._with_instance)
        self._tracker, self._preparations = self._launches.tracker, self._launches.preparations
        self._watcher.start()
        self._fold_worker.start()

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return self._fence.term_seen()

    def lead(self, leadership: Leadership) -> None:
        # If an older server submits an attempt after this, both jobs are for the same attempt: only one can claim it.
        self._fence.lead(leadership.term)

    # -------------------------------------------------------------------------------------------- Engine

    def observe(self) -> Observation:
        self._adopt()
        try:
            seen, live = asked(self._slurm.nodes), asked(self._slurm.live)
        except EngineUnavailable as error:
            with self._attempts.lock:
                self._daemons.failed(str(error))
            raise
        with self._attempts.lock:
            self._daemons.answered(seen)
        with self._attempts.lock:
            self._check_open()
            mine, stuck = self._occupancy.own_jobs(self._attempts.all(), live, slurm_attempt.clock())
            overran = self._occupancy.overran(live, slurm_attempt.clock())
        jobs = asked(lambda: self._devices.complete(live, mine, self._slurm.jobs))
        reserved = self._reservation_nodes.nodes(seen, slurm_attempt.clock())
        closed = closed_nodes(asked(self._partitions.now), self._rules.partitions)
        if stuck:
            log.warning("Slurm jobs %s still run although their attempts are over: cancelling them", stuck)
            asked(lambda: self._slurm.cancel(*stuck))
        self._tracker.follow(self._attempts.all(), jobs, slurm_attempt.clock())
        # The watcher does this too, but it queries Slurm rarely after a slow answer.
        self._tracker.take_back(self._attempts.all(), slurm_attempt.clock(), self._rules.pending_seconds)
        with self._attempts.lock:
            named = named_gpus(self._attempts.all(), self._preparations.orders())
            lost = self._occupancy.lost_gpus(seen, jobs)
            seen += vanished(seen, self._submissions.known_nodes, named)
            self._submissions.known_nodes = {node.name: node for node in seen}
            statuses = [attempt.status() for attempt in self._attempts.all()]
            being_prepared = [
                status for status in self._preparations.statuses() if status.attempt_id not in self._attempts
            ]
        self._watcher.check_soon()
        return Observation(
            nodes=nodes_seen(seen, others_use(jobs, mine, lost), named, self._rules.fleet, reserved, closed),
            attempts=(*(status for status in statuses if status is not None), *being_prepared),
            withheld=self._drains.found(seen),
            overran=overran,
        )

    def launch(self, order: LaunchOrder) -> None:
        check_order(order, self._rules.images)
        self._adopt()
        self._launches.launch(order)

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        with self._attempts.lock:
            self._check_open()
            attempt = self._attempts.get(attempt_id)
            if attempt is None:
                self._launches.withdraw(attempt_id)
                return
            attempt.read_reports(self._layout)
            if attempt.is_over:
                return
            attempt.was_stopped = True
            run_directory.write_text(self._layout.stop(attempt_id), f"{max(0.0, grace_seconds):.3f}\n", mode=0o644)
        if (job_id := self._launches.job_to_stop(attempt)) is None or not self._tracker.confirms(attempt):
            return
        # A pending job is cancelled at once. A job that runs gets SIGTERM, and the nodes enforce its grace time.
        asked(lambda: self._slurm.cancel(job_id, only_pending=True))
        asked(lambda: self._slurm.signal(job_id, "TERM", to_steps=len(attempt.nodes) > 1))
        self._watcher.check_soon()

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        if not run_directory.is_safe_id(attempt_id):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        place = self._layout.place(attempt_id, rank)
        with self._attempts.lock:
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
        with self._attempts.lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is not None:
                attempt.read_reports(self._layout)
                if not attempt.is_over:
                    return  # a running attempt must stay known
                self._attempts.remove(attempt_id)
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
        with self._attempts.lock:
            if self._closed:
                return
            self._closed = True
        self._preparations.close()
        self._watcher.stop()
        self._fold_worker.stop()

    def describe(self) -> Mapping[str, str]:
        return {"kind": "slurm", "root": str(self._layout.root), "mark": self._submissions.mark}

    # -------------------------------------------------------------------------------------------- HasShells

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ShellStream:
        return await self._shells.open_shell(attempt_id, rank, command, has_terminal=has_terminal, has_input=has_input)

    def _with_instance(self, attempt_id: str, rank: int) -> Attempt | None:
        with self._attempts.lock:
            attempt = self._attempts.get(attempt_id)
            if attempt is None:
                return None
            attempt.read_reports(self._layout)
            has_begun = rank in attempt.up and rank not in attempt.exits
            return attempt if has_begun and not attempt.is_over else None

    # -------------------------------------------------------------------------------------------- OnThisDisk

    def directories(self, attempt_id: str) -> Sequence[str]:
        """The places of its instances, on the file system that the server shares with the nodes. They hold the logs,
        too, which are bounded."""
        with self._attempts.lock:
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
        with self._attempts.lock:
            return self._daemons.parts(self._drains.note)

    def part_log(self, name: str, limit_bytes: int) -> str:
        """Slurm's daemons write their logs on their own machines."""
        return ""

    # -------------------------------------------------------------------------------------------- for the watcher

    def take_events(self) -> list[Attempt]:
        """Refresh and return the attempts for which nodes have reported a change."""
        touched = self._node_reports.take()
        with self._attempts.lock:
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
        return bool(self._attempts.live())

    def rescan(self) -> list[Attempt]:
        """The safety net: refresh all attempts that are not over, with Slurm's state of their jobs. Without such an
        attempt Slurm is not queried."""
        if self._fence.is_superseded:
            return self._attempts.all()
        if live := self._attempts.live():
            jobs = asked(self._slurm.live)
            self._tracker.follow(self._attempts.all(), jobs, slurm_attempt.clock())
            with self._attempts.lock:
                for attempt in live:
                    trim_log(self._layout, attempt, self._rules.log_limit_bytes)
                broken = [attempt for attempt in live if self._is_broken(attempt)]
            self._stop_broken(broken)
            self._tracker.take_back(live, slurm_attempt.clock(), self._rules.pending_seconds)
        return self._attempts.all()

    # -------------------------------------------------------------------------------------------- inside

    def _adopt(self) -> None:
        """Takes up jobs without records after a restore, before the first observation and the first launch."""
        self._check_open()
        self._adoption.take_up()

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the Slurm engine is closed")
        self._fence.check()

    def _is_broken(self, attempt: Attempt) -> bool:
        return not attempt.was_stopped and must_stop(attempt.instances())

    def _stop_broken(self, broken: Iterable[Attempt]) -> None:
        """Stop the rest of a gang in which one instance failed."""
        for attempt in broken:
            self.stop(attempt.id, attempt.grace_seconds)
