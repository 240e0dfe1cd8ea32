"""Connections to ports of a job's programs on this machine.

A port of the loopback address may belong to any program. It counts as the job's only if the process that listens there
has the account of the job's directory and the job's environment: otherwise a user could reach other programs of the
machine, or be answered by a program of another user.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_LISTENS = "0A"
_HOSTS = {
    "tcp": {"0100007F": "127.0.0.1", "00000000": "127.0.0.1"},
    "tcp6": {"0" * 24 + "01000000": "::1", "0" * 32: "::1"},
}
_MAX_ENVIRONMENT = 1 << 20


def connect_to(port: int, job_dir: Path, uid: int, proc: Path = Path("/proc")) -> socket.socket:
    """A connection to a port of a job's program, for a thread. Raises OSError."""
    address = listener(port, job_dir, uid, proc)
    connection = socket.create_connection((address, port), timeout=10.0)
    try:
        # The program may have ended in between, and another one have taken the port.
        listener(port, job_dir, uid, proc)
    except OSError:
        connection.close()
        raise
    connection.setblocking(False)
    return connection


def listener(port: int, job_dir: Path, uid: int, proc: Path = Path("/proc")) -> str:
    """The address at which the job listens. Raises ConnectionRefusedError."""
    listening = {
        fields[9]: (address, int(fields[7]))
        for table, hosts in _HOSTS.items()
        for fields in _rows(proc / "net" / table)
        if fields[3] == _LISTENS
        and int(fields[1].rpartition(":")[2], 16) == port
        and (address := hosts.get(fields[1].rpartition(":")[0])) is not None
    }
    for inode, (address, owner) in listening.items():
        if owner == uid and _is_of_job(inode, job_dir, uid, proc):
            return address
    raise ConnectionRefusedError(f"no program of the job listens at port {port} of the loopback address")


def _rows(table: Path) -> list[list[str]]:
    try:
        return [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return []


def _is_of_job(inode: str, job_dir: Path, uid: int, proc: Path) -> bool:
    """Whether a process with the job's environment and account has the socket open."""
    mark = f"CORRAL_JOB_DIR={job_dir}".encode()
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        process = Path(entry.path)
        try:
            if process.stat().st_uid != uid:
                continue
            with (process / "environ").open("rb") as file:
                if mark not in file.read(_MAX_ENVIRONMENT).split(b"\0"):
                    continue
            if any(os.readlink(link.path) == f"socket:[{inode}]" for link in os.scandir(process / "fd")):
                return True
        except OSError:
            continue  # it has ended, or belongs to another account
    return False
