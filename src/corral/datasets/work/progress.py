"""The progress of a commit or a checkout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    files_done: int = 0
    files_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    #: the part of `bytes_done` that was unchanged and cost nothing
    bytes_kept: int = 0


#: Called often, from the thread that called the repository: must be quick.
OnProgress = Callable[[Progress], None]


class Counter:
    def __init__(self, on_progress: OnProgress | None, *, files: int, size: int) -> None:
        self._on_progress = on_progress
        self._progress = Progress(files_total=files, bytes_total=size)

    def add(self, *, files: int = 0, size: int = 0, kept: bool = False) -> None:
        now = self._progress
        self._progress = replace(
            now,
            files_done=now.files_done + files,
            bytes_done=now.bytes_done + size,
            bytes_kept=now.bytes_kept + (size if kept else 0),
        )
        if self._on_progress is not None:
            self._on_progress(self._progress)
