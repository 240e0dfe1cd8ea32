"""The program of a workbench: starts Jupyter and its own SSH server, reports when they are ready and when they were
last used, and ends them together.

It is run by path, with the standard library of Python 3.9 or later only, on a node or inside an image. It reads its
settings from the job's directory and writes its state there, so that it works wherever that directory is shared, and
continues without the server. The server decides how users connect: Jupyter listens on a socket that only the job's own
account can open, and SSH accepts only the keys that the server has written. A server on another machine connects
through a relay (`workbench_relay.py`), which accepts only the key that the server gave to this workbench.

This is one file of more than 400 lines on purpose: it is copied into the job's directory and run there by a Python that
has no corral installed, so it can import no other module of corral. A second file would have to be copied, versioned
and found with it.
"""

from __future__ import annotations

import http.client
import json
import os
import pwd
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

SETTINGS = "settings.json"
KEYS = "authorized_keys"
STATUS = "status.json"
SOCKET = "jupyter.sock"
RELAY = "relay.py"
RELAY_KEY = "relay.pem"
RELAY_PORT = "relay_port"
#: In the environment of every process that a user runs over SSH.
SESSION_VARIABLE = "CORRAL_SSH_SESSION"

#: Exit codes if it cannot start; `corral.control.workbenches.workbenches` has the message for each.
NO_JUPYTER = 81
NO_SSHD = 82
JUPYTER_FAILED = 84
SSHD_FAILED = 85
NO_LOGIN = 86
RELAY_FAILED = 87
KILLED = 89

POLL_SECONDS = 2.0
#: The longest path of a socket that the kernel accepts.
MAX_SOCKET_PATH = 107
READY_SECONDS = 120.0
#: A share of one CPU: an idle kernel uses far less.
BUSY_SHARE = 0.05
_JUPYTER_PROGRAMS = ("jupyter-lab", "jupyter-notebook", "jupyter-server")
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
_PORT_TRIES = 50
#: Variables of a login, not of the job.
_OF_LOGIN = re.compile(r"SSH_.*|TERM|SHELL|PWD|OLDPWD|SHLVL|_|USER|LOGNAME")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TICKS = os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------- requirements


def environment(base: Mapping[str, str], venv: str | None) -> dict[str, str]:
    """The environment of a workbench: with a virtual environment or conda prefix, its programs come first."""
    env = dict(base)
    if venv:
        programs = os.path.join(venv, "bin")
        path = env.get("PATH", "").split(os.pathsep)
        env["PATH"] = os.pathsep.join([programs, *(part for part in path if part and part != programs)])
        env["VIRTUAL_ENV"] = venv
    return env


def with_home(env: Mapping[str, str], root: Path) -> dict[str, str]:
    """An account without a home of its own, such as `nobody`, keeps its settings in the working directory."""
    home = env.get("HOME", "")
    has_home = home not in ("", "/") and os.access(home, os.W_OK | os.X_OK)
    return dict(env) if has_home else {**env, "HOME": str(root)}


def account_name() -> str:
    """The name of the own account. In an image the account may have none; then it cannot log in either."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid{os.getuid()}"


def may_log_in() -> bool:
    """SSH starts the account's own shell, which refuses logins for service accounts."""
    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return False
    return os.path.basename(shell) not in ("nologin", "false") and os.access(shell, os.X_OK)


def find_jupyter(env: Mapping[str, str]) -> str | None:
    return next(filter(None, (shutil.which(name, path=env.get("PATH")) for name in _JUPYTER_PROGRAMS)), None)


def find_sshd(env: Mapping[str, str]) -> str | None:
    """Finds an SSH server, if the program that makes its key is installed, too. It must be called by its full path, and
    is not in the PATH of users.
    """
    path = os.pathsep.join([env.get("PATH", ""), *_SBIN])
    return shutil.which("sshd", path=path) if shutil.which("ssh-keygen", path=path) else None


# ---------------------------------------------------------------- the services


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


