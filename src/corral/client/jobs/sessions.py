"""A command in a running job, joined with the input and output of this process."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from corral.client.http.errors import ClientError, ServerUnreachable
from corral.client.http.transport import LOOPBACK, Transport, segment

INPUT, OUTPUT, ERRORS = 0, 1, 2
_OPEN_SECONDS = 30.0


class JobSession:
    """A connection to one command. `run` returns its exit code; the other methods may be called by other threads."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lock = threading.RLock()

    def send(self, data: bytes) -> None:
        self._put(bytes([INPUT]) + data)

    def end_input(self) -> None:
        self._put(json.dumps({"end": True}))

    def resize(self, columns: int, rows: int) -> None:
        self._put(json.dumps({"resize": [columns, rows]}))

    def run(self, write: Callable[[int, bytes], None]) -> int | None:
        """Pass its output on until it ends: its exit code, None if the server does not know it. Raises ClientError."""
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                message = self._connection.recv()
            except ConnectionClosed as closed:
                raise ClientError(f"the connection to the job broke: {closed}") from closed
            if isinstance(message, bytes):
                write(message[0], message[1:])
                continue
            last = json.loads(message)
            if "error" in last:
                raise ClientError(str(last["error"]))
            code = last.get("exit_code")
            return None if code is None else int(code)

    def close(self) -> None:
        self._connection.close()

    def _put(self, message: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        # The command has ended; `run` reports how.
        with self._lock, contextlib.suppress(ConnectionClosed):
            self._connection.send(message)


def open_session(
    transport: Transport, job: str, command: Sequence[str], *, rank: int, has_terminal: bool, has_input: bool
) -> JobSession:
    """Raises ClientError."""
    # Loaded here: few commands need it, and every command would pay for it.
    from websockets.exceptions import InvalidHandshake, InvalidStatus
    from websockets.sync.client import connect

    flags = {"rank": str(rank), "tty": str(has_terminal).lower(), "stdin": str(has_input).lower()}
    query = urlencode([*flags.items(), *(("command", word) for word in command)])
    address = f"ws{transport.address.removeprefix('http')}/jobs/{segment(job)}/shell?{query}"
    is_here = urlsplit(address).hostname in LOOPBACK
    try:
        connection = contextlib.ExitStack().enter_context(
            connect(
                address,
                additional_headers=transport.credentials,
                open_timeout=_OPEN_SECONDS,
                max_size=None,
                # An address of this machine is never reached through a proxy from the environment.
                proxy=None if is_here else True,
            )
        )
    except InvalidStatus as refusal:
        raise transport.refusal_of(refusal.response.status_code, bytes(refusal.response.body or b"")) from None
    except (InvalidHandshake, OSError, TimeoutError) as error:
        raise ServerUnreachable(transport.server, str(error) or type(error).__name__) from error
    return JobSession(connection)
