"""Ports of the loopback address belong to no user: neither a tunnel nor an app leads to a program of another one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.engines.workbenches.app_host import listener_of
from corral.server.workbenches import job_ports
from corral.server.workbenches.job_ports import connect_to, listener_steps

PROGRAM = """
import os, socket, sys
if len(sys.argv) > 1:
    os.setuid(int(sys.argv[1]))
with socket.socket() as listening:
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    sys.stdin.read()
"""
OTHER_ACCOUNT = 65534


@contextmanager
def program(job_dir: Path | None, *arguments: str) -> Iterator[int]:
    """A program that listens, with the environment of a job; its port."""
    env = {"PATH": os.environ["PATH"], **({"CORRAL_JOB_DIR": str(job_dir)} if job_dir is not None else {})}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


def listener(port: int, job_dir: Path, uid: int) -> str:
    steps = listener_steps(port, job_dir, uid)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return str(end.value)


def connected(port: int, job_dir: Path, uid: int) -> None:
    async def find() -> str:
        return listener(port, job_dir, uid)

    async def connect() -> None:
        (await connect_to(port, find)).close()

    asyncio.run(connect())


def test_only_a_program_of_the_job_is_reached(tmp_path: Path) -> None:
    uid = os.getuid()
    with program(tmp_path / "j-1") as port:
        assert listener(port, tmp_path / "j-1", uid) == "127.0.0.1"
        connected(port, tmp_path / "j-1", uid)
        assert listener_of(port, uid) == "127.0.0.1"
        with pytest.raises(ConnectionRefusedError, match="no program of the job"):
            connected(port, tmp_path / "j-2", uid)
    with program(None) as port, pytest.raises(ConnectionRefusedError):
        connected(port, tmp_path / "j-1", uid)
    with pytest.raises(ConnectionRefusedError):
        listener(port, tmp_path / "j-1", uid)


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs programs as other accounts: run as root")
def test_a_program_of_another_account_with_the_environment_of_the_job_is_not_reached(tmp_path: Path) -> None:
    with program(tmp_path / "j-1", str(OTHER_ACCOUNT)) as port:
        with pytest.raises(ConnectionRefusedError):
            connected(port, tmp_path / "j-1", os.getuid())
        assert listener_of(port, os.getuid()) is None
        assert listener_of(port, OTHER_ACCOUNT) == "127.0.0.1"


def test_a_job_with_very_many_open_files_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_ports, "MAX_DESCRIPTORS", 1)
    with program(tmp_path / "j-1") as port, pytest.raises(ConnectionRefusedError, match="more than 1 files open"):
        listener(port, tmp_path / "j-1", os.getuid())
