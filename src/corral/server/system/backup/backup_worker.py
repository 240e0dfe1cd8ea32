"""Makes a backup at intervals, and removes old ones. A failure is shown with the parts of the platform."""

from __future__ import annotations

import logging

from corral.backup.errors import BackupError
from corral.backup.manifest import list_ids, load
from corral.control.live.worker import Worker
from corral.control.ports import Clock
from corral.server.settings.settings import Settings
from corral.server.system.backup.backup_places import open_archive
from corral.server.system.backup.backups import make_backup

log = logging.getLogger("corral.server.system.backup.backup_worker")

#: A server that starts has more urgent work first.
FIRST_SECONDS = 120.0
#: Between two looks at the archive.
LONGEST_WAIT_SECONDS = 3600.0


class BackupWorker:
    """The time of the last backup is read from the archive, so that a restart of the server delays none."""

    def __init__(self, settings: Settings, clock: Clock, *, first_after: float = FIRST_SECONDS) -> None:
        self._settings = settings
        self._clock = clock
        self._worker = Worker("backup", self.run_if_due, every_seconds=LONGEST_WAIT_SECONDS, first_after=first_after)

    def start(self) -> None:
        if self._settings.backup.to and self._settings.backup.every_hours is not None:
            self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def run_if_due(self) -> float:
        """One round; returns the seconds until the next one."""
        wait = self._seconds_to_next()
        if wait > 0:
            return min(wait, LONGEST_WAIT_SECONDS)
        result = make_backup(self._settings)
        made = result.manifest
        log.info(
            "backup %s: %d tables, %d files, %d new bytes, in %.1f s; %d old ones removed",
            made.id,
            len(made.tables),
            made.files,
            made.written,
            made.seconds,
            len(result.removed),
        )
        return min(max(0.0, self._seconds_to_next()), LONGEST_WAIT_SECONDS)

    def _seconds_to_next(self) -> float:
        every = self._settings.backup.every_hours
        assert every is not None
        blobs = open_archive(self._settings.backup, make=True)
        ids = list_ids(blobs)
        if not ids:
            return 0.0
        try:
            last = load(blobs, ids[-1]).at
        except BackupError as error:
            log.error("the last backup cannot be read, and a new one is made: %s", error)
            return 0.0
        return last + every * 3600 - self._clock.now()
