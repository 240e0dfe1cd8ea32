"""A command in the container of a pod, with input, output and a terminal, over a WebSocket of the API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from corral.control.ports import EngineUnavailable, ShellChannel
from corral.engines.kubernetes.api.client import unreachable
from corral.engines.kubernetes.api.kubeconfig import Access
from corral.engines.kubernetes.api.upgrades import address_of, opening, options

#: The fifth version can end the input of a command; API servers before 1.30 speak the fourth.
_WITH_END = "v5.channel.k8s.io"
_WITHOUT_END = "v4.channel.k8s.io"
#: How long output may come after the status.
_LAST_SECONDS = 1.0
_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255


class PodCommand:
    """Implements `corral.control.ports.ShellStream`."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._exit_code: int | None = None
        self._problem = ""
        self._has_status = False

    @property
    def exit_code(self) -> int | None:
        return self._exit_code

    async def send(self, data: bytes) -> None:
        await self._put(_STDIN, data)

    async def end_input(self) -> None:
        if self._connection.subprotocol == _WITH_END:
            await self._put(_CLOSE, bytes([_STDIN]))

    async def resize(self, columns: int, rows: int) -> None:
        await self._put(_RESIZE, json.dumps({"Width": columns, "Height": rows}).encode())

    async def output(self) -> AsyncIterator[tuple[ShellChannel, bytes]]:
        while True:
            try:
                message = await asyncio.wait_for(self._connection.recv(), _LAST_SECONDS if self._has_status else None)
            except TimeoutError:
                break  # the status is the last message, even if the connection stays open
            except ConnectionClosed as closed:
                if not self._has_status:
                    raise EngineUnavailable(f"Kubernetes: the connection to the command broke: {closed}") from closed
                break
            data = message.encode() if isinstance(message, str) else message
            channel, rest = data[:1], data[1:]
            if channel == bytes([_STATUS]):
                self._take_status(rest)
            elif channel in (bytes([_STDOUT]), bytes([_STDERR])) and rest:
                yield ShellChannel(channel[0]), rest
        if self._problem:
            raise EngineUnavailable(f"Kubernetes: {self._problem}")

    async def close(self) -> None:
        await self._connection.close()

    async def _put(self, channel: int, data: bytes) -> None:
        try:
            await self._connection.send(bytes([channel]) + data)
        except ConnectionClosed:
            return  # the command has ended; `output` reports how

    def _take_status(self, content: bytes) -> None:
        self._has_status = True
        try:
            self._exit_code = exit_code_of(content)
        except ValueError as problem:
            self._problem = str(problem)


def exit_code_of(content: bytes) -> int:
    """The exit code in the status that the API server sends at the end. Raises ValueError, with the reason, if the
    command did not run."""
    try:
        status = json.loads(content)
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        message = str(status.get("message") or "it gave no reason")
    except (ValueError, AttributeError, KeyError, TypeError):
        message = f"it answered {content[:200]!r}"
    raise ValueError(message)


async def open_command(
    access: Access, path: str, container: str, command: Sequence[str], *, has_terminal: bool, has_input: bool
) -> PodCommand:
    """Raises ApiError and ApiUnavailable."""
    query = [("command", word) for word in command]
    query += [("container", container), ("stdout", "true")]
    query += [("stdin", "true")] if has_input else []
    # With a terminal there is one output.
    query += [("tty", "true")] if has_terminal else [("stderr", "true")]
    with opening():
        # A plugin may take seconds.
        token = await asyncio.to_thread(access.credential.token)
        address = address_of(access, f"{path}/exec", query)
        try:
            return PodCommand(await connect(address, **options(access, token, _WITH_END, _WITHOUT_END)))
        except TimeoutError as error:
            raise OSError(unreachable(error)) from error
