"""The files that a workbench needs where it runs, and the status that it writes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Tool(StrEnum):
    """A program that a workbench offers."""

    JUPYTER = "jupyter"
    SSHD = "sshd"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkbenchStatus:
    """The status that a running workbench writes. Its owner could write anything here."""

    #: which attempt wrote it
    attempt: int
    at: float
    #: the account of the operating system that it runs as
    account: str
    jupyter_ready: bool = False
    ssh_ready: bool = False
    ssh_port: int | None = None
    #: the public key that its SSH server shows
    ssh_host_key: str | None = None
    ssh_sessions: int = 0
    #: where it lets the server in from another machine
    relay_port: int | None = None
    #: a user is logged in, or a program computes
    is_busy: bool = False
    #: when it was last used
    used_at: float


class WorkbenchFiles(Protocol):
    """The directory of a workbench, shared by the server and the program that runs in it."""

    def prepare(
        self, job_id: str, settings: Mapping[str, Any], keys: Sequence[str], relay_key: bytes | None = None
    ) -> None:
        """Writes all files that the program needs at its start, replacing old ones. `relay_key` authenticates the relay
        and the server to each other if the program runs on another machine. Raises OSError.
        """

    def put_keys(self, job_id: str, keys: Sequence[str]) -> bool:
        """Replaces the SSH keys that may connect; returns whether they changed. A workbench without a directory is
        ignored.
        """

    def status(self, job_id: str) -> WorkbenchStatus | None:
        """The workbench's last status; None if there is none, or it is invalid."""


class ToolProbe(Protocol):
    """Looks for programs where a workbench without an image would run."""

    def missing(self, needed: Sequence[Tool], *, venv: str | None, env: Mapping[str, str]) -> list[Tool]:
        """The needed tools that are not installed. Quick."""
