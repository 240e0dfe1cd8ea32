"""Port: commands in running attempts, for an engine that can run them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import IntEnum
from typing import Protocol, runtime_checkable


class ShellChannel(IntEnum):
    """The output stream of a command."""

    STDOUT = 1
    STDERR = 2


class ShellStream(Protocol):
    """One command that runs in an attempt. Used in one event loop."""

    async def send(self, data: bytes) -> None:
        """Sends data to the standard input. Raises EngineUnavailable."""

    async def end_input(self) -> None:
        """Ends the standard input, as far as the engine can report that to the command."""

    async def resize(self, columns: int, rows: int) -> None:
        """The size of its terminal."""

    def output(self) -> AsyncIterator[tuple[ShellChannel, bytes]]:
        """Yields the output until the command has ended. Raises EngineUnavailable if the connection breaks before."""

    @property
    def exit_code(self) -> int | None:
        """The exit code, after the output has ended; None if it is unknown."""

    async def close(self) -> None:
        """Leave the command. Its terminal, and so a shell in it, ends."""


@runtime_checkable
class HasShells(Protocol):
    """An engine that runs further commands in a running attempt."""

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> ShellStream:
        """Run a command in the environment and working directory of the attempt's program, with its account and its
        limits; without a command, the shell of its image. It ends with the attempt. Raises LaunchRefused if there is
        no such instance that runs, and EngineUnavailable."""
