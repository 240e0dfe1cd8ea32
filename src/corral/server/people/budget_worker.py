"""Charges running attempts regularly, so that budgets of long jobs are current, and begins new periods of budgets."""

from __future__ import annotations

from corral.control.live.controller import Controller
from corral.control.live.worker import Worker
from corral.control.people import budgets
from corral.control.ports import Clock

TICK_SECONDS = 30.0
_ANSWER_SECONDS = 30.0


class BudgetWorker:
    def __init__(self, *, controller: Controller, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._settled_at = clock.now()
        self._worker = Worker("budgets", self.step, every_seconds=TICK_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def step(self) -> None:
        now = self._clock.now()
        if self._controller.inspect(budgets.is_due, now, self._settled_at).result(_ANSWER_SECONDS):
            self._controller.execute(budgets.settle).result(_ANSWER_SECONDS)
            self._settled_at = now
