"""The server programs of a workbench: the base of each, Jupyter, and the relay to Jupyter."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from .files import JUPYTER_FAILED, RELAY, RELAY_FAILED, RELAY_KEY, RELAY_PORT, SOCKET

#: The longest path of a socket that the kernel accepts.
MAX_SOCKET_PATH = 107


class Service(ABC):
    """One server program of the workbench."""

    #: the exit code of the workbench if the service does not start
    failed: int

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.was_ready = False

    @property
    def is_ready(self) -> bool:
        """A service that has answered once counts as ready while it runs: it is not asked again."""
        self.was_ready = self.was_ready or self._answers()
        return self.was_ready

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it accepts connections."""

    @property
    def ended(self) -> int | None:
        return self.process.poll() if self.process is not None else None

    def terminate(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def wait(self) -> None:
        if self.process is not None:
            self.process.wait()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10.0)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def socket_path() -> str:
    """The path of Jupyter's socket on the server's machine: in the run directory. If that path is too long for the
    kernel, the path leads through /proc of this process.
    """
    full = os.path.join(os.getcwd(), SOCKET)
    return full if len(full.encode()) <= MAX_SOCKET_PATH else f"/proc/{os.getpid()}/cwd/{SOCKET}"


def own_directory() -> str:
    """A directory on this machine's own disk for the socket: not every shared file system supports sockets."""
    made = tempfile.mkdtemp(prefix="corral-")
    if len(os.path.join(made, SOCKET).encode()) <= MAX_SOCKET_PATH:
        return made
    os.rmdir(made)
    return tempfile.mkdtemp(prefix="corral-", dir="/tmp")


class Jupyter(Service):
    failed = JUPYTER_FAILED

    def __init__(self, program: str, *, sock: str, base_url: str, root: Path, env: Mapping[str, str]) -> None:
        super().__init__()
        self._sock = sock
        self._base_url = base_url
        runtime = Path("jupyter-runtime")
        runtime.mkdir(mode=0o700, exist_ok=True)
        Path(sock).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [
                program,
                "--no-browser",
                f"--ServerApp.sock={sock}",
                "--ServerApp.sock_mode=0600",
                f"--ServerApp.base_url={base_url}",
                f"--ServerApp.root_dir={root}",
                # Clients of the socket were authenticated by corral, or are this account itself.
                "--IdentityProvider.token=",
                "--PasswordIdentityProvider.hashed_password=",
                "--ServerApp.allow_remote_access=True",
                "--ServerApp.allow_root=True",
                "--ServerApp.quit_button=False",
                "--LabApp.news_url=None",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            cwd=root,
            env={**env, "JUPYTER_RUNTIME_DIR": str(runtime.resolve())},
            stdin=subprocess.DEVNULL,
        )

    def ask(self, path: str) -> Any:
        """The answer of Jupyter's API; None if there is none."""
        connection = UnixConnection(self._sock)
        try:
            connection.request("GET", f"{self._base_url}api/{path}")
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else None
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _answers(self) -> bool:
        return self.ask("status") is not None

    def used_at(self) -> float:
        """When a kernel or a terminal was last active; infinity while a kernel is busy. An open page that only polls
        does not count: otherwise a user who leaves a tab open would never be idle."""
        latest = 0.0
        for item in (*(self.ask("kernels") or ()), *(self.ask("terminals") or ())):
            if item.get("execution_state") == "busy":
                return float("inf")
            latest = max(latest, _moment(item.get("last_activity", "")))
        return latest


class Relay(Service):
    """The connection to Jupyter from another machine."""

    failed = RELAY_FAILED

    def __init__(self, home: Path, *, listen: str, ports: list[int], sock: str) -> None:
        super().__init__()
        Path(RELAY_PORT).unlink(missing_ok=True)
        first, last = ports
        arguments = [listen, str(first), str(last), str(home / RELAY_KEY), sock, RELAY_PORT]
        self.process = subprocess.Popen(
            [sys.executable, "-Iu", str(home / RELAY), *arguments], stdin=subprocess.DEVNULL
        )

    @property
    def port(self) -> int | None:
        try:
            return int(Path(RELAY_PORT).read_text())
        except FileNotFoundError:
            return None

    def _answers(self) -> bool:
        return self.port is not None


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
