"""Goes on with drains and maintenance windows: nodes are drained, emptied and brought back when their time comes."""

from __future__ import annotations

from corral.control.fleet.draining import maintenance
from corral.control.live.controller import Controller
from corral.control.live.worker import Worker
from corral.control.ports import Clock

EVERY_SECONDS = 1.0
_ANSWER_SECONDS = 30.0


class DrainWorker:
    def __init__(self, *, controller: Controller, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._worker = Worker("drains", self.step, every_seconds=EVERY_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def step(self) -> None:
        if self._controller.inspect(maintenance.is_due, self._clock.now()).result(_ANSWER_SECONDS):
            self._controller.execute(maintenance.go_on).result(_ANSWER_SECONDS)
