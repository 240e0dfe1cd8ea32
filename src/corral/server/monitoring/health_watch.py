"""Watches what is read: whether GPUs can be trusted, and whether jobs use what they hold.

Both watchers keep in memory what the judgement of the next reading needs, and hand over only what changes. What is
decided lies with the controller: it is asked for once per round, so that an operator's word counts at once.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.live.worker import log_failure
from corral.control.monitoring import gpu_health, idle_jobs
from corral.control.monitoring.gpu_health import HealthChange, XidNote
from corral.control.monitoring.idle_jobs import Sighting
from corral.control.ports import GpuReading, Holder, Round
from corral.core.model import job_of_attempt
from corral.core.monitoring.health.judging import NO_MEMORY, judge
from corral.core.monitoring.health.model import Condition, HealthRules, Memory
from corral.core.monitoring.health.signs.idle import NOTHING_DONE
from corral.core.monitoring.idleness import NOTHING_SEEN, IdleRules, Recent, activity, mean_use, observe

log = logging.getLogger("corral.server.monitoring.health_watch")

#: An answer that takes longer means that the controller has other troubles; the round is let go.
ASK_SECONDS = 10.0
#: The same error of the driver on the same GPU is told at most this often.
XID_SECONDS = 60.0
#: How often a window is looked at; its use is gathered from every reading.
REVIEW_SECONDS = 5.0


class HealthWatch:
    """Implements `corral.control.ports.ReadingSink`."""

    def __init__(self, controller: Controller, rules: HealthRules) -> None:
        self._controller = controller
        self._rules = rules
        self._memory: dict[str, Memory] = {}
        #: GPUs that are known to be healthy look all alike until something is found
        self._healthy: dict[str, Condition] = {}
        #: attempts that have been seen working on some GPU
        self._working: set[str] = set()
        self._told_xids: dict[tuple[str, int], float] = {}
        #: the last judgement that was handed over
        self._pending: Future[Any] | None = None

    def take(self, taken: Round) -> None:
        # The next judgement stands on the one before: unless that is written, it would look like somebody's reset.
        if self._pending is not None and wait([self._pending], ASK_SECONDS).not_done:
            return
        known = _asked(self._controller, _known)
        if known is None:
            return
        gpu_ids, conditions = known
        self._notice_work(taken)
        changes = []
        for reading in taken.gpus:
            if reading.gpu_id not in gpu_ids:
                continue
            change = self._judged(reading, conditions, taken.holders.get(reading.gpu_id, ()))
            if change is not None:
                changes.append(change)
        if changes:
            self._pending = _hand_over(self._controller, gpu_health.apply, changes)
        notes = list(self._new_xids(taken))
        if notes:
            _hand_over(self._controller, gpu_health.note_xids, notes)

    def _judged(
        self, reading: GpuReading, conditions: Mapping[str, Condition], holders: Sequence[Holder]
    ) -> HealthChange | None:
        gpu_id = reading.gpu_id
        before = conditions.get(gpu_id)
        if before is None:
            before = self._healthy.get(gpu_id)
            if before is None:
                before = self._healthy[gpu_id] = Condition(gpu_id=gpu_id)
        memory = self._memory.get(gpu_id, NO_MEMORY)
        judged = judge(before, reading, holders, self._rules, memory, self._working)
        self._memory[gpu_id] = judged.memory
        return None if judged.condition is before else HealthChange(before=before, after=judged.condition)

    def _notice_work(self, taken: Round) -> None:
        for reading in taken.gpus:
            holders = taken.holders.get(reading.gpu_id, ())
            if len(holders) == 1 and reading.utilization is not None and reading.utilization >= NOTHING_DONE:
                self._working.add(holders[0].attempt_id)
        if len(self._working) > 2 * len(taken.holders) + 100:
            self._working &= {holder.attempt_id for holders in taken.holders.values() for holder in holders}

    def _new_xids(self, taken: Round) -> Iterable[XidNote]:
        for reading in taken.gpus:
            for code in dict.fromkeys(reading.xids):
                told_at = self._told_xids.get((reading.gpu_id, code), 0.0)
                if abs(reading.at - told_at) >= XID_SECONDS:
                    self._told_xids[reading.gpu_id, code] = reading.at
                    jobs = tuple(holder.job_id for holder in taken.holders.get(reading.gpu_id, ()))
                    yield XidNote(gpu_id=reading.gpu_id, code=code, at=reading.at, job_ids=jobs)


class IdleWatch:
    """Implements `corral.control.ports.ReadingSink`. Does nothing unless idle jobs are to be found."""

    def __init__(self, controller: Controller, rules: IdleRules) -> None:
        self._controller = controller
        self._rules = rules
        #: by attempt and GPU
        self._recent: dict[str, dict[str, Recent]] = {}
        self._reviewed_at = 0.0

    def take(self, taken: Round) -> None:
        if not self._rules.enabled:
            return
        self._gather(taken)
        # Both ways, for clocks that are set back.
        if abs(taken.at - self._reviewed_at) >= min(REVIEW_SECONDS, self._rules.bucket_seconds):
            self._reviewed_at = taken.at
            self._review(taken)

    def _gather(self, taken: Round) -> None:
        for reading in taken.gpus:
            if reading.utilization is None:
                continue
            for holder in taken.holders.get(reading.gpu_id, ()):
                if holder.running_since is not None and self._rules.counts(holder.kind):
                    gpus = self._recent.setdefault(holder.attempt_id, {})
                    before = gpus.get(reading.gpu_id, NOTHING_SEEN)
                    gpus[reading.gpu_id] = observe(before, reading.at, reading.utilization, self._rules)

    def _review(self, taken: Round) -> None:
        held: defaultdict[str, list[str]] = defaultdict(list)
        for gpu_id, holders in taken.holders.items():
            for holder in holders:
                held[holder.attempt_id].append(gpu_id)
        for attempt in self._recent.keys() - held.keys():
            del self._recent[attempt]
        sightings = [self._sighting(attempt, held[attempt], taken.at) for attempt in self._recent]
        due = _asked(self._controller, _due, taken.at, sightings)
        if due is not None:
            _hand_over(self._controller, idle_jobs.review, due, self._rules)

    def _sighting(self, attempt_id: str, gpu_ids: Sequence[str], at: float) -> Sighting:
        known = self._recent[attempt_id]
        gpus = [known.get(gpu_id, NOTHING_SEEN) for gpu_id in gpu_ids]
        job_id, number = job_of_attempt(attempt_id)
        return Sighting(
            job_id=job_id,
            attempt=number,
            activity=activity(gpus, at, self._rules),
            utilization=mean_use(gpus),
        )


def _known(state: State) -> tuple[frozenset[str], dict[str, Condition]]:
    """The GPUs of the fleet (readings may come of others, too), and the conditions of those that have one."""
    return frozenset(state.snapshot.fleet.gpu_home), dict(state.conditions)


def _due(state: State, now: float, sightings: Sequence[Sighting]) -> list[Sighting] | None:
    """The sightings that something follows from; None if nothing at all is to be done."""
    due = [sighting for sighting in sightings if idle_jobs.is_due(state, now, sighting)]
    return due if due or idle_jobs.outlived(state) else None


def _asked(controller: Controller, question: Callable[..., Any], *args: Any) -> Any:
    """The controller's answer, or None while it cannot give one."""
    try:
        return controller.inspect(question, *args).result(ASK_SECONDS)
    except ControllerStopped:
        return None
    except TimeoutError:
        log.warning("the controller was too busy to say how the GPUs are; this round is let go")
        return None


def _hand_over(controller: Controller, use_case: Callable[..., None], *args: Any) -> Future[None]:
    answer = controller.execute(use_case, *args)
    answer.add_done_callback(log_failure(log, "observations of GPU health could not be stored", with_traceback=True))
    return answer
