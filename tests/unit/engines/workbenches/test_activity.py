"""Tests for the detection of use of a workbench."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from corral.engines.workbenches.program.activity import Activity, child_processes, descendants
from corral.engines.workbenches.program.ssh_server import SESSION_VARIABLE


@pytest.fixture
def child() -> subprocess.Popen[str]:
    """A process that says when it has begun, and then follows its commands."""
    code = (
        "import sys, time\nprint('up', flush=True)\nsys.stdin.readline()\n"
        "until = time.process_time() + 0.2\nwhile time.process_time() < until: pass\n"
        "print('done', flush=True)\nsys.stdin.readline()\n"
    )
    env = {**os.environ, SESSION_VARIABLE: ""}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )


def test_cpu_time_counts_as_use_and_waiting_does_not(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdout.readline()
        activity = Activity(0.0)
        activity.look(1.0, set(), 0.0)
        activity.look(2.0, set(), 0.0)
        assert not activity.is_busy
        assert activity.used_at == 0.0
        child.stdin.write("compute\n")
        child.stdin.flush()
        child.stdout.readline()
        activity.look(3.0, set(), 0.0)
        assert activity.is_busy
        assert activity.used_at == 3.0
        activity.look(4.0, set(), 0.0)
        assert not activity.is_busy
        child.stdin.write("end\n")


def test_cpu_time_of_a_service_does_not_count_as_use(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdout.readline()
        activity = Activity(0.0)
        activity.look(1.0, {child.pid}, 0.0)
        child.stdin.write("compute\n")
        child.stdin.flush()
        child.stdout.readline()
        activity.look(2.0, {child.pid}, 0.0)
        assert not activity.is_busy
        child.stdin.write("end\n")


def test_login_counts_as_use_until_it_ends() -> None:
    env = {**os.environ, SESSION_VARIABLE: "17"}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=env) as login:
        assert login.stdin is not None
        activity = Activity(0.0)
        # Between fork and exec it still has our own environment.
        while not activity.sessions:
            activity.look(1.0, set(), 0.0)
        assert activity.is_busy
        login.stdin.close()
    activity.look(9.0, set(), 0.0)
    assert (activity.sessions, activity.used_at) == (0, 1.0)


@pytest.mark.parametrize(
    ("jupyter", "busy", "used_at"), [(0.0, False, 100.0), (150.0, False, 150.0), (float("inf"), True, 200.0)]
)
def test_activity_of_jupyter_counts_as_use(jupyter: float, busy: bool, used_at: float) -> None:
    activity = Activity(100.0)
    activity.look(200.0, set(descendants(os.getpid(), child_processes())), jupyter)
    assert (activity.is_busy, activity.used_at) == (busy, used_at)
