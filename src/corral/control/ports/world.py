"""Ports: time, job directories, files of reports, notices, and tests of GPUs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch. The system time may be set, back and forth."""

    def monotonic(self) -> float:
        """Seconds since some moment, never going back: for intervals."""


class Workspace(Protocol):
    """A directory for each job, where the job finds its input files and keeps its own files."""

    def env(self, job_id: str) -> Mapping[str, str]:
        """Environment that names a job's directories. Touches no file: it may be called in the controller's thread."""

    def prepare(self, job_id: str) -> None:
        """Make the directories that `env` names. Raises OSError; never in the controller's thread."""

    def put_once(self, job_id: str, name: str, value: Mapping[str, Any]) -> bool:
        """Leave a JSON file for the job, whole or not at all; False if it is there already. Raises OSError; never in
        the controller's thread."""

    def remove(self, job_ids: Sequence[str]) -> None:
        """Removes the directories of these jobs. Unknown jobs are ignored. Raises OSError once all were tried, if the
        directory of one cannot be removed."""


class ReportFiles(Protocol):
    """A directory for each report, with the report in every format."""

    def put(self, report_id: str, files: Mapping[str, bytes]) -> None:
        """All of them or none, also after a crash; what was there before is replaced."""

    def path(self, report_id: str, name: str) -> Path | None:
        """The path of a report's file; None if there is none."""

    def remove(self, report_ids: Collection[str]) -> None:
        """Removes the files of these reports. Unknown reports are ignored."""

    def ids(self) -> set[str]:
        """The ids of the reports that have files."""


class NoticeRefused(Exception):
    """The channel will never take this notice: its address is wrong; the message says how."""


class NoticeFailed(Exception):
    """The channel did not take the notice this time: try again later."""


class Notifier(Protocol):
    """Sends notices: by mail, to a chat, to a webhook."""

    def check(self, url: str) -> None:
        """Raises NoticeRefused if nothing could ever be sent to this address. Quick, and without the network."""

    def shown(self, url: str) -> str:
        """The address without its secrets."""

    def send(self, url: str, title: str, body: str, attachments: Sequence[Path] = ()) -> None:
        """Returns when the channel has taken it. Raises NoticeRefused or NoticeFailed. May take long."""


class SelfTest(Protocol):
    def run(self, gpu_id: str) -> str | None:
        """Put a GPU to the test: what is wrong with it, or None. May take a minute; never hangs."""
