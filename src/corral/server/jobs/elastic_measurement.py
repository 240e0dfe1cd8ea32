"""Measures how well elastic jobs use their GPUs, for the decision whether they grow or shrink.

The mean of all GPUs of an attempt over a window is handed over when it says something new. An attempt that has not run
for a whole window, or was not read for a while, is not judged: missing readings prove nothing.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.live.worker import log_failure
from corral.control.ports import Round
from corral.control.scheduling import elastic_jobs
from corral.core.model import JobState
from corral.core.snapshot.installation import ScalingRules

log = logging.getLogger("corral.server.jobs.elastic_measurement")

#: Readings that are further apart than so many intervals leave a gap.
LONGEST_GAP_INTERVALS = 3
_ASK_SECONDS = 10.0


class UseWatch:
    """Implements `corral.control.ports.ReadingSink`. Does nothing while there are no elastic jobs."""

    def __init__(
        self, controller: Controller, rules: ScalingRules, *, window_seconds: float, interval_seconds: float
    ) -> None:
        self._controller = controller
        self._rules = rules
        self._window = window_seconds
        self._longest_gap = LONGEST_GAP_INTERVALS * interval_seconds
        #: by attempt: when it was read, and the mean of its GPUs; the oldest is from before the window
        self._recent: dict[str, deque[tuple[float, float]]] = {}
        #: what was last handed over
        self._told: dict[str, float] = {}

    def take(self, taken: Round) -> None:
        if not self._rules.enabled:
            return
        try:
            elastic = self._controller.inspect(_elastic_attempts).result(_ASK_SECONDS)
        except (ControllerStopped, TimeoutError):
            return
        self._gather(taken, elastic)
        news = {attempt: use for attempt in self._recent if (use := self._use(attempt)) is not None}
        news = {attempt: use for attempt, use in news.items() if self._is_news(attempt, use)}
        if news:
            self._told.update(news)
            self._controller.execute(elastic_jobs.note_use, news).add_done_callback(
                log_failure(log, "the measured use of elastic jobs could not be stored")
            )

    def _gather(self, taken: Round, elastic: frozenset[str]) -> None:
        for gone in self._recent.keys() - elastic:
            del self._recent[gone]
            self._told.pop(gone, None)
        if not elastic:
            return
        seen: defaultdict[str, list[float]] = defaultdict(list)
        for reading in taken.gpus:
            if reading.utilization is None:
                continue
            for holder in taken.holders.get(reading.gpu_id, ()):
                if holder.attempt_id in elastic and holder.running_since is not None:
                    seen[holder.attempt_id].append(reading.utilization)
        for attempt, uses in seen.items():
            self._add(attempt, taken.at, sum(uses) / len(uses))

    def _add(self, attempt: str, at: float, use: float) -> None:
        recent = self._recent.setdefault(attempt, deque())
        if recent and at - recent[-1][0] > self._longest_gap:
            recent.clear()
        recent.append((at, use))
        while len(recent) > 1 and recent[1][0] <= at - self._window:
            recent.popleft()

    def _use(self, attempt: str) -> float | None:
        """The mean over the window; None while that is not known."""
        recent = self._recent[attempt]
        if recent[-1][0] - recent[0][0] < self._window:
            return None
        return sum(use for _, use in recent) / len(recent)

    def _is_news(self, attempt: str, use: float) -> bool:
        told = self._told.get(attempt)
        return told is None or elastic_jobs.is_news(told, use, (self._rules.up, self._rules.down))


def _elastic_attempts(state: State) -> frozenset[str]:
    jobs = (state.snapshot.jobs[job_id] for job_id in state.snapshot.elastic)
    return frozenset(job.attempt_id for job in jobs if job.state is JobState.RUNNING)
