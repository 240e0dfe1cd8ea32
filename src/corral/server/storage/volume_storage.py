"""Access to files of volumes from outside of jobs: permissions, places and remaining space.

The storages (`stores/storage/volume_directory.py`, `stores/storage/volume_bucket.py`) and `stores/storage/uploads.py`
read and write the files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from corral.control.errors import Forbidden, InUse, OverLimit, WrongState
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction, VolumeDriver, VolumeUnavailable
from corral.control.ports.volume_files import FileRefused, FilesUnavailable, VolumeFiles
from corral.control.records import VolumeRecord, VolumeState
from corral.control.storage import volumes
from corral.core.quantities import format_bytes
from corral.core.storage.volumes import VolumeType
from corral.objects.access import NotReachable, ObjectAccess
from corral.server.auth.secret_box import SecretBox
from corral.server.storage.mount_orders import access_to_volume
from corral.server.system.disk_guard import DiskGuard
from corral.stores.storage.uploads import STALE_SECONDS, Uploads
from corral.stores.storage.volume_bucket import BucketFiles
from corral.stores.storage.volume_directory import DirectoryFiles

#: Buckets that are kept open: authentication takes longer than most requests.
_OPEN_BUCKETS = 16
_SWEEP_SECONDS = 3600.0
_NOTIFY_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """A volume, and the storage of its files."""

    volume: VolumeRecord
    files: VolumeFiles
    uploads: Uploads


@dataclass(kw_only=True)
class _Tally:
    """Bytes written to a volume since its last measurement, and bytes that uploads have announced."""

    measured_at: float | None
    landed_bytes: int = 0
    #: by upload: bytes that have not arrived yet
    announced: dict[str, int] = field(default_factory=dict)


class VolumeRoom:
    """Keeps uploads within a volume's size between two measurements. Kept in memory only: after a restart the next
    measurement counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def announce(self, volume: VolumeRecord, upload: str, missing_bytes: int) -> None:
        """Reserve space for an upload. Raises OverLimit if there is not enough."""
        if not volume.size_bytes:
            return
        with self._lock:
            tally = self._tally(volume)
            others = sum(size for upload_id, size in tally.announced.items() if upload_id != upload)
            used = (volume.used_bytes or 0) + tally.landed_bytes + others
            if used + missing_bytes > volume.size_bytes:
                raise OverLimit(
                    f"volume {volume.name} may hold {format_bytes(volume.size_bytes)}: {format_bytes(used)} are used "
                    f"or on their way, and this needs {format_bytes(missing_bytes)}",
                    field="size",
                    asked=missing_bytes,
                    held=used,
                    limit=volume.size_bytes,
                )
            tally.announced[upload] = missing_bytes

    def land(self, volume: VolumeRecord, upload: str, size_bytes: int) -> None:
        """Records that this number of bytes of an upload has arrived."""
        with self._lock:
            tally = self._tally(volume)
            tally.landed_bytes += size_bytes
            if upload in tally.announced:
                tally.announced[upload] = max(0, tally.announced[upload] - size_bytes)

    def end(self, volume: VolumeRecord, upload: str) -> None:
        """The upload is complete or was cancelled."""
        with self._lock:
            self._tally(volume).announced.pop(upload, None)

    def _tally(self, volume: VolumeRecord) -> _Tally:
        tally = self._tallies.setdefault(volume.id, _Tally(measured_at=volume.measured_at))
        if tally.measured_at != volume.measured_at:
            tally.measured_at, tally.landed_bytes = volume.measured_at, 0
        return tally


