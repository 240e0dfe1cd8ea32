"""Faults in everything that the controller calls: store statements and commits, files, and the engine.

Every call is a step. At one step, chosen by the test, the call fails: before it did anything, or after it did all of it
and only its answer is lost.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from sqlalchemy import event

from corral.control.ports import (
    AttemptPhase,
    AttemptStatus,
    Engine,
    EngineUnavailable,
    LaunchOrder,
    LogChunk,
    Observation,
    Workspace,
)
from corral.core.model import EndReason, Node, job_of_attempt
from corral.stores.database.store import SqlStore


class Faults:
    """Counts calls; the one with the chosen number fails, and so many after it, once for each test."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first = 0
        self._count = 0
        self.steps = 0
        self.is_armed = False
        #: what failed, for the message of a test that finds something
        self.failed: list[str] = []

    def arm(self, first: int, count: int = 1) -> None:
        self._first, self._count, self.steps, self.is_armed = first, count, 0, True

    def disarm(self) -> None:
        self.is_armed = False

    def hits(self, name: str) -> bool:
        with self._lock:
            self.steps += 1
            hit = self.is_armed and self._first <= self.steps < self._first + self._count
            if hit:
                self.failed.append(f"{name} at step {self.steps}")
            return hit


# ------------------------------------------------------------------------------------------------ the store


def break_store(store: SqlStore, faults: Faults) -> None:
    """Statements and commits of a real store may fail as the driver makes them fail."""
    database = store._database
    for engine in (database.writer, database.reader):

        @event.listens_for(engine, "do_execute")
        @event.listens_for(engine, "do_executemany")
        def execute(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
            if faults.hits(f"statement {statement.split(None, 3)[:3]}"):
                raise _driver_error(database.kind, cursor.connection)

        dialect: Any = engine.dialect
        dialect.do_commit = _broken_commit(dialect.do_commit, database.kind, faults)


def _broken_commit(commit: Callable[[Any], None], kind: str, faults: Faults) -> Callable[[Any], None]:
    def do_commit(connection: Any) -> None:
        if faults.hits("commit"):
            raise _driver_error(kind, connection.dbapi_connection)
        commit(connection)
        if faults.hits("answer of a commit"):
            raise _driver_error(kind, connection.dbapi_connection)

    return do_commit


def _driver_error(kind: str, connection: Any) -> Exception:
    if kind == "sqlite":
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        return error
    connection.close()
    return psycopg.OperationalError("server closed the connection unexpectedly")


# ------------------------------------------------------------------------------------------------ the engine


class MemoryEngine(Engine):
    """Runs attempts in memory, as engines do: a launch counts once, an end is reported until it is forgotten. It knows
    what really ran, whatever the controller believes."""

    def __init__(self, nodes: Sequence[Node], faults: Faults, clock: Any) -> None:
        self._nodes = tuple(nodes)
        self._faults = faults
        self._clock = clock
        self._lock = threading.RLock()
        self._live: dict[str, LaunchOrder] = {}
        self._ended: dict[str, AttemptStatus] = {}
        self._sink: Callable[[AttemptStatus], None] = lambda status: None
        #: everything that was ever begun, and what was wrong with that
        self.begun: list[str] = []
        self.violations: list[str] = []

    def observe(self) -> Observation:
        self._before("observe")
        with self._lock:
            running = [self._status(attempt_id, AttemptPhase.RUNNING) for attempt_id in self._live]
            found = Observation(nodes=self._nodes, attempts=(*running, *self._ended.values()))
        self._after("observe")
        return found

    def launch(self, order: LaunchOrder) -> None:
        self._before("launch")
        with self._lock:
            is_new = order.attempt_id not in self.begun
            if is_new:
                self._check(order)
                self.begun.append(order.attempt_id)
                self._live[order.attempt_id] = order
        self._after("launch")
        if is_new:
            self._sink(self._status(order.attempt_id, AttemptPhase.RUNNING))

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._before("stop")
        self.end(attempt_id, EndReason.EXIT_CODE, exit_code=143)
        self._after("stop")

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        self._before("forget")
        with self._lock:
            for attempt_id in attempt_ids:
                self._ended.pop(attempt_id, None)
        self._after("forget")

    def end(self, attempt_id: str, reason: EndReason, exit_code: int | None = 0) -> None:
        """Ends the job as if the program had ended."""
        with self._lock:
            if self._live.pop(attempt_id, None) is None:
                return
            status = self._status(attempt_id, AttemptPhase.ENDED, reason=reason, exit_code=exit_code)
            self._ended[attempt_id] = status
        self._sink(status)

    @property
    def running(self) -> list[str]:
        with self._lock:
            return sorted(self._live)

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        return LogChunk(data=b"", next_offset=0, at_end=True)

    def has(self, attempt_id: str) -> bool:
        return attempt_id in self.begun

    def withhold(self, node: str, reason: str) -> None:
        self._before("withhold")

    def release(self, node: str, *, force: bool) -> None:
        self._before("release")

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        self._sink = sink

    def close(self) -> None:
        pass

    def _check(self, order: LaunchOrder) -> None:
        """Checks that no GPU is held twice, and no job runs twice."""
        mine = _gpus(order)
        for other in self._live.values():
            if shared := mine & _gpus(other):
                self.violations.append(f"{order.attempt_id} and {other.attempt_id} both have {sorted(shared)}")
            if job_of_attempt(other.attempt_id)[0] == job_of_attempt(order.attempt_id)[0]:
                self.violations.append(f"{order.attempt_id} began while {other.attempt_id} runs")

    def _status(self, attempt_id: str, phase: AttemptPhase, **values: Any) -> AttemptStatus:
        return AttemptStatus(attempt_id=attempt_id, phase=phase, at=self._clock.now(), **values)

    def _before(self, name: str) -> None:
        if self._faults.hits(f"engine.{name}"):
            raise EngineUnavailable(f"{name}: it does not answer")
        if self._faults.hits(f"engine.{name}, with a bug"):
            raise ZeroDivisionError(f"a bug in {name}")

    def _after(self, name: str) -> None:
        if self._faults.hits(f"answer of engine.{name}"):
            raise EngineUnavailable(f"{name}: its answer was lost")
        if self._faults.hits(f"answer of engine.{name}, with a bug"):
            raise ZeroDivisionError(f"a bug after {name}")


def _gpus(order: LaunchOrder) -> set[tuple[str, int]]:
    return {(instance.node, index) for instance in order.instances for index in instance.gpu_indexes}


# ------------------------------------------------------------------------------------------------ files


class FaultyWorkspace(Workspace):
    """No files: only their failures."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def env(self, job_id: str) -> dict[str, str]:
        if self._faults.hits("workspace.env"):
            raise OSError(5, "Input/output error")
        return {"CORRAL_JOB_DIR": f"/jobs/{job_id}"}

    def prepare(self, job_id: str) -> None:
        if self._faults.hits("workspace.prepare"):
            raise OSError(5, "Input/output error")

    def put_once(self, job_id: str, name: str, value: Any) -> bool:
        if self._faults.hits("workspace.put_once"):
            raise OSError(28, "No space left on device")
        return True

    def remove(self, job_ids: Sequence[str]) -> None:
        if self._faults.hits("workspace.remove"):
            raise OSError(28, "No space left on device")
