"""Continues an approved defragmentation, and starts one each day where the configuration sets a time."""

from __future__ import annotations

from datetime import datetime, timedelta

from corral.control.errors import Refusal
from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import SYSTEM
from corral.control.live.worker import Worker
from corral.control.ports import Clock, Store
from corral.control.reports.analysis import preview_defragmentation, snapshot_of
from corral.control.scheduling.moves import defragmentation
from corral.core.reports.analysis.model import AnalysisRules

EVERY_SECONDS = 2.0
#: A scheduled defragmentation that was missed by more than this, because no server ran, waits for the next day.
LATE_SECONDS = 3600.0
_ANSWER_SECONDS = 30.0


class DefragmentationWorker:
    """`at` is a time of day such as 03:00 in the server's time zone; None: only on request."""

    def __init__(
        self, *, controller: Controller, store: Store, clock: Clock, rules: AnalysisRules, at: str | None
    ) -> None:
        self._controller = controller
        self._store = store
        self._clock = clock
        self._rules = rules
        self._at = at
        self._started_at = clock.now()
        self._worker = Worker("defragmentation", self.step, every_seconds=EVERY_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def step(self) -> None:
        with self._store.read() as tx:
            run = defragmentation.latest(tx)
        if run is not None and not run.is_over:
            self._controller.execute(defragmentation.go_on).result(_ANSWER_SECONDS)
        elif self._is_due(0.0 if run is None else run.started_at):
            self._begin()

    def _is_due(self, last: float) -> bool:
        if self._at is None:
            return False
        now = self._clock.now()
        due = _latest_time(self._at, now)
        return max(last, self._started_at) < due and now - due < LATE_SECONDS

    def _begin(self) -> None:
        now = self._clock.now()
        # Once a day, also if there is nothing to move.
        self._started_at = now
        snapshot = self._controller.inspect(snapshot_of, now).result(_ANSWER_SECONDS)
        plan = preview_defragmentation(snapshot, now, self._rules)
        if not plan.moves:
            return
        try:
            # The configuration approves the moves of jobs that have saved.
            self._controller.execute(defragmentation.start, SYSTEM, plan).result(_ANSWER_SECONDS)
        except Refusal:
            return  # none of the jobs has saved: nothing is moved without an operator


def _latest_time(at: str, now: float) -> float:
    """The last moment at which the clock showed that time."""
    hour, minute = map(int, at.split(":"))
    today = datetime.fromtimestamp(now).astimezone().replace(hour=hour, minute=minute, second=0, microsecond=0)
    found = today if today.timestamp() <= now else today - timedelta(days=1)
    return found.timestamp()
