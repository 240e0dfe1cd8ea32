"""Goes on with what waits for jobs to end: nodes are drained, emptied and brought back when their time comes, and GPUs
move to other pools."""

from __future__ import annotations

from corral.control.fleet import pool_moves
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
        if self._controller.inspect(pool_moves.is_due).result(_ANSWER_SECONDS):
            self._controller.execute(pool_moves.go_on).result(_ANSWER_SECONDS)
