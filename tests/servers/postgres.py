"""A real PostgreSQL for tests: its own directory, a unix socket only."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

HOW_TO_INSTALL = "PostgreSQL is not installed: run scripts/install-test-servers as root (Debian package: postgresql)"

#: A crash of the machine would lose data; a test does not care, and is faster.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
}


@dataclass(kw_only=True)
class PostgresServer:
    directory: Path
    programs: Path
    account: str
    #: on top of those that all have
    settings: Mapping[str, str] = field(default_factory=dict)
    #: where it listens beside its socket, for clients of the same network, which need no password
    network: str = ""
    port: int = 5432
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def start(self) -> None:
        self._run("initdb", "-D", self.data, "-U", "corral", "--auth=trust", "--encoding=UTF8", "--locale=C", "-N")
        if self.network:
            with (self.data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {self.network} trust\n")
        self.restart(first=True)

    def replica(self, directory: Path, port: int) -> PostgresServer:
        """A running copy that follows this server; from now on a commit here waits for it."""
        directory.mkdir()
        shutil.chown(directory, user=self.account)
        copy = replace(self, directory=directory, port=port)
        source = ("-h", self.directory, "-p", self.port, "-U", "corral")
        self._run("pg_basebackup", "-D", copy.data, *source, "-R", "-X", "stream", "-c", "fast", "-N")
        copy.restart(first=True)
        self._execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._execute("SELECT pg_reload_conf()")
        return copy

    def promote(self) -> None:
        """Turns a replica into a server that accepts writes."""
        self._run("pg_ctl", "-D", self.data, "-w", "promote")

    def restart(self, *, first: bool = False) -> None:
        own = {"listen_addresses": self.network.partition("/")[0], "port": str(self.port)}
        settings = " ".join(f"-c {name}='{value}'" for name, value in {**SETTINGS, **own, **self.settings}.items())
        action = "start" if first else "restart"
        options = f"{settings} -k {self.directory}"
        self._run("pg_ctl", "-D", self.data, "-l", self.directory / "log", "-w", "-m", "fast", "-o", options, action)

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def kill(self) -> None:
        """Kills the server like a crash: without closing its connections."""
        if (self.data / "postmaster.pid").exists():  # else it was stopped
            self._signal(signal.SIGKILL)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and queries, and answers none, as behind a network that loses every packet."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True, check=False)
        for pid in (postmaster, *map(int, children.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def url(self, database: str) -> str:
        return f"postgresql://corral@/{database}?host={quote(str(self.directory))}&port={self.port}"

    def create_database(self, template: str = "template1") -> str:
        """The name of a new database."""
        name = f"test_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def end_sessions(self) -> None:
        """Cut every connection but this one, whatever it does."""
        self._execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _run(self, program: str, *arguments: object) -> None:
        # PostgreSQL refuses to run as root.
        me = pwd.getpwuid(os.geteuid()).pw_name
        other: dict[str, Any] = {"user": self.account, "group": pwd.getpwnam(self.account).pw_gid, "extra_groups": []}
        done = subprocess.run(
            [str(self.programs / program), *map(str, arguments)],
            stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if program == "initdb" else subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd=self.directory,
            timeout=60,
            check=False,
            **({} if me == self.account else other),
        )
        if done.returncode != 0:
            log = self.directory / "log"
            said = (done.stdout or b"").decode() + (log.read_text() if log.exists() else "")
            raise RuntimeError(f"{program} failed:\n{said[-2000:]}")


def find_programs() -> Path | None:
    """The directory with initdb and pg_ctl: the newest that Debian has, else the one in the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    for directory in reversed(debian):
        if (directory / "initdb").exists() and (directory / "pg_ctl").exists():
            return directory
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def find_account() -> str | None:
    """The account of the server: the one that runs the tests, or the package's own if that is root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else None
