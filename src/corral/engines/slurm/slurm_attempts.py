"""The attempts that the engine knows: loaded from its files at the start, and kept until they are forgotten."""

from __future__ import annotations

import logging
import threading

from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt

log = logging.getLogger("corral.engines.slurm")


class SlurmAttempts:
    """Safe for several threads. `lock` also guards the fields of the attempts."""

    def __init__(self, layout: Layout) -> None:
        self.lock = threading.RLock()
        self._attempts: dict[str, Attempt] = {}
        for attempt_id in layout.live():
            if (attempt := slurm_attempt.load(layout, attempt_id)) is None:
                # An earlier server was preparing this attempt. The controller launches it again.
                try:
                    layout.forget(attempt_id, delete_logs=True)
                except OSError as error:
                    log.warning("the files of attempt %s cannot be removed: %s", attempt_id, error)
            else:
                self.adopt(attempt)

    def __contains__(self, attempt_id: str) -> bool:
        with self.lock:
            return attempt_id in self._attempts

    def get(self, attempt_id: str) -> Attempt | None:
        with self.lock:
            return self._attempts.get(attempt_id)

    def all(self) -> list[Attempt]:
        with self.lock:
            return list(self._attempts.values())

    def live(self) -> list[Attempt]:
        """The attempts that are not over."""
        return [attempt for attempt in self.all() if not attempt.is_over]

    def add(self, attempt: Attempt) -> None:
        with self.lock:
            self._attempts[attempt.id] = attempt

    def adopt(self, attempt: Attempt) -> None:
        """Adds an attempt of an earlier server: `observe` reports it, and not the watcher."""
        if (status := attempt.status()) is not None:
            attempt.reported = status.phase
        self.add(attempt)

    def remove(self, attempt_id: str) -> None:
        with self.lock:
            del self._attempts[attempt_id]
