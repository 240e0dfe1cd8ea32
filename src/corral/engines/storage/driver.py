"""Block and filesystem volumes of the local engine: directories below one root.

    <root>/v-12/data         the directory that jobs see
    <root>/v-12/volume.json  its size and owner
    <root>/.making/          volumes that are not complete yet
    <root>/.trash/           volumes that are being removed

A volume appears and vanishes by one rename, so that a crash leaves a complete one or none; leftovers in the other two
directories are removed the next time. Control decides which volumes exist.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from corral.control.ports import VolumeUnavailable, VolumeUse
from corral.engines.attempts.job_places import remove_tree
from corral.engines.attempts.json_files import read_json, write_json
from corral.engines.storage.permissions import allow_passage, open_inside
from corral.engines.storage.project_quotas import ProjectQuotas, quotas_of
from corral.files import used_bytes

log = logging.getLogger("corral.engines.storage")

DATA = "data"
_ABOUT = "volume.json"
_MAKING = ".making"
_TRASH = ".trash"
_ID = re.compile(r"v-(\d{1,9})")
#: Project ids below are left to other users of quotas on the same disk.
_FIRST_PROJECT = 1_000_000


class DirectoryVolumes:
    """See `corral.control.ports.VolumeDriver`. Safe for several threads: each change is one rename."""

    def __init__(self, root: str, quotas: ProjectQuotas | None = None) -> None:
        """Without `quotas` the driver detects those of the file system."""
        self._root = os.path.abspath(root)
        os.makedirs(self._root, mode=0o700, exist_ok=True)
        self._quotas = quotas or quotas_of(self._root)

    @property
    def detail(self) -> str:
        """Describes for `doctor` how sizes are enforced."""
        kept = "by project quotas" if self._quotas else "by measuring: this file system has no project quotas"
        return f"{self._root}: sizes are enforced {kept}"

    def create(self, volume_id: str, size_bytes: int, owner: str) -> None:
        with _volume_errors(volume_id):
            place = self._place(volume_id)
            if not os.path.isdir(place):
                self._make(volume_id, place, size_bytes, owner)
            self._limit(volume_id, size_bytes)

    def resize(self, volume_id: str, size_bytes: int) -> None:
        with _volume_errors(volume_id):
            about = os.path.join(self._place(volume_id), _ABOUT)
            self._existing(volume_id)
            write_json(about, {**(read_json(about) or {}), "size_bytes": size_bytes}, durable=True)
            self._limit(volume_id, size_bytes)

    def delete(self, volume_id: str) -> None:
        with _volume_errors(volume_id):
            place = self._place(volume_id)
            trash = os.path.join(self._root, _TRASH)
            os.makedirs(trash, mode=0o700, exist_ok=True)
            if os.path.lexists(place):
                os.rename(place, _free_name(trash, volume_id))
            for half in self._halves(volume_id):
                remove_tree(half)
                if os.path.lexists(half):
                    raise VolumeUnavailable(f"volume {volume_id}: some of its files cannot be removed, in {half}")

    def usage(self, volume_id: str) -> VolumeUse:
        with _volume_errors(volume_id):
            path = self._existing(volume_id)
            walked = used_bytes(path)
            if self._quotas is not None:
                # The owner of a file may move it to another project, where the quota of the volume does not count it.
                used = max(walked, self._quotas.used_bytes(_project(volume_id)))
                return VolumeUse(used_bytes=used, is_enforced=True)
            return VolumeUse(used_bytes=walked)

    def is_open_to_jobs(self, volume_id: str) -> bool:
        with _volume_errors(volume_id):
            place = self._place(volume_id)
            return os.path.isdir(place) and bool(os.stat(place).st_mode & 0o077)

    def close_to_jobs(self, volume_id: str) -> None:
        with _volume_errors(volume_id):
            if self.is_open_to_jobs(volume_id):
                allow_passage(self._place(volume_id), set())

    def path_of(self, volume_id: str) -> str | None:
        return os.path.join(self._place(volume_id), DATA)

    def volumes(self) -> set[str]:
        found = {name for name in os.listdir(self._root) if _ID.fullmatch(name)}
        for half in self._halves(""):
            found.add(os.path.basename(half).partition(".")[0])
        return found

    # -------------------------------------------------------------------------------------------- inside

    def _place(self, volume_id: str) -> str:
        if _ID.fullmatch(volume_id) is None:
            raise VolumeUnavailable(f"{volume_id!r} is not the id of a volume, such as v-12")
        return os.path.join(self._root, volume_id)

    def _existing(self, volume_id: str) -> str:
        path = os.path.join(self._place(volume_id), DATA)
        if not os.path.isdir(path):
            raise VolumeUnavailable(f"volume {volume_id} has no directory {path}")
        return path

    def _make(self, volume_id: str, place: str, size_bytes: int, owner: str) -> None:
        making = os.path.join(self._root, _MAKING)
        os.makedirs(making, mode=0o700, exist_ok=True)
        half = _free_name(making, volume_id)
        data = os.path.join(half, DATA)
        os.mkdir(half, mode=0o700)
        os.mkdir(data)
        open_inside(data)
        write_json(os.path.join(half, _ABOUT), {"owner": owner, "size_bytes": size_bytes}, durable=True)
        try:
            os.rename(half, place)
        except OSError:
            remove_tree(half)
            if not os.path.isdir(place):
                raise  # no other thread created it meanwhile

    def _limit(self, volume_id: str, size_bytes: int) -> None:
        if self._quotas is None:
            return
        self._quotas.limit(os.path.join(self._place(volume_id), DATA), _project(volume_id), size_bytes)

    def _halves(self, volume_id: str) -> list[str]:
        """The leftovers of a crash, of this volume or of all volumes."""
        found = []
        for place in (os.path.join(self._root, name) for name in (_MAKING, _TRASH)):
            names = os.listdir(place) if os.path.isdir(place) else []
            found += [os.path.join(place, name) for name in names if volume_id in ("", name.partition(".")[0])]
        return found


def _project(volume_id: str) -> int:
    found = _ID.fullmatch(volume_id)
    assert found is not None, volume_id
    return _FIRST_PROJECT + int(found.group(1))


def _free_name(directory: str, volume_id: str) -> str:
    number = 0
    while os.path.lexists(path := os.path.join(directory, f"{volume_id}.{number}")):
        number += 1
    return path


@contextmanager
def _volume_errors(volume_id: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise VolumeUnavailable(f"volume {volume_id}: {error.strerror or error}{place}") from error
