"""Evaluates active checks of GPUs when their jobs have ended, and begins scheduled ones in idle gaps."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.worker import Worker
from corral.control.monitoring import gpu_checks
from corral.control.monitoring.gpu_checks import CheckOutcome, CheckRules
from corral.control.ports import Clock, EngineUnavailable, LogSource, SelfTest, Store, StoreUnavailable
from corral.control.records import CheckRecord
from corral.core.model import attempt_id
from corral.core.monitoring.checks import Check, Measurement, Problem

log = logging.getLogger("corral.server.monitoring.check_worker")

TICK_SECONDS = 2.0
SCHEDULE_SECONDS = 30.0
_ANSWER_SECONDS = 30.0
#: The result is the last line of the output.
_TAIL_BYTES = 64 << 10
_MARK = "corral-check: "
#: A check whose result cannot be evaluated this often in a row has none.
_MAX_FAILURES = 3
_DAY = 86_400.0
#: How long the results of checks are kept; the latest of each GPU stays.
_KEPT_SECONDS = 365 * _DAY


class CheckWorker:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        rules: CheckRules,
        self_test: SelfTest,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._store = store
        self._rules = rules
        #: the self-test of virtual GPUs: a drill's fault fails the check, too
        self._self_test = self_test
        self._clock = clock
        self._scheduled_at = float("-inf")
        self._pruned_at = float("-inf")
        #: failures in a row, by job
        self._failures: dict[str, int] = {}
        self._worker = Worker("GPU checks", self.step, every_seconds=TICK_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def step(self) -> None:
        try:
            for record in self._open():
                self._finish_safely(record)
            self._begin_scheduled()
        except ControllerStopped:
            return

    def _open(self) -> list[CheckRecord]:
        with self._store.read() as tx:
            return tx.health.open_checks()

    def _begin_scheduled(self) -> None:
        now = self._clock.monotonic()
        if self._rules.every_seconds is not None and now - self._scheduled_at >= SCHEDULE_SECONDS:
            self._scheduled_at = now
            self._controller.execute(gpu_checks.begin_scheduled, self._rules).result(_ANSWER_SECONDS)
        if now - self._pruned_at >= _DAY:
            self._pruned_at = now
            before = self._clock.now() - _KEPT_SECONDS
            self._controller.execute(lambda work: work.tx.health.prune_checks(before)).result(_ANSWER_SECONDS)

    def _finish_safely(self, record: CheckRecord) -> None:
        """A check that cannot be evaluated stops no other one."""
        try:
            self._finish(record)
        except (ControllerStopped, StoreUnavailable, TimeoutError):
            raise
        except Exception:
            failures = self._failures[record.job_id] = self._failures.get(record.job_id, 0) + 1
            log.exception("check %s of %s cannot be evaluated", record.job_id, record.gpu_id)
            if failures < _MAX_FAILURES:
                return
            self._controller.execute(gpu_checks.finish, record.job_id, None, self._rules).result(_ANSWER_SECONDS)
        self._failures.pop(record.job_id, None)

    def _finish(self, record: CheckRecord) -> None:
        with self._store.read() as tx:
            found = tx.jobs.get(record.job_id)
            attempts = tx.attempts.of_job(record.job_id) if found is not None else []
        if found is not None and not found.job.state.is_ended:
            return
        outcome: CheckOutcome | None = None
        if found is not None and attempts:
            cluster = self._controller.inspect(lambda state: _cluster_of(state, record.node)).result(_ANSWER_SECONDS)
            engine = self._controller.engines.get(cluster)
            try:
                outcome = None if engine is None else read_outcome(engine, attempt_id(record.job_id, found.job.attempt))
            except EngineUnavailable:
                return  # again in the next round
        if outcome is not None and record.is_simulated and (problem := self._self_test.run(record.gpu_id)) is not None:
            drilled = Problem(check=Check.COMPUTE, text=problem, is_fatal=True)
            outcome = CheckOutcome(
                measurements=outcome.measurements, problems=(*outcome.problems, drilled), skipped=outcome.skipped
            )
        self._controller.execute(gpu_checks.finish, record.job_id, outcome, self._rules).result(_ANSWER_SECONDS)


def _cluster_of(state: Any, node_id: str) -> str:
    node = state.snapshot.nodes.get(node_id)
    return "" if node is None else node.cluster


def read_outcome(engine: LogSource, attempt: str) -> CheckOutcome | None:
    """The result at the end of the output; None if there is none."""
    text = engine.logs(attempt, 0, -_TAIL_BYTES, _TAIL_BYTES).data.decode(errors="replace")
    lines = [line for line in text.splitlines() if line.startswith(_MARK)]
    if not lines:
        return None
    try:
        return _outcome_of(json.loads(lines[-1][len(_MARK) :]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        log.warning("the result of check %s cannot be read: %s", attempt, error)
        return None


def _outcome_of(body: Mapping[str, Any]) -> CheckOutcome:
    return CheckOutcome(
        measurements=tuple(
            Measurement(check=Check(item["check"]), metric=str(item["metric"])[:100], value=_number(item["value"]))
            for item in body["measurements"]
        ),
        problems=tuple(
            Problem(check=Check(item["check"]), text=str(item["text"])[:500], is_fatal=bool(item["is_fatal"]))
            for item in body["problems"]
        ),
        skipped={Check(item["check"]): str(item["reason"])[:500] for item in body["skipped"]},
    )


def _number(value: Any) -> float:
    """Raises ValueError for what cannot be compared or stored."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no measurement")
    return number
