"""The Slurm engine: one Slurm job for each attempt, on the nodes and with as many GPUs as the plan says.

All truth is on the shared file system and in Slurm: a new engine over the same root knows everything that an earlier
one knew. A job is an attempt's by its id and its account. One whose id was lost is found again by the attempt's secret
in its name, and one that was sent twice runs once, because only the first can claim its attempt. Everybody is looked
after together: one squeue and one sinfo for all.
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
    AttemptTaken,
    EngineUnavailable,
    LaunchOrder,
    LaunchRefused,
    Leadership,
    LogChunk,
    Observation,
)
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import must_stop
from corral.engines.attempts.fold_worker import QUIET_SECONDS, FoldWorker
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.attempts.terms import TERM, read_term, write_term
from corral.engines.slurm.attempts import run_directory, scripts, slurm_attempt
from corral.engines.slurm.attempts.attempt_files import give, lay_out
from corral.engines.slurm.attempts.ends import why_not_begun
from corral.engines.slurm.attempts.installation import engine_id, installed_program
from corral.engines.slurm.attempts.job_orders import (
    SlurmRules,
    check_order,
    instance_environment,
    place_of,
    run_as,
    submission,
)
from corral.engines.slurm.attempts.logs import read_log, trim_log
from corral.engines.slurm.attempts.node_reports import News
from corral.engines.slurm.attempts.preparation import Prepared, Preparing
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.storage import slurm_specs, take_long, with_sources
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.attempts.tracking import Following, asked
from corral.engines.slurm.attempts.watcher import Watcher
from corral.engines.slurm.cluster.drains import NodeWords
from corral.engines.slurm.cluster.nodes import nodes_seen, others_use, vanished
from corral.engines.slurm.cluster.occupancy import Occupancy, named_gpus
from corral.engines.slurm.cluster.partitions import Partition, PartitionClosed, Partitions, closed_nodes
from corral.engines.slurm.cluster.reservation_nodes import Reserving
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused, SlurmUnavailable, Submission
from corral.engines.slurm.slurm_api.devices import Devices
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmNode
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
    ) -> None:
        """`account_of` says whose job an attempt is in Slurm; None means the server's own account. Below `top` the way
        to a job's directories may be opened for its account."""
        self._slurm = slurm
        self._rules = rules or SlurmRules()
        self._account_of = account_of
        self._storage = storage
        self._top = top
        root = Path(root).resolve()
        self._layout = run_directory.Layout(str(root))
        self._layout.prepare()
        self._news = News(self._layout.news)
        self._words = NodeWords(root, slurm)
        self._mark = f"corral-{engine_id(root)}-"
        self._program = str(installed_program(root))
        self._lock = threading.RLock()
        #: attempts share these by their ids: one and the same is never launched by two at a time
        self._launching = tuple(threading.Lock() for _ in range(64))
        self._attempts: dict[str, Attempt] = {}
        #: as the controller last told; what a launch needs of them is seldom out of date
        self._known_nodes: Mapping[str, SlurmNode] = {}
        self._devices = Devices()
        self._partitions = Partitions(slurm.partitions, refused=SlurmRefused)
        self._occupancy = Occupancy()
        self._reserving = Reserving(slurm, self._rules.extra)
        self._following = Following(slurm, self._layout, self._mark, self._submitted, self._lock)
        self._closed = False
        self._term_path, self._term = str(root / TERM), 0
        for attempt_id in self._layout.live():
            if (attempt := slurm_attempt.load(self._layout, attempt_id)) is None:
                # An earlier server was about to prepare it, and will say again that it is wanted.
                self._layout.forget(attempt_id, delete_logs=True)
            else:
                self._attempts[attempt_id] = attempt
                if (status := attempt.status()) is not None:
                    # What is up or over by now is for `observe` to tell.
                    attempt.told = status.phase
        self._preparing = Preparing(self._mark, self._layout, storage, os.environ, self._take_prepared)
        self._watcher = Watcher(self, look_seconds=look_seconds, rescan_seconds=rescan_seconds)
        self._watcher.start()
        self._fold_worker = FoldWorker(self._layout, quiet_seconds=fold_after_seconds)
        self._fold_worker.start()

    # -------------------------------------------------------------------------------------------- Fenced

    def term_seen(self) -> int:
        return read_term(self._term_path)

    def lead(self, leadership: Leadership) -> None:
        # An attempt that an older server gives to Slurm after this is the same attempt, and only one can claim it.
        write_term(self._term_path, leadership.term)
        self._term = leadership.term

    # -------------------------------------------------------------------------------------------- Engine

    def observe(self) -> Observation:
        seen, live = asked(self._slurm.nodes), asked(self._slurm.live)
        with self._lock:
            self._check_open()
            mine, stuck = self._occupancy.own_jobs(self._attempts, live, slurm_attempt.clock())
            overran = self._occupancy.overran(live, slurm_attempt.clock())
        jobs = asked(lambda: self._devices.told(live, mine, self._slurm.jobs))
        reserved = self._reserving.nodes(seen, slurm_attempt.clock())
        closed = closed_nodes(asked(self._partitions.now), self._rules.partitions)
        if stuck:
            log.warning("Slurm jobs %s run on although their attempts are over: they are cancelled", stuck)
            asked(lambda: self._slurm.cancel(*stuck))
        self._following.follow(self._attempts.values(), jobs, slurm_attempt.clock())
        # Not left to the watcher alone, which asks seldom after a slow answer.
        self._take_back(list(self._attempts.values()))
        with self._lock:
            named = named_gpus(self._attempts.values(), self._preparing.orders())
            lost = self._occupancy.lost_gpus(seen, jobs)
            seen += vanished(seen, self._known_nodes, named)
            self._known_nodes = {node.name: node for node in seen}
            statuses = [attempt.status() for attempt in self._attempts.values()]
            on_their_way = [one for one in self._preparing.statuses() if one.attempt_id not in self._attempts]
        self._watcher.tell_all()
        return Observation(
            nodes=nodes_seen(seen, others_use(jobs, mine, lost), named, self._rules.fleet, reserved, closed),
            attempts=(*(status for status in statuses if status is not None), *on_their_way),
            withheld=self._words.found(seen),
            overran=overran,
        )

    def launch(self, order: LaunchOrder) -> None:
        check_order(order)
        # Only who launches the same attempt waits here: files and sbatch take long, and others need the engine.
        with self._launching[zlib.crc32(order.attempt_id.encode()) % len(self._launching)]:
            with self._lock:
                self._check_open()
                attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                if self._preparing.has(order.attempt_id):
                    return
                specs = self._specs(order)
                if take_long(specs[0]):
                    self._check_new(order)
                    self._preparing.begin(order, specs[0])
                    return
                attempt = self._prepare(order, specs)
                if (bad := next((word for word in order.command if "\0" in word), None)) is not None:
                    attempt.give_up(
                        EndReason.LAUNCH_ERROR, f"{bad!r}: execve: embedded null byte", slurm_attempt.clock()
                    )
                    self._watcher.look_soon()
                    return
            elif attempt.was_submitted or attempt.is_over:
                return
            elif (job := self._following.job_of(attempt)) is not None:
                # An earlier server gave it to Slurm, and had no time to write that down.
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
                if (order := self._preparing.drop(attempt_id)) is not None:
                    self._end_unlaunched(order, EndReason.EXIT_CODE, "stopped before it began")
                return
            attempt.look(self._layout)
            if attempt.is_over:
                return
            attempt.was_stopped = True
            run_directory.write_text(self._layout.stop(attempt_id), f"{max(0.0, grace_seconds):.3f}\n", mode=0o644)
        if (job_id := self._job_id_of(attempt)) is None or not self._is_its_own(attempt):
            return
        # One that waits is gone at once; one that has begun is asked, and the nodes keep its grace time.
        asked(lambda: self._slurm.cancel(job_id, only_pending=True))
        asked(lambda: self._slurm.signal(job_id, "TERM", to_steps=len(attempt.nodes) > 1))
        self._watcher.look_soon()

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        if not run_directory.is_safe_id(attempt_id):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        place = self._layout.place(attempt_id, rank)
        with self._lock:
            attempt = self._attempts.get(attempt_id)
            # Asked before reading: after the end nothing is written any more.
            if attempt is None:
                is_over = not self._preparing.has(attempt_id)
            else:
                is_over = attempt.is_over or rank in attempt.exits
        data, next_offset, end = read_log(place, offset, max(1, limit))
        return LogChunk(data=data, next_offset=next_offset, at_end=is_over and next_offset >= end)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        for attempt_id in filter(run_directory.is_safe_id, attempt_ids):
            with self._lock:
                attempt = self._attempts.get(attempt_id)
                if attempt is not None:
                    attempt.look(self._layout)
                    if not attempt.is_over:
                        continue  # a running attempt must stay known
                    del self._attempts[attempt_id]
                    self._occupancy.note_over(attempt, slurm_attempt.clock())
            self._layout.forget(attempt_id, delete_logs=delete_logs)

    def withhold(self, node: str, reason: str) -> None:
        self._words.withhold(node, reason)

    def release(self, node: str, *, whoever_withheld: bool) -> None:
        self._words.release(node, whoever_withheld=whoever_withheld)

    def address_of(self, node: str) -> str:
        known = self._nodes_with([node])
        return known[node].address if node in known else node

    def has(self, attempt_id: str) -> bool:
        return run_directory.is_safe_id(attempt_id) and (
            os.path.exists(self._layout.place(attempt_id, 0))
            or run_directory.has_folded_log(self._layout.place(attempt_id, 0))
            or self._preparing.has(attempt_id)
        )

    def fold_homes_with(self, fold_homes: Callable[[Sequence[str]], None]) -> None:
        self._fold_worker.fold_homes = fold_homes

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._watcher.subscribe(sink)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._preparing.close()
        self._watcher.stop()
        self._fold_worker.stop()

    def describe(self) -> Mapping[str, str]:
        return {"kind": "slurm", "root": str(self._layout.root), "mark": self._mark}

    # -------------------------------------------------------------------------------------------- for the watcher

    def take_events(self) -> list[Attempt]:
        """Bring those up to date to which their nodes say that something happened."""
        touched = self._news.take()
        with self._lock:
            found = [attempt for name in touched if (attempt := self._attempts.get(name)) is not None]
            for attempt in found:
                attempt.look(self._layout)
                if attempt.is_over:
                    trim_log(self._layout, attempt, self._rules.log_limit_bytes)
            broken = [attempt for attempt in found if self._is_broken(attempt)]
        self._stop_broken(broken)
        return found

    @property
    def is_busy(self) -> bool:
        """Some attempt is known whose end may come at any moment."""
        with self._lock:
            return any(not attempt.is_over for attempt in self._attempts.values())

    def rescan(self) -> list[Attempt]:
        """The safety net: all that are not over, and what Slurm says of them. Nobody live, nothing asked."""
        with self._lock:
            if self._is_superseded:
                return list(self._attempts.values())
            live = [attempt for attempt in self._attempts.values() if not attempt.is_over]
        if live:
            jobs = asked(self._slurm.live)
            self._following.follow(self._attempts.values(), jobs, slurm_attempt.clock())
            with self._lock:
                for attempt in live:
                    trim_log(self._layout, attempt, self._rules.log_limit_bytes)
                broken = [attempt for attempt in live if self._is_broken(attempt)]
            self._stop_broken(broken)
            self._take_back(live)
        with self._lock:
            return list(self._attempts.values())

    # -------------------------------------------------------------------------------------------- inside

    def _nodes_with(self, names: Iterable[str]) -> Mapping[str, SlurmNode]:
        """All that are known; asked for again if one of these is not among them."""
        if any(name not in self._known_nodes for name in names):
            self._known_nodes = {node.name: node for node in asked(self._slurm.nodes)}
        return self._known_nodes

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailable("the Slurm engine is closed")
        if self._is_superseded:
            raise EngineUnavailable(
                f"another server has taken over {self._layout.root} (it has term {self.term_seen()}, and this one "
                f"{self._term}): this one starts and stops nothing any more"
            )

    @property
    def _is_superseded(self) -> bool:
        return 0 < self._term < self.term_seen()

    def _specs(self, order: LaunchOrder) -> dict[int, list[StorageSpec]]:
        """What each instance mounts. Raises LaunchRefused."""
        return {one.rank: slurm_specs(order.storage, self._storage, one.rank, order.user) for one in order.instances}

    def _take_prepared(self, order: LaunchOrder, prepared: Prepared) -> None:
        """What it mounts is there, or cannot be had. By a thread of its own: nobody hears what is raised here."""
        try:
            with self._launching[zlib.crc32(order.attempt_id.encode()) % len(self._launching)]:
                if order.attempt_id in self._attempts:
                    return  # it was stopped meanwhile
                if prepared.problem:
                    self._end_unlaunched(order, EndReason.LAUNCH_ERROR, prepared.problem)
                    return
                specs = {rank: with_sources(mine, prepared.sources) for rank, mine in self._specs(order).items()}
                self._submit(order, self._prepare(order, specs, prepared.said))
        except LaunchRefused as refusal:
            self._end_unlaunched(order, EndReason.LAUNCH_ERROR, str(refusal))
        except EngineUnavailable as error:
            # It is found missing, and launched again.
            log.warning("attempt %s: %s", order.attempt_id, error)
        except Exception as error:
            log.exception("attempt %s could not be launched", order.attempt_id)
            self._end_unlaunched(order, EndReason.LAUNCH_ERROR, f"{type(error).__name__}: {error}")

    def _end_unlaunched(self, order: LaunchOrder, reason: EndReason, words: str) -> None:
        """It ends before Slurm hears of it."""
        with self._lock:
            attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                self._check_new(order)
                attempt = slurm_attempt.create(self._layout, order, slurm_attempt.clock(), JobOwner())
                self._attempts[order.attempt_id] = attempt
            if not attempt.is_over and not attempt.was_submitted:
                slurm_attempt.conclude(self._layout, attempt, reason, words)
        self._watcher.look_soon()

    def _check_new(self, order: LaunchOrder) -> None:
        if self._layout.was_ordered(order.attempt_id):
            raise AttemptTaken(
                f"attempt {order.attempt_id} is over here already: its id was given a second time, as happens when an "
                "older store is put back. The next attempt has another id."
            )

    def _prepare(self, order: LaunchOrder, specs: Mapping[int, list[StorageSpec]], said: Sequence[str] = ()) -> Attempt:
        """Everything that its nodes need, before Slurm hears of it."""
        self._check_new(order)
        who, first = self._account_of(order), order.instances[0].node
        owner = self._owner(who)
        lay_out(
            self._layout,
            order,
            self._program,
            specs,
            lambda one: instance_environment(order, one, self._rules, who, master_addr=self.address_of(first)),
            said,
        )
        if who is not None:
            top = self._top or self._layout.root
            give(self._layout, order, specs[0], who, top, self._storage.volumes if self._storage else "")
        attempt = slurm_attempt.create(self._layout, order, slurm_attempt.clock(), owner)
        with self._lock:
            self._attempts[order.attempt_id] = attempt
        return attempt

    def _owner(self, who: Submitter | None) -> JobOwner:
        """Whose job Slurm will say it is."""
        if who is None or run_as(who) is None:
            return asked(self._slurm.submitter)
        return JobOwner(uid=who.account.uid, name=who.account.name)

    def _submission(self, order: LaunchOrder, attempt: Attempt, partitions: Sequence[Partition]) -> Submission:
        place = place_of(order, self._rules, partitions)
        script = scripts.batch_script(order, self._layout, self._program)
        name = attempt.job_name(self._mark)
        nodes = self._nodes_with([instance.node for instance in order.instances])
        return submission(order, self._rules, self._account_of(order), place, nodes, name=name, script=script)

    def _submit(self, order: LaunchOrder, attempt: Attempt) -> None:
        self._check_open()
        try:
            job_id = self._partitions.decide(lambda known: self._slurm.submit(self._submission(order, attempt, known)))
        except PartitionClosed as closed:
            # Planned anew it may go elsewhere; the nodes of that partition are withheld from now on.
            with self._lock:
                slurm_attempt.conclude(self._layout, attempt, EndReason.PREEMPTED, f"Slurm did not begin it: {closed}")
            self._watcher.look_soon()
            return
        except SlurmUnavailable as error:
            raise EngineUnavailable(f"Slurm: {error}") from error
        except (SlurmRefused, LaunchRefused) as refusal:
            words = f"Slurm refuses it: {refusal}" if isinstance(refusal, SlurmRefused) else str(refusal)
            with self._lock:
                slurm_attempt.conclude(self._layout, attempt, EndReason.LAUNCH_ERROR, words)
            raise LaunchRefused(words) from refusal
        with self._lock:
            self._submitted(attempt, job_id)

    def _submitted(self, attempt: Attempt, job_id: int) -> None:
        slurm_attempt.note_job(self._layout, attempt, job_id)
        self._layout.note_submission(slurm_attempt.clock())
        if attempt.was_stopped:
            # It was stopped while it was on its way.
            with contextlib.suppress(EngineUnavailable):
                if self._is_its_own(attempt):
                    asked(lambda: self._slurm.cancel(job_id))
        self._watcher.look_soon()

    def _job_id_of(self, attempt: Attempt) -> int | None:
        """Of one that is being stopped. Without a job it is over: whoever is just submitting it takes it back."""
        found = None if attempt.was_submitted else self._following.job_of(attempt)
        with self._lock:
            if not attempt.was_submitted and found is not None:
                attempt.job_id = found.id
            if not attempt.was_submitted:
                attempt.give_up(EndReason.EXIT_CODE, "stopped before it began", slurm_attempt.clock())
            return attempt.job_id

    def _is_its_own(self, attempt: Attempt) -> bool:
        """Whether Slurm says that the job is its account's: no wrong id may end a stranger's job."""
        if not attempt.is_confirmed:
            jobs = asked(self._slurm.live)
            attempt.is_confirmed = any(
                job.id == attempt.job_id and self._following.is_its(attempt, job) for job in jobs
            )
        return attempt.is_confirmed

    def _is_broken(self, attempt: Attempt) -> bool:
        return not attempt.was_stopped and must_stop(attempt.instances())

    def _stop_broken(self, broken: Iterable[Attempt]) -> None:
        """One instance of a gang ended badly: the others end too."""
        for attempt in broken:
            self.stop(attempt.id, attempt.grace_seconds)

    def _take_back(self, live: Iterable[Attempt]) -> None:
        """Others have got what the plan thought was free: corral plans anew, and nobody is stuck behind them."""
        now = slurm_attempt.clock()
        late = {
            attempt.job_id: (attempt, attempt.seen)
            for attempt in live
            if attempt.job_id is not None and attempt.waits_in_slurm and attempt.seen is not None
            if now - max(attempt.given_at, attempt.created_at) >= self._rules.pending_seconds
        }
        if not late:
            return
        asked(lambda: self._slurm.cancel(*late, only_pending=True))
        states = {job.id: job.state for job in asked(self._slurm.jobs)}
        with self._lock:
            for job_id, (attempt, job) in late.items():
                if states.get(job_id, "CANCELLED") == "CANCELLED" and not attempt.is_over:
                    slurm_attempt.conclude(self._layout, attempt, EndReason.PREEMPTED, why_not_begun(job))
