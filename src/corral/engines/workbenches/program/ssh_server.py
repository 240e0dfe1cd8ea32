"""The SSH server of a workbench, and the script that each login runs."""

from __future__ import annotations

import os
import random
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .files import KEYS, SSHD_FAILED, say
from .requirements import account_name, find_system_program
from .services import Service

#: In the environment of every process that a user runs over SSH.
SESSION_VARIABLE = "CORRAL_SSH_SESSION"
_SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
_PORT_TRIES = 50
#: Variables of a login, not of the job.
_OF_LOGIN = re.compile(r"SSH_.*|TERM|SHELL|PWD|OLDPWD|SHLVL|_|USER|LOGNAME")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
            keygen = str(find_system_program("ssh-keygen", env))
            command = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "ssh_host_key"]
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


def _reachable(listen: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)
