"""Connections to ports of a job's programs on this machine.

A port of the loopback address may belong to any program. It counts as the job's only if the process that listens there
has the account of the job's directory and the job's environment: otherwise a user could reach other programs of the
machine, or be answered by a program of another user.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from corral.stores.storage.fair_pool import Steps

_LISTENS = "0A"
_HOSTS = {
    "tcp": {"0100007F": "127.0.0.1", "00000000": "127.0.0.1"},
    "tcp6": {"0" * 24 + "01000000": "::1", "0" * 32: "::1"},
}
_MAX_ENVIRONMENT = 1 << 20
#: A job can open very many files: no more are looked through for one connection.
MAX_DESCRIPTORS = 100_000
_PAUSE_EVERY = 500
CONNECT_SECONDS = 10.0


async def connect_to(port: int, find: Callable[[], Awaitable[str]]) -> socket.socket:
    """A non-blocking connection to a port of a job's program, whose address `find` looks up. No thread waits for the
    program: it may accept nothing. Raises OSError."""
    address = await find()
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, (address, port))
        # The program may have ended in between, and another one have taken the port.
        await find()
    except BaseException as error:
        connection.close()
        if isinstance(error, TimeoutError):
            raise ConnectionError(f"port {port} does not answer within {CONNECT_SECONDS:g} s") from None
        raise
    return connection


def listener_steps(port: int, job_dir: Path, uid: int, proc: Path = Path("/proc")) -> Steps[str]:
    """The address at which the job listens. Raises ConnectionRefusedError."""
    listening = {
        fields[9]: (address, int(fields[7]))
        for table, hosts in _HOSTS.items()
        for fields in _rows(proc / "net" / table)
        if fields[3] == _LISTENS
        and int(fields[1].rpartition(":")[2], 16) == port
        and (address := hosts.get(fields[1].rpartition(":")[0])) is not None
    }
    wanted = {f"socket:[{inode}]": address for inode, (address, owner) in listening.items() if owner == uid}
    if wanted and (found := (yield from _socket_of_job(frozenset(wanted), job_dir, uid, proc))) is not None:
        return wanted[found]
    raise ConnectionRefusedError(f"no program of the job listens at port {port} of the loopback address")


def _rows(table: Path) -> list[list[str]]:
    try:
        return [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return []


def _socket_of_job(wanted: frozenset[str], job_dir: Path, uid: int, proc: Path) -> Steps[str | None]:
    """The one of these sockets that a process with the job's environment and account has open. Raises
    ConnectionRefusedError if its processes have too many files open to look through."""
    mark = f"CORRAL_JOB_DIR={job_dir}".encode()
    left = MAX_DESCRIPTORS
    with os.scandir(proc) as entries:
        processes = [Path(entry.path) for entry in entries if entry.name.isdigit()]
    for number, process in enumerate(processes):
        if number % _PAUSE_EVERY == 0:
            yield
        try:
            if process.stat().st_uid != uid:
                continue
            with (process / "environ").open("rb") as file:
                if mark not in file.read(_MAX_ENVIRONMENT).split(b"\0"):
                    continue
            with os.scandir(process / "fd") as links:
                for link in links:
                    left -= 1
                    if left < 0:
                        raise ConnectionRefusedError(f"the job has more than {MAX_DESCRIPTORS} files open")
                    if left % _PAUSE_EVERY == 0:
                        yield
                    if (target := _target(link.path)) in wanted:
                        return target
        except ConnectionRefusedError:
            raise
        except OSError:
            continue  # it has ended, or belongs to another account
    return None


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # it was closed