class Sshd(Service):
    failed = SSHD_FAILED

    def __init__(self, program: str, *, home: Path, listen: str, ports: list[int], root: Path) -> None:
        super().__init__()
        self._program = program
        self._home = home
        self._listen = listen
        self._ports = ports
        self._root = root
        self.account = account_name()
        self.port = 0
        self.host_key = ""

    def start(self, env: Mapping[str, str]) -> None:
        """Start, and store the port and the key for the next start, so that SSH clients see the same host key."""
        self._make_host_key(env)
        Path("session").write_text(session_script(env, self._root))
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
        self.port = self._free_port()
        Path("ssh_port").write_text(str(self.port))
        Path("sshd_config").write_text(self._config())
        config = str(Path("sshd_config").resolve())
        self.process = subprocess.Popen([self._program, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((_reachable(self._listen), self.port), timeout=5.0) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _make_host_key(self, env: Mapping[str, str]) -> None:
        if not Path("ssh_host_key").exists():
            keygen = shutil.which("ssh-keygen", path=os.pathsep.join([env.get("PATH", ""), *_SBIN]))
            command = [str(keygen), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "ssh_host_key"]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        self.host_key = Path("ssh_host_key.pub").read_text().strip()

    def _free_port(self) -> int:
        first, last = self._ports
        known = Path("ssh_port").read_text() if Path("ssh_port").exists() else ""
        tries = [int(known)] if known.isdigit() and first <= int(known) <= last else []
        tries += [random.randint(first, last) for _ in range(_PORT_TRIES)]
        family = socket.AF_INET6 if ":" in self._listen else socket.AF_INET
        for port in tries:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((self._listen, port))
                except OSError:
                    continue
                return port
        say(f"no free port between {first} and {last}")
        sys.exit(SSHD_FAILED)

    def _config(self) -> str:
        run = Path.cwd()
        # "%" begins a token there.
        keys = str(self._home / KEYS).replace("%", "%%")
        lines = [
            f"Port {self.port}",
            f"ListenAddress {self._listen}",
            f'HostKey "{run / "ssh_host_key"}"',
            f'AuthorizedKeysFile "{keys}"',
            # As root, sshd could let in any account of this machine with the same keys.
            f"AllowUsers {self.account}",
            "PermitRootLogin prohibit-password",
            "AuthenticationMethods publickey",
            "PasswordAuthentication no",
            "ChallengeResponseAuthentication no",
            "UsePAM no",
            # The keys are where the server writes them; a parent directory may be one like /tmp.
            "StrictModes no",
            "PidFile none",
            "UseDNS no",
            "X11Forwarding no",
            "PermitTunnel no",
            "LoginGraceTime 30",
            "ClientAliveInterval 60",
            "ClientAliveCountMax 5",
            f"ForceCommand /bin/sh {shlex.quote(str(run / 'session'))}",
        ]
        sftp = next((path for path in _SFTP_SERVERS if os.path.exists(path)), None)
        return "\n".join([*lines, *([f"Subsystem sftp {sftp}"] if sftp else [])]) + "\n"


def session_script(env: Mapping[str, str], root: Path) -> str:
    """The script of a login: the job's own environment, for a shell, a command or a file transfer."""
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in sorted(env.items())
        if _ENV_NAME.fullmatch(name) and not _OF_LOGIN.fullmatch(name)
    ]
    return "\n".join(
        [
            *exports,
            f"export {SESSION_VARIABLE}=$$",
            f"cd {shlex.quote(str(root))} 2>/dev/null",
            'if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "${SHELL:-/bin/sh}" -c "$SSH_ORIGINAL_COMMAND"; fi',
            'exec "${SHELL:-/bin/sh}"',
            "",
        ]
    )


# ---------------------------------------------------------------- activity


class Activity:
    """Whether the workbench is in use: a login, a kernel or terminal, or a program that computes."""

    def __init__(self, now: float) -> None:
        self.used_at = now
        self.is_busy = False
        self.sessions = 0
        self._seen_at = now
        self._ticks: dict[int, int] = {}

    def look(self, now: float, services: set[int], jupyter_used_at: float) -> None:
        """`services` are the processes that always run; their own CPU time does not count as use."""
        children = child_processes()
        below = descendants(os.getpid(), children)
        self.sessions = len({value for pid in below if (value := _session_of(pid))})
        ticks = {pid: count for pid in below if pid not in services and (count := _cpu_ticks(pid)) is not None}
        spent = sum(max(0, count - self._ticks.get(pid, 0)) for pid, count in ticks.items()) / _TICKS
        computes = bool(self._ticks) and spent >= BUSY_SHARE * max(0.1, now - self._seen_at)
        self._ticks, self._seen_at = ticks, now
        self.is_busy = self.sessions > 0 or computes or jupyter_used_at > now
        self.used_at = now if self.is_busy else max(self.used_at, min(jupyter_used_at, now))


def child_processes() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        fields = _stat(int(entry)) if entry.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry))
    return children


def descendants(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += more
        waiting += more
    return found


def _stat(pid: int) -> list[bytes]:
    """The fields after the command's name, which may itself hold blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def _cpu_ticks(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else None


def _session_of(pid: int) -> bytes:
    mark = SESSION_VARIABLE.encode() + b"="
    try:
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return b""
    return next((line[len(mark) :] for line in lines if line.startswith(mark)), b"")


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _reachable(listen: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)


# ---------------------------------------------------------------- running


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


def say(text: str) -> None:
    print(f"corral: {text}", flush=True)  # noqa: T201


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
