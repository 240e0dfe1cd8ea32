"""Runs the web program of a job, and lets the server, and only the server, connect to it.

It is run by path, with the standard library of Python 3.9 or later only, on a node or inside an image. It starts the
job's command and ends with its exit code. Beside it, it listens at a socket that only the job's own account can open,
and forwards connections to the program's port or socket. A port is used only while its listener belongs to this
account: another user of the node may have taken it. A server on another machine connects through a relay
(`workbench_relay.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

SETTINGS = "settings.json"
STATUS = "status.json"
#: The same name as that of a workbench's Jupyter: the server connects to both in the same way.
SOCKET = "jupyter.sock"
RELAY = "relay.py"
RELAY_KEY = "relay.pem"
RELAY_PORT = "relay_port"
PORT_VARIABLE = "CORRAL_APP_PORT"
POLL_SECONDS = 1.0
_PIECE_BYTES = 1 << 16
_LOOPBACK = {"tcp": "0100007F", "tcp6": "00000000000000000000000001000000"}
_ANY = {"tcp": "00000000", "tcp6": "00000000000000000000000000000000"}
_LISTENS = "0A"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def listener_of(port: int, uid: int, tables: Path = Path("/proc/net")) -> str | None:
    """The loopback address at which a program of this account listens at the port; None if there is none, or if a
    program of another account does."""
    found = None
    for name, address in (("tcp", "127.0.0.1"), ("tcp6", "::1")):
        try:
            lines = (tables / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            host, _, listens_at = fields[1].rpartition(":")
            if fields[3] != _LISTENS or int(listens_at, 16) != port or host not in (_LOOPBACK[name], _ANY[name]):
                continue
            if int(fields[7]) != uid:
                return None
            # A program that listens at all addresses by IPv6 is reached by IPv4, too.
            found = found or ("127.0.0.1" if host == _ANY[name] else address)
    return found


class AppHost:
    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        self._home = home
        self._run = home / "run"
        self._settings = settings
        self._port = int(settings.get("port") or 0) or free_port()
        #: on this machine's own disk, for the program's socket and for the one of the relay
        self._directory = tempfile.mkdtemp(prefix="corral-", dir="/tmp")
        self._socket = os.path.join(self._directory, "app.sock") if settings.get("has_socket") else ""
        self._relay: subprocess.Popen[bytes] | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._used_at = time.time()
        self._is_ready = False

    def command(self) -> tuple[list[str], dict[str, str]]:
        values = {"{port}": str(self._port), "{socket}": self._socket}
        env = {name: filled(value, values) for name, value in self._settings.get("env", {}).items()}
        arguments = self._settings["command"]
        if self._settings.get("is_known"):
            arguments = [filled(word, values) for word in arguments]
        # What the user sets goes first.
        return arguments, {**env, **os.environ, PORT_VARIABLE: str(self._port)}

    async def run(self) -> int:
        arguments, env = self.command()
        try:
            self._child = subprocess.Popen(arguments, env=env)
        except OSError as error:
            say(f"{arguments[0]} cannot be started: {error.strerror}")
            return 127 if isinstance(error, FileNotFoundError) else 126
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._pass_on, number)
        server = await asyncio.start_unix_server(self._serve, sock=self._listener())
        self._start_relay()
        try:
            return await self._until_it_ends()
        finally:
            server.close()
            if self._relay is not None:
                self._relay.terminate()
            shutil.rmtree(self._directory, ignore_errors=True)

    async def _until_it_ends(self) -> int:
        assert self._child is not None
        reported_at = 0.0
        while (code := self._child.poll()) is None:
            if time.monotonic() - reported_at >= POLL_SECONDS:
                self._is_ready = await self._answers()
                self._report()
                reported_at = time.monotonic()
            await asyncio.sleep(0.05)
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int) -> None:
        if self._child is not None and self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)

    def _listener(self) -> socket.socket:
        """The socket for the server: in the run directory, or, for a relay, on this machine's own disk."""
        directory = self._directory if self._settings.get("relay") else str(self._run)
        Path(directory, SOCKET).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The path of a socket may have 107 characters only.
        descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        before = os.umask(0o177)
        try:
            listener.bind(f"/proc/self/fd/{descriptor}/{SOCKET}")
        finally:
            os.umask(before)
            os.close(descriptor)
        listener.listen(128)
        listener.setblocking(False)
        return listener

    def _start_relay(self) -> None:
        relay = self._settings.get("relay")
        if not relay:
            return
        port_file = self._run / RELAY_PORT
        port_file.unlink(missing_ok=True)
        first, last = relay["ports"]
        inside = os.path.join(self._directory, SOCKET)
        arguments = [relay["listen"], str(first), str(last), str(self._home / RELAY_KEY), inside, str(port_file)]
        self._relay = subprocess.Popen(
            [sys.executable, "-Iu", str(self._home / RELAY), *arguments], stdin=subprocess.DEVNULL
        )

    async def _open(self) -> Streams:
        """A connection to the program. Raises OSError."""
        if self._socket:
            return await asyncio.open_unix_connection(self._socket)
        address = listener_of(self._port, os.getuid())
        if address is None:
            raise ConnectionRefusedError(f"no program of this account listens at port {self._port}")
        return await asyncio.open_connection(address, self._port)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.wait_for(self._open(), 5.0)
        except (TimeoutError, OSError):
            return False
        writer.close()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._used_at = time.time()
        try:
            inside = await self._open()
        except OSError:
            writer.close()
            return
        copies = [
            asyncio.ensure_future(self._copy(reader, inside[1], is_use=True)),
            asyncio.ensure_future(self._copy(inside[0], writer, is_use=False)),
        ]
        await asyncio.wait(copies)
        for each in (writer, inside[1]):
            each.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_use: bool) -> None:
        """Copy data until the end, which is passed on: the other direction may have data left."""
        try:
            while piece := await reader.read(_PIECE_BYTES):
                if is_use:
                    self._used_at = time.time()
                writer.write(piece)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            writer.close()  # the connection broke, for both directions

    def _report(self) -> None:
        status: dict[str, Any] = {
            "attempt": int(os.environ.get("CORRAL_ATTEMPT", "0")),
            "at": time.time(),
            "account": account_name(),
            "jupyter_ready": self._is_ready,
            "relay_port": self._relay_port(),
            "ssh_ready": False,
            "ssh_port": None,
            "ssh_host_key": None,
            "ssh_sessions": 0,
            "busy": False,
            "used_at": self._used_at,
        }
        draft = self._run / f".{STATUS}"
        draft.write_text(json.dumps(status))
        draft.replace(self._run / STATUS)

    def _relay_port(self) -> int | None:
        try:
            return int((self._run / RELAY_PORT).read_text()) if self._relay is not None else None
        except FileNotFoundError:
            return None


def account_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid{os.getuid()}"


def say(text: str) -> None:
    print(f"corral: {text}", file=sys.stderr, flush=True)  # noqa: T201


def main() -> NoReturn:
    home = Path(os.environ["CORRAL_JOB_DIR"]) / "workbench"
    settings = json.loads((home / SETTINGS).read_text())
    if os.environ.get("CORRAL_RANK", "0") != "0":
        # Of a gang, the first instance serves the page.
        os.execvp(settings["command"][0], settings["command"])
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    (home / "run" / STATUS).unlink(missing_ok=True)
    sys.exit(asyncio.run(AppHost(home, settings).run()))


if __name__ == "__main__":
    main()
