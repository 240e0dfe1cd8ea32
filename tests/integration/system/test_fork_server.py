"""Tests start servers and commands as copies of one process: a copy must be what a fresh process would be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from tests.servers.fork_server import ENTRY_POINT, ForkedProcess, fork_server

PROGRAM = """
import json, os, random, signal, sys, threading
print(json.dumps({
    "argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "input": sys.stdin.read(),
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
    "sigint": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "sigchld": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
    "threads": threading.active_count(), "is_leader": os.getpid() == os.getsid(0),
}, sort_keys=True))
print("to the other one", file=sys.stderr)
sys.exit(7)
"""


def run(program: Path, *args: str, cwd: Path, **env: str) -> tuple[int, str, str]:
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(b"what is given")
        given.seek(0)
        process = fork_server().start([str(program), *args], env=env, cwd=cwd, stdin=given, stdout=out, stderr=err)
        code = process.wait(timeout=60)
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(), err.read().decode()


def test_a_copy_sees_what_a_fresh_process_sees(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = {"PATH": os.environ["PATH"], "HERE": "yes", "LC_ALL": "C.UTF-8"}
    fresh = subprocess.run(
        [sys.executable, str(program), "a", "b c"],
        input="what is given",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
    )
    copied = run(program, "a", "b c", cwd=tmp_path, **env)
    assert copied == (fresh.returncode, fresh.stdout, fresh.stderr) == (7, fresh.stdout, "to the other one\n")


def test_copies_throw_dice_of_their_own(tmp_path: Path) -> None:
    program = tmp_path / "dice.py"
    program.write_text("import random; print(random.random())")
    assert len({run(program, cwd=tmp_path)[1] for _ in range(3)}) == 3


def sleeper(tmp_path: Path) -> ForkedProcess:
    program = tmp_path / "sleeper.py"
    program.write_text("import time; time.sleep(60)")
    with Path(os.devnull).open("r+b") as nothing:
        return fork_server().start([str(program)], env={}, stdin=nothing, stdout=nothing, stderr=nothing)


def test_forked_process_is_waited_for_and_killed_like_any_process(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.01)
    process.terminate()
    assert process.wait(timeout=60) == process.poll() == process.returncode == -signal.SIGTERM
    process.kill()
    other = sleeper(tmp_path)
    other.kill()
    assert other.wait(timeout=60) == -signal.SIGKILL


def test_the_command_line_says_the_same_either_way(tmp_path: Path) -> None:
    """Once for all tests that take the short way: the same words and the same exit code as from a shell."""
    args = ["submit", "--gpus", "many"]
    env = {"PATH": os.environ["PATH"], "CORRAL_HOME": str(tmp_path), "COLUMNS": "100"}
    fresh = subprocess.run(
        [sys.executable, *ENTRY_POINT, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    with TemporaryFile() as out, Path(os.devnull).open("rb") as nothing:
        copy = fork_server().start([*ENTRY_POINT, *args], env=env, cwd=tmp_path, stdin=nothing, stdout=out, stderr=out)
        code = copy.wait(timeout=60)
        out.seek(0)
        assert (code, out.read().decode()) == (fresh.returncode, fresh.stderr)
    assert code == 2
