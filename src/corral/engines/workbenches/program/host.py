"""Starts Jupyter and the SSH server, reports when they are ready and when they were last used, and ends them together.

It reads its settings from the job's directory and writes its state there, so that it works wherever that directory is
shared, and continues without the server.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from .activity import Activity
from .files import KILLED, NO_JUPYTER, NO_LOGIN, NO_SSHD, SETTINGS, SOCKET, STATUS, say
from .requirements import account_name, environment, find_jupyter, find_sshd, may_log_in, with_home
from .services import Jupyter, Relay, Service, own_directory, socket_path
from .ssh_server import Sshd

POLL_SECONDS = 2.0
READY_SECONDS = 120.0


class Workbench:
    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        self._home = home
        self._settings = settings
        self._env = environment(os.environ, settings.get("venv"))
        self._root = Path(settings.get("workdir") or home.parent / "work")
        self._jupyter: Jupyter | None = None
        self._relay: Relay | None = None
        self._sshd: Sshd | None = None
        #: on this machine's own disk
        self._directory = ""
        self._is_stopping = False
        self._activity = Activity(time.time())

    def run(self) -> int:
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop())
        self._start()
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_stopping:
            for service in self._services:
                if service.ended is not None and not self._is_stopping:
                    say(f"{type(service).__name__} has ended with {service.ended}")
                    failed = KILLED if service.ended == -signal.SIGKILL else service.failed
                    return self._end(1 if service.was_ready else failed)
            is_ready = self._report()
            if not is_ready and time.monotonic() > deadline:
                say(f"it was not ready within {READY_SECONDS:.0f} s")
                return self._end(next(service.failed for service in self._services if not service.was_ready))
            # Short steps: the signal handler only sets a flag, and a stop must not wait for the next poll.
            until = time.monotonic() + (POLL_SECONDS if is_ready else 0.1)
            while not self._is_stopping and time.monotonic() < until:
                time.sleep(0.1)
        return self._end(0)

    @property
    def _services(self) -> list[Service]:
        return [service for service in (self._jupyter, self._relay, self._sshd) if service is not None]

    def _start(self) -> None:
        """Start all services that are asked for, or none."""
        jupyter = find_jupyter(self._env) if self._settings.get("jupyter") else None
        sshd = find_sshd(self._env) if self._settings.get("ssh") else None
        if self._settings.get("jupyter") and jupyter is None:
            say(f"there is no jupyter-lab in the PATH ({self._env.get('PATH', '')})")
            sys.exit(NO_JUPYTER)
        if self._settings.get("ssh") and sshd is None:
            say("there is no sshd with ssh-keygen")
            sys.exit(NO_SSHD)
        if sshd is not None and not may_log_in():
            say(f"the account {account_name()} has no shell to log in with")
            sys.exit(NO_LOGIN)
        self._root.mkdir(parents=True, exist_ok=True)
        self._env = with_home(self._env, self._root)
        if jupyter is not None:
            self._start_jupyter(jupyter)
        if sshd is not None:
            self._sshd = Sshd(
                sshd,
                home=self._home,
                listen=self._settings["ssh_listen"],
                ports=list(self._settings["ssh_ports"]),
                root=self._root,
            )
            self._sshd.start(self._env)

    def _start_jupyter(self, program: str) -> None:
        relay = self._settings.get("relay")
        sock = socket_path()
        if relay:
            self._directory = own_directory()
            sock = os.path.join(self._directory, SOCKET)
        self._jupyter = Jupyter(program, sock=sock, base_url=self._settings["base_url"], root=self._root, env=self._env)
        if relay:
            self._relay = Relay(self._home, listen=relay["listen"], ports=list(relay["ports"]), sock=sock)

    def _report(self) -> bool:
        """Write the status file; returns whether everything is ready."""
        now, jupyter, relay, sshd = time.time(), self._jupyter, self._relay, self._sshd
        pids = {service.process.pid for service in self._services if service.process}
        self._activity.look(now, pids, jupyter.used_at() if jupyter is not None else 0.0)
        # All services are asked, whether or not another one is ready.
        is_ready = not [service for service in self._services if not service.is_ready]
        if not is_ready:
            self._activity.used_at = now  # no user can use it yet
        status: dict[str, Any] = {
            "attempt": int(os.environ.get("CORRAL_ATTEMPT", "0")),
            "at": now,
            "account": account_name(),
            "jupyter_ready": jupyter is not None and jupyter.was_ready and (relay is None or relay.was_ready),
            "relay_port": relay.port if relay is not None else None,
            "ssh_ready": sshd is not None and sshd.was_ready,
            "ssh_port": sshd.port if sshd is not None else None,
            "ssh_host_key": sshd.host_key if sshd is not None else None,
            "ssh_sessions": self._activity.sessions,
            "busy": self._activity.is_busy,
            "used_at": self._activity.used_at,
        }
        draft = Path(f".{STATUS}")
        draft.write_text(json.dumps(status))
        draft.replace(STATUS)
        return is_ready

    def _stop(self) -> None:
        self._is_stopping = True

    def _end(self, code: int) -> int:
        """Services that still run after the grace time are killed by the engine."""
        self._is_stopping = True
        for service in self._services:
            service.terminate()
        for service in self._services:
            service.wait()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)
        return code


def main() -> NoReturn:
    home = Path(os.environ["CORRAL_JOB_DIR"]) / "workbench"
    settings = json.loads((home / SETTINGS).read_text())
    run = home / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    os.chdir(run)
    Path(STATUS).unlink(missing_ok=True)
    sys.exit(Workbench(home, settings).run())


if __name__ == "__main__":
    main()