class VolumeStorage:
    """`driver` knows the directories of volumes; uploads to buckets are staged in the server's home."""

    def __init__(
        self,
        *,
        driver: VolumeDriver,
        box: SecretBox,
        staging: Path,
        now: Callable[[], float],
        guard: DiskGuard,
        changed: Callable[[str], None] = lambda volume_id: None,
    ) -> None:
        """`changed` is called with a volume whose files have changed."""
        self._driver = driver
        self._guard = guard
        self._changed = changed
        self._box = box
        self._staging = staging
        self._now = now
        self._lock = threading.Lock()
        self._buckets: dict[ObjectAccess, BucketFiles] = {}
        self._swept: dict[str, float] = {}
        self._unreported: set[str] = set()
        self.room = VolumeRoom()

    def find(self, tables: Transaction, caller: Caller, word: str, *, writes: bool) -> Reached:
        """The named volume, if the caller may read or write it."""
        volume = volumes.find_volume(tables, caller, word)
        if writes and not volumes.may_write(tables, caller, volume):
            why = "it is read-only" if volume.read_only else f"it is {volume.owner}'s, who shares it to be read"
            raise Forbidden(f"you may not write to volume {volume.name}: {why}", field="volume")
        if volume.state is not VolumeState.READY:
            raise WrongState(f"volume {volume.name} is {volume.state.value}", state=volume.state.value)
        if volume.type is VolumeType.OBJECT:
            return self._bucket(tables, volume)
        return self._directory(volume)

    def announce(self, reached: Reached, upload: str, missing_bytes: int) -> None:
        """Reserve space for an upload. Raises OverLimit if there is not enough, in the volume or in the staging
        directory."""
        is_staged = reached.volume.type is VolumeType.OBJECT
        place = self._staging if is_staged else self._driver.path_of(reached.volume.id)
        self._guard.check_room(missing_bytes, place)
        self.room.announce(reached.volume, upload, missing_bytes)

    def report_change(self, volume: VolumeRecord) -> None:
        """Report a change once for many files: measuring a volume may take long."""
        with self._lock:
            if volume.id in self._unreported or volume.type is VolumeType.OBJECT:
                return
            self._unreported.add(volume.id)
        timer = threading.Timer(_NOTIFY_SECONDS, self._notify_changed, [volume.id])
        timer.daemon = True
        timer.start()

    def _notify_changed(self, volume_id: str) -> None:
        with self._lock:
            self._unreported.discard(volume_id)
        self._changed(volume_id)

    def _bucket(self, tables: Transaction, volume: VolumeRecord) -> Reached:
        try:
            access = access_to_volume(tables, volume, self._box)
        except NotReachable as error:
            raise FilesUnavailable(str(error)) from error
        with self._lock:
            files = self._buckets.pop(access, None) or BucketFiles(access)
            self._buckets[access] = files
            while len(self._buckets) > _OPEN_BUCKETS:
                self._buckets.pop(next(iter(self._buckets)))
        staging = self._staging / volume.id
        staging.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Reached(volume=volume, files=files, uploads=self._uploads(str(staging)))

    def _directory(self, volume: VolumeRecord) -> Reached:
        try:
            root = self._driver.path_of(volume.id)
        except VolumeUnavailable as error:
            raise FilesUnavailable(str(error)) from error
        if root is None:
            raise FilesUnavailable(f"the files of volume {volume.name} can only be reached on its nodes")
        return Reached(volume=volume, files=DirectoryFiles(root), uploads=self._uploads(root))

    def _uploads(self, root: str) -> Uploads:
        uploads = Uploads(root)
        now = self._now()
        with self._lock:
            is_due = now - self._swept.get(root, float("-inf")) > _SWEEP_SECONDS
            if is_due:
                self._swept[root] = now
        if is_due:
            uploads.sweep(now - STALE_SECONDS)
        return uploads


def check_size(volume: VolumeRecord, size_bytes: int) -> None:
    """A file that is larger than its volume is sparse, and reading it takes time for its nominal length. Raises
    FileRefused."""
    if volume.size_bytes and size_bytes > volume.size_bytes:
        raise FileRefused(
            f"it says that it has {format_bytes(size_bytes)}, and its volume may hold {format_bytes(volume.size_bytes)}"
        )


def check_unwritten(state: State, volume: VolumeRecord) -> None:
    """A volume for one writer cannot be written from outside while a job writes to it."""
    writers = state.snapshot.active.mounted.writers(volume.id)
    if writers:
        job = state.snapshot.jobs[writers[0]]
        raise InUse(
            f"volume {volume.name} is written by {job.id} ({job.name}): it takes one writer at a time",
            field="volume",
            jobs=[job.id],
        )
