"""The program that runs in a workbench, part by part; whole it is run in tests/e2e."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from corral.control.ports import Tool
from corral.engines.workbenches import workbench_host
from corral.engines.workbenches.tool_probe import LocalTools
from corral.engines.workbenches.workbench_host import (
    SESSION_VARIABLE,
    Activity,
    Sshd,
    child_processes,
    descendants,
    environment,
    session_script,
    socket_path,
)

#: below those that the kernel gives to outgoing connections
PORTS = [21000, 21999]


def program(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_it_runs_on_old_pythons_with_the_standard_library_alone() -> None:
    source = Path(workbench_host.__file__).read_text()
    ast.parse(source, feature_version=(3, 9))
    isolated = [sys.executable, "-IS", "-c", f"import runpy; runpy.run_path({workbench_host.__file__!r})"]
    subprocess.run(isolated, check=True)


def test_the_programs_of_a_virtual_environment_come_first() -> None:
    env = environment({"PATH": "/usr/bin:/opt/venv/bin:/bin", "HOME": "/h"}, "/opt/venv")
    assert env == {"PATH": "/opt/venv/bin:/usr/bin:/bin", "HOME": "/h", "VIRTUAL_ENV": "/opt/venv"}
    assert environment({"PATH": "/bin"}, None) == {"PATH": "/bin"}


def test_the_probe_looks_where_the_workbench_will_look(tmp_path: Path) -> None:
    tools = LocalTools({"PATH": str(tmp_path / "bin")}, has_accounts=False)
    both = [Tool.JUPYTER, Tool.SSHD]
    nowhere = {"PATH": str(tmp_path / "nowhere")}
    assert Tool.JUPYTER in tools.missing(both, venv=None, env=nowhere)
    program(tmp_path / "venv" / "bin", "jupyter-lab")
    assert Tool.JUPYTER not in tools.missing(both, venv=str(tmp_path / "venv"), env=nowhere)
    program(tmp_path / "old" / "bin", "jupyter-notebook")
    assert Tool.JUPYTER not in tools.missing(both, venv=None, env={"PATH": str(tmp_path / "old" / "bin")})


def test_root_does_not_look_into_what_a_user_names(tmp_path: Path) -> None:
    """Whether a file is there could be another's secret: the workbench itself looks, with its account's rights."""
    tools = LocalTools({"PATH": str(tmp_path / "bin")}, has_accounts=True)
    program(tmp_path / "venv" / "bin", "jupyter-lab")
    for venv in (str(tmp_path / "venv"), str(tmp_path / "nowhere")):
        assert tools.missing([Tool.JUPYTER], venv=venv, env={}) == []


def test_sshd_is_of_no_use_without_keygen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench_host, "_SBIN", (str(tmp_path / "sbin"),))
    env = {"PATH": str(tmp_path / "bin")}
    program(tmp_path / "sbin", "sshd")
    assert workbench_host.find_sshd(env) is None
    program(tmp_path / "bin", "ssh-keygen")
    assert workbench_host.find_sshd(env) == str(tmp_path / "sbin" / "sshd")


def test_a_login_gets_the_jobs_environment_as_it_is(tmp_path: Path) -> None:
    values = {"GREETING": 'it\'s "me"\n$HOME `id` \\', "CUDA_VISIBLE_DEVICES": "0,3", "TERM": "dumb", "not a name": "x"}
    script = tmp_path / "session"
    script.write_text(session_script(values, tmp_path))
    command = f'printf "%s|%s|%s|%s" "$GREETING" "$CUDA_VISIBLE_DEVICES" "$TERM" "$PWD"; echo ${SESSION_VARIABLE} >&2'
    env = {"PATH": os.environ["PATH"], "SSH_ORIGINAL_COMMAND": command, "TERM": "xterm", "SHELL": "/bin/sh"}
    done = subprocess.run(["/bin/sh", str(script)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{values['GREETING']}|0,3|xterm|{tmp_path}"
    assert done.stderr.strip().isdigit()


def test_a_path_that_is_too_long_for_a_socket_goes_by_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert socket_path() == f"{tmp_path}/jupyter.sock"
    deep = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert len(socket_path()) < 107
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_path())
    assert (deep / "jupyter.sock").is_socket()


def test_the_port_stays_while_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sshd = Sshd("/usr/sbin/sshd", home=tmp_path, listen="127.0.0.1", ports=PORTS, root=tmp_path)
    first = sshd._free_port()
    (tmp_path / "ssh_port").write_text(str(first))
    assert sshd._free_port() == first
    with socket.socket() as taken:
        # As servers do: what spoke there a moment ago does not count.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first))
        taken.listen()
        assert sshd._free_port() != first


def test_only_the_own_account_is_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sshd = Sshd("/usr/sbin/sshd", home=tmp_path / "100%", listen="127.0.0.1", ports=PORTS, root=tmp_path)
    lines = sshd._config().splitlines()
    assert f"AllowUsers {sshd.account}" in lines
    assert "PasswordAuthentication no" in lines
    assert f'AuthorizedKeysFile "{tmp_path}/100%%/authorized_keys"' in lines


# ---------------------------------------------------------------- activity


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


def test_a_service_itself_is_no_use(child: subprocess.Popen[str]) -> None:
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


def test_a_login_is_use_for_as_long_as_it_lasts() -> None:
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
def test_jupyter_says_when_it_was_used(jupyter: float, busy: bool, used_at: float) -> None:
    activity = Activity(100.0)
    activity.look(200.0, set(descendants(os.getpid(), child_processes())), jupyter)
    assert (activity.is_busy, activity.used_at) == (busy, used_at)
