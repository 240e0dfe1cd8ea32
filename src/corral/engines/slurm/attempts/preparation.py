"""The preparation of storage before an attempt is submitted: versions of datasets are checked out, and buckets fetched,
onto the file system that all nodes share.

A few at a time, on threads of their own, while other attempts are launched and stopped. The same process as on the
local engine does the work. Nothing is stored: after a crash the controller finds the attempt missing and launches it
again, and a checkout that was complete is reused.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corral.control.live.worker import Worker
from corral.control.ports import AttemptPhase, AttemptStatus, LaunchOrder
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.storage import with_sources
from corral.engines.storage.job_mounts import dataset_lines
from corral.engines.storage.storage_specs import StoragePlaces, preparer_spec

#: More would only make all of them slower.
AT_ONCE = 4


@dataclass(kw_only=True, slots=True)
class Prepared:
    """The result: the directory of each mount by its index; or the problem."""

    sources: Mapping[int, str] = field(default_factory=dict)
    problem: str = ""
    #: lines for the job's log
    log_lines: list[str] = field(default_factory=list)


@dataclass(kw_only=True, slots=True, eq=False)
class _Preparation:
    order: LaunchOrder
    specs: Sequence[StorageSpec]
    begun_at: float
    message: str = "its storage is prepared"
    process: subprocess.Popen[bytes] | None = None


class Preparations:
    """`done` is called with every order whose storage is ready or failed, except those that were dropped. Safe for use
    by several threads."""

    def __init__(
        self,
        name: str,
        layout: Layout,
        places: StoragePlaces | None,
        environ: Mapping[str, str],
        done: Callable[[LaunchOrder, Prepared], None],
    ) -> None:
        # Nothing can be mounted for other machines: buckets are fetched.
        self._places = replace(places, without_fuse=True) if places is not None else None
        self._layout = layout
        self._environ = environ
        self._done = done
        self._lock = threading.Lock()
        self._preparations: dict[str, _Preparation] = {}
        self._waiting: queue.SimpleQueue[_Preparation | None] = queue.SimpleQueue()
        # Daemon threads: a server that stops does not wait for gigabytes.
        self._is_started = False
        self._workers = [Worker(f"prepare-{name}-{number}", self._step, every_seconds=0.0) for number in range(AT_ONCE)]

    def begin(self, order: LaunchOrder, specs: Sequence[StorageSpec]) -> None:
        """Idempotent by attempt."""
        with self._lock:
            if order.attempt_id in self._preparations:
                return
            # Before anything is used: a clean-up of unused checkouts must find this attempt.
            self._layout.mark_live(order.attempt_id)
            preparation = _Preparation(order=order, specs=specs, begun_at=time.time())
            self._preparations[order.attempt_id] = preparation
            if not self._is_started:
                self._is_started = True
                for worker in self._workers:
                    worker.start()
        self._waiting.put(preparation)

    def drop(self, attempt_id: str) -> LaunchOrder | None:
        """The attempt is not wanted any more. Returns its order, or None if nothing is prepared for it."""
        with self._lock:
            preparation = self._preparations.pop(attempt_id, None)
            if preparation is None:
                return None
            _kill(preparation.process)
        return preparation.order

    def has(self, attempt_id: str) -> bool:
        with self._lock:
            return attempt_id in self._preparations

    def orders(self) -> list[LaunchOrder]:
        with self._lock:
            return [preparation.order for preparation in self._preparations.values()]

    def statuses(self) -> list[AttemptStatus]:
        with self._lock:
            return [
                AttemptStatus(
                    attempt_id=attempt_id,
                    phase=AttemptPhase.STARTING,
                    at=preparation.begun_at,
                    message=preparation.message,
                )
                for attempt_id, preparation in self._preparations.items()
            ]

    def close(self) -> None:
        """Preparations in progress are left to the next server."""
        with self._lock:
            left, self._preparations = list(self._preparations.values()), {}
            for preparation in left:
                _kill(preparation.process)
        for worker in self._workers:
            worker.ask_to_stop()
            self._waiting.put(None)

    # -------------------------------------------------------------------------------------------- inside

    def _step(self) -> None:
        if (preparation := self._waiting.get()) is None:
            return
        try:
            prepared = self._prepared(preparation)
            with self._lock:
                is_wanted = self._preparations.get(preparation.order.attempt_id) is preparation
            if is_wanted:
                # It stays listed here until the engine has it: an observation in between must find it.
                self._done(preparation.order, prepared)
        finally:
            # Also after a failure: the controller finds the attempt missing and launches it again.
            with self._lock:
                if self._preparations.get(preparation.order.attempt_id) is preparation:
                    del self._preparations[preparation.order.attempt_id]

    def _prepared(self, preparation: _Preparation) -> Prepared:
        try:
            process = self._start(preparation)
        except OSError as error:
            return Prepared(problem=f"storage cannot be prepared: {error}")
        if process is None:
            return Prepared(problem="it is not wanted any more")
        prepared = Prepared()
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):  # it reports itself why it ended
                process.stdin.write(json.dumps(self._orders(preparation)).encode())
                process.stdin.close()
            self._follow(preparation, process.stdout, prepared)
        missing = [
            spec["name"]
            for place, spec in enumerate(preparation.specs)
            if not spec["source"] and place not in prepared.sources
        ]
        if missing and not prepared.problem:
            code = process.returncode
            prepared.problem = f"the process that prepares {', '.join(missing)} ended with code {code}"
        if not prepared.problem:
            found = with_sources(preparation.specs, prepared.sources)
            prepared.log_lines += dataset_lines(found, {spec["path"]: spec["source"] for spec in found})
        return prepared

    def _start(self, preparation: _Preparation) -> subprocess.Popen[bytes] | None:
        assert self._places is not None, "without storage nothing is mounted"
        spec = preparer_spec(preparation.specs, self._places, self._environ)
        assert spec is not None, "something takes long"
        with self._lock:
            if self._preparations.get(preparation.order.attempt_id) is not preparation:
                return None
            preparation.process = subprocess.Popen(
                spec["command"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,  # the server's log
                env=spec["env"],
                cwd="/",
                start_new_session=True,
            )
            return preparation.process

    def _orders(self, preparation: _Preparation) -> dict[str, Any]:
        """They hold secrets: they go through a pipe, never through a command line or a file."""
        assert self._places is not None
        attempt_id = preparation.order.attempt_id
        spec = preparer_spec(preparation.specs, self._places, self._environ)
        assert spec is not None
        return {
            "attempt_id": attempt_id,
            "rank_dir": self._layout.order(attempt_id),
            "scratch": self._layout.fetched(attempt_id),
            "places": spec["places"],
            "storage": preparation.specs,
        }

    def _follow(self, preparation: _Preparation, lines: Iterable[bytes], prepared: Prepared) -> None:
        for line in lines:
            report = _parsed(line)
            if "say" in report:
                prepared.log_lines.append(str(report["say"]))
            if "progress" in report:
                preparation.message = str(report["progress"])
            if "sources" in report:
                prepared.sources = {int(place): str(source) for place, source in report["sources"].items()}
            prepared.problem = str(report.get("error", "")) or prepared.problem


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        body = json.loads(line)
    except ValueError:
        return {"say": line.decode(errors="replace").rstrip("\n")}
    return body if isinstance(body, dict) else {}


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
