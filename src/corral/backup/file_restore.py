"""Writes the files of a backup into a home that is not in use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from corral.backup.errors import BackupError
from corral.backup.manifest import SavedFile
from corral.backup.pieces import PieceReader
from corral.files import Place
from corral.files.descriptors import make_file


def restore_files(home: Path, files: Iterable[SavedFile], reader: PieceReader) -> int:
    """Returns the number of files. A restore can be repeated.

    Owners are restored if the caller is root. Directories get their times and modes after their content.
    """
    count = 0
    directories: list[SavedFile] = []
    for file in files:
        *above, name = _parts(file.path)
        try:
            with Place.at(home, *above) as place:
                if file.kind == "directory":
                    place.make(name)
                    directories.append(file)
                elif file.kind == "link":
                    place.link(name, file.target)
                    _give(place, name, file)
                else:
                    _write(place, name, file, reader)
                count += 1
        except OSError as error:
            raise BackupError(f"{file.path} cannot be restored: {error.strerror or error}") from error
    for file in reversed(directories):
        with Place.at(home, *_parts(file.path)) as place:
            if os.geteuid() == 0:
                os.fchown(place.descriptor, file.uid, file.gid)
            os.fchmod(place.descriptor, file.mode)
            os.utime(place.descriptor, ns=(file.modified_ns, file.modified_ns))
    return count


def _write(place: Place, name: str, file: SavedFile, reader: PieceReader) -> None:
    draft = f".corral-restore-{os.urandom(8).hex()}"
    descriptor = make_file(place.descriptor, draft)
    try:
        with os.fdopen(descriptor, "wb") as output:
            for piece in file.pieces:
                output.write(reader.get(piece))
            output.flush()
            if os.geteuid() == 0:
                os.fchown(output.fileno(), file.uid, file.gid)
            os.fchmod(output.fileno(), file.mode)
            os.utime(output.fileno(), ns=(file.modified_ns, file.modified_ns))
            os.fsync(output.fileno())
        os.rename(draft, name, src_dir_fd=place.descriptor, dst_dir_fd=place.descriptor)
    except BaseException:
        place.remove(draft)
        raise


def _give(place: Place, name: str, file: SavedFile) -> None:
    if os.geteuid() == 0:
        os.chown(name, file.uid, file.gid, dir_fd=place.descriptor, follow_symlinks=False)


def _parts(path: str) -> list[str]:
    """Raises BackupError for a path that leads out of the home."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts):
        raise BackupError(f"the archive names a file outside of the home: {path!r}")
    return parts
