"""The attempts with Slurm jobs, loaded from the engine's files at the start."""

from __future__ import annotations

import logging

from corral.engines.attempt_table import AttemptTable
from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt

log = logging.getLogger("corral.engines.slurm")


class SlurmAttempts(AttemptTable[Attempt]):
    def __init__(self, layout: Layout) -> None:
        super().__init__()
        for attempt_id in layout.live():
            if (attempt := slurm_attempt.load(layout, attempt_id)) is None:
                # An earlier server was preparing this attempt. The controller launches it again.
                try:
                    layout.forget(attempt_id, delete_logs=True)
                except OSError as error:
                    log.warning("the files of attempt %s cannot be removed: %s", attempt_id, error)
            else:
                self.adopt(attempt)

    def live(self) -> list[Attempt]:
        """The attempts that are not over."""
        return [attempt for attempt in self.all() if not attempt.is_over]

    def adopt(self, attempt: Attempt) -> None:
        """Adds an attempt of an earlier server: `observe` reports it, and not the watcher."""
        if (status := attempt.status()) is not None:
            attempt.reported = status.phase
        self.add(attempt)
