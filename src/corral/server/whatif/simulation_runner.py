"""Runs simulations beside the live system: one worker takes them one by one, and starts a process for each.

The server reads the history in small portions with pauses in between, and passes it to the process in a file. The
process runs with a low priority; it ends with the simulation, with the server, or after `LONGEST_SECONDS`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker
from corral.control.ports import Clock, Store, StoreUnavailable
from corral.control.records import SimulationRecord, SimulationSource, UsageRecord
from corral.control.scheduling.run_times import runs_known
from corral.control.whatif import simulations
from corral.control.whatif.past_jobs import Past, TooManyJobs, Window
from corral.core.model import Job, JobState
from corral.core.snapshot.changes import Change, PutQueue
from corral.core.snapshot.codec import from_plain, to_plain
from corral.core.whatif.past_jobs import PastJob
from corral.server.whatif import simulation_orders as orders

log = logging.getLogger("corral.server.whatif.simulation_runner")

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

TRACE = "trace.jsonl"
#: Time limit of one simulation.
LONGEST_SECONDS = 3600.0
#: The lowest priority.
NICENESS = 19
#: Between two polls of a process, and between two notifications of progress.
LOOK_SECONDS = 0.2
NOTIFY_SECONDS = 1.0
#: Rows that are read at once.
PORTION = 500
#: Poll interval, in case that a `wake` was missed.
IDLE_SECONDS = 60.0
_ANSWER_SECONDS = 30.0
_LAST_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationProgress:
    """Progress of a simulation."""

    phase: str = "waiting"
    fraction: float = 0.0
    ended_jobs: int = 0
    jobs: int | None = None
    eta_seconds: float | None = None


class Unwanted(Exception):
    """The simulation was cancelled or deleted, or the server stops."""


class SimulationRunner:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        clock: Clock,
        folder: Path,
        notify: Callable[[str, str, Mapping[str, Any]], None] = lambda key, name, data: None,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        """`notify(key, name, data)` sends an event that is not stored to the followers of the stream."""
        self._controller = controller
        self._store = store
        self._clock = clock
        self._folder = folder
        self._notify = notify
        self._longest_seconds = longest_seconds
        self._guard = threading.Lock()
        self._current: str | None = None
        self._unwanted: set[str] = set()
        self._progress = SimulationProgress()
        self._is_swept = False
        self._worker = Worker("simulating", self._round, every_seconds=IDLE_SECONDS)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """The running simulation starts again with the next server."""
        self._worker.stop()

    def wake(self) -> None:
        """A simulation was requested."""
        self._worker.wake()

    def drop(self, simulation_id: str, *, remove: bool = False) -> None:
        """Cancel a simulation; with `remove`, delete its trace, too."""
        with self._guard:
            if simulation_id == self._current:
                self._unwanted.add(simulation_id)
        if remove:
            shutil.rmtree(self._of(simulation_id), ignore_errors=True)

    def progress(self, simulation_id: str) -> SimulationProgress | None:
        """The progress of a running simulation."""
        with self._guard:
            return self._progress if simulation_id == self._current else None

    def keep_trace(self, simulation_id: str, jobs: Iterable[PastJob]) -> None:
        """Store the jobs of a trace."""
        folder = self._of(simulation_id)
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{TRACE}.new"
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(to_plain(past), ensure_ascii=False) + "\n" for past in jobs)
        fresh.replace(folder / TRACE)

    def copy_trace(self, before: str, after: str) -> bool:
        """Copy the trace of one simulation to another; False if it does not exist any more."""
        trace = self._of(before) / TRACE
        if not trace.is_file():
            return False
        folder = self._of(after)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(trace, folder / f"{TRACE}.new")
        (folder / f"{TRACE}.new").replace(folder / TRACE)
        return True

    def _of(self, simulation_id: str) -> Path:
        return self._folder / simulation_id

    # ---------------------------------------------------------------- the thread

    def _round(self) -> None:
        if not self._is_swept:
            self._sweep()
            self._is_swept = True
        self.look()

    def _sweep(self) -> None:
        """Remove folders without a simulation: the server died between the two steps."""
        with self._store.read() as tx:
            known = set(tx.simulations.ids())
            unfinished = tx.simulations.unfinished()
        for record in unfinished:
            if not self._can_begin(record):
                self._execute(simulations.interrupt, record.id, "the jobs of its trace do not exist any more")
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def look(self) -> None:
        """Run all requested simulations, one after the other."""
        while not self._worker.is_stopping:
            with self._store.read() as tx:
                unfinished = tx.simulations.unfinished()
            due = next(filter(self._can_begin, unfinished), None)
            if due is None:
                break
            self._answer(due.id)
        for old in self._execute(simulations.drop_old) if not self._worker.is_stopping else ():
            shutil.rmtree(self._of(old), ignore_errors=True)

    def _can_begin(self, record: SimulationRecord) -> bool:
        """The jobs of a trace are written after the simulation was accepted."""
        return record.source is SimulationSource.HISTORY or (self._of(record.id) / TRACE).is_file()

    def _answer(self, simulation_id: str) -> None:
        record = self._execute(simulations.begin, simulation_id)
        if record is None:
            return
        with self._guard:
            self._current, self._progress = simulation_id, SimulationProgress(phase="reading")
            self._unwanted.discard(simulation_id)
        folder = self._of(simulation_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            jobs = self._write_order(record, folder)
            if not jobs:
                self._execute(simulations.fail, simulation_id, "no job of that time can be replayed")
                return
            self._execute(simulations.count_jobs, simulation_id, jobs)
            self._work(simulation_id, folder)
        except (Unwanted, ControllerStopped):
            pass
        except StoreUnavailable:
            raise  # it starts again when the store is available
        except TooManyJobs as error:
            self._execute(simulations.fail, simulation_id, str(error))
        except Exception as error:
            if self._is_unwanted(simulation_id):
                return  # it was deleted, and its folder is gone
            log.exception("simulation %s failed", simulation_id)
            self._execute(simulations.fail, simulation_id, f"{type(error).__name__}: {error}")
        finally:
            with self._guard:
                self._current = None
                self._unwanted.discard(simulation_id)
            for name in (orders.ORDER, orders.PROGRESS, orders.RESULT):
                (folder / name).unlink(missing_ok=True)

    def _work(self, simulation_id: str, folder: Path) -> None:
        (folder / orders.RESULT).unlink(missing_ok=True)
        begun = time.monotonic()
        errors = folder / "errors.txt"
        with errors.open("wb") as stderr:
            worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "corral.server.whatif.simulation_worker", str(folder), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            # Set by the server, so that it applies while the process loads its modules, too.
            os.setpriority(os.PRIO_PROCESS, worker.pid, NICENESS)
            self._follow(simulation_id, folder, worker, begun)
        finally:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        self._conclude(simulation_id, folder, worker.returncode, errors)

    def _follow(self, simulation_id: str, folder: Path, worker: subprocess.Popen[bytes], begun: float) -> None:
        """Wait until the process ends. Raises Unwanted if the simulation was cancelled."""
        notified_at = 0.0
        while worker.poll() is None:
            now = time.monotonic()
            self._read_progress(folder, now - begun)
            if now >= notified_at + NOTIFY_SECONDS:
                notified_at = now
                self._report_progress(simulation_id)
            if now - begun > self._longest_seconds:
                raise RuntimeError(f"it took longer than {self._longest_seconds:.0f} seconds")
            if self._is_unwanted(simulation_id):
                raise Unwanted
            self._worker.pause(LOOK_SECONDS)

    def _read_progress(self, folder: Path, seconds: float) -> None:
        progress = orders.read_json(folder / orders.PROGRESS)
        if progress is None:
            return
        fraction = progress["fraction"]
        with self._guard:
            self._progress = SimulationProgress(
                phase=progress["phase"],
                fraction=fraction,
                ended_jobs=progress["ended_jobs"],
                jobs=progress["jobs"],
                eta_seconds=seconds / fraction * (1 - fraction) if fraction > 0.02 else None,
            )

    def _report_progress(self, simulation_id: str) -> None:
        progress = self._progress
        self._notify(
            "simulation",
            "simulation.progress",
            {
                "id": simulation_id,
                "state": "working",
                "fraction": progress.fraction,
                "phase": progress.phase,
                "ended_jobs": progress.ended_jobs,
                "jobs": progress.jobs,
            },
        )

    def _conclude(self, simulation_id: str, folder: Path, code: int, errors: Path) -> None:
        found = orders.read_json(folder / orders.RESULT) or {}
        if code == 0 and "result" in found:
            errors.unlink(missing_ok=True)
            self._execute(simulations.finish, simulation_id, found["result"])
        elif "error" in found:
            self._execute(simulations.fail, simulation_id, found["error"])
        elif code < 0:
            self._execute(simulations.interrupt, simulation_id, f"its process was killed by signal {-code}")
        else:
            text = errors.read_text(encoding="utf-8", errors="replace").strip()[-_LAST_CHARACTERS:]
            self._execute(simulations.fail, simulation_id, f"its process ended with code {code}: {text}")

    def _is_unwanted(self, simulation_id: str) -> bool:
        with self._guard:
            return self._worker.is_stopping or simulation_id in self._unwanted

    def _execute(
        self, use_case: Callable[Concatenate[Work, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Answer:
        return self._controller.execute(use_case, *args, **kwargs).result(_ANSWER_SECONDS)

    # ---------------------------------------------------------------- past jobs

    def _write_order(self, record: SimulationRecord, folder: Path) -> int:
        cluster = self._controller.inspect(simulations.cluster_now).result(_ANSWER_SECONDS)
        rest = _Rest(lambda: self._check(record.id))
        if record.source is SimulationSource.TRACE:
            jobs: Sequence[PastJob] = list(_traced(folder / TRACE))
            left_out: Mapping[str, int] = {}
        else:
            past = Past(window=self._window(record, cluster))
            for portion in self._usage(record):
                past.add(portion)
                rest()
            known: dict[str, Job] = {}
            for portion_ids in _portions(past.job_ids):
                with self._store.read() as tx:
                    known |= tx.jobs.some(portion_ids)
                rest()
            with self._store.read() as tx:
                waiting = [job for job in tx.jobs.live() if job.state is JobState.QUEUED]
            rest()
            jobs = past.jobs(known, waiting)
            left_out = past.left_out
        with self._store.read() as tx:
            learned = [] if record.source is SimulationSource.TRACE else runs_known(tx, record.replayed_since)
        return orders.write_order(
            folder,
            since=record.replayed_since,
            until=record.until,
            cluster=cluster,
            base=record.base,
            candidate=record.candidate,
            left_out=left_out,
            jobs=jobs,
            learned=learned,
            rest=rest,
        )

    def _window(self, record: SimulationRecord, cluster: Iterable[Change]) -> Window:
        queues = frozenset(change.queue.name for change in cluster if isinstance(change, PutQueue))
        return Window(since=record.replayed_since, until=record.until, now=self._clock.now(), queues=queues)

    def _usage(self, record: SimulationRecord) -> Iterator[list[UsageRecord]]:
        last: UsageRecord | None = None
        while True:
            with self._store.read() as tx:
                portion = tx.usage.wanted(record.replayed_since, record.until, after=last, limit=PORTION)
            yield portion
            if len(portion) < PORTION:
                return
            last = portion[-1]

    def _check(self, simulation_id: str) -> None:
        if self._is_unwanted(simulation_id):
            raise Unwanted


class _Rest:
    """Pauses as long as it worked, so that threads that answer requests get the interpreter soon."""

    #: time of work without a pause
    STRETCH_SECONDS = 0.01

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._since = time.perf_counter()

    def __call__(self) -> None:
        worked = time.perf_counter() - self._since
        if worked < self.STRETCH_SECONDS:
            return
        self._check()
        time.sleep(min(worked, 1.0))
        self._since = time.perf_counter()


def _portions(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + PORTION] for start in range(0, len(ids), PORTION))


def _traced(path: Path) -> Iterator[PastJob]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield from_plain(PastJob, json.loads(line))
