"""Files of reports under one directory: `ID/NAME`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
#: Prefix of the directory of a report that is being written; it is never read.
_DRAFT = ".draft-"


class DirectoryReportFiles:
    """Implements `corral.control.ports.ReportFiles`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, report_id: str, files: Mapping[str, bytes]) -> None:
        home = self._home(report_id)
        draft = self._root / f"{_DRAFT}{report_id}"
        shutil.rmtree(draft, ignore_errors=True)
        # Other accounts of a shared machine must not read the users' usage.
        draft.mkdir(mode=0o700, parents=True)
        for name, content in files.items():
            with (draft / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        # Only a report that is not announced yet is written twice, after a crash: no reader misses it in between.
        shutil.rmtree(home, ignore_errors=True)
        draft.rename(home)
        _sync_directory(self._root)

    def path(self, report_id: str, name: str) -> Path | None:
        path = self._home(report_id) / name
        return path if path.is_file() else None

    def remove(self, report_ids: Collection[str]) -> None:
        for report_id in report_ids:
            shutil.rmtree(self._home(report_id), ignore_errors=True)

    def ids(self) -> set[str]:
        if not self._root.is_dir():
            return set()
        return {path.name for path in self._root.iterdir() if _ID.fullmatch(path.name)}

    def _home(self, report_id: str) -> Path:
        if not _ID.fullmatch(report_id):
            raise ValueError(f"{report_id!r} is not the id of a report")
        return self._root / report_id


def _sync_directory(path: Path) -> None:
    """A new name is durable only when its directory is."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
