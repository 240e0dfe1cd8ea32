"""Tests for the SSH server of a workbench, and for the path of the socket beside it."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from corral.engines.workbenches.program.services import socket_path
from corral.engines.workbenches.program.ssh_server import SESSION_VARIABLE, Sshd, session_script

#: below those that the kernel gives to outgoing connections
PORTS = [21000, 21999]


def test_login_gets_the_environment_of_the_job(tmp_path: Path) -> None:
    values = {"GREETING": 'it\'s "me"\n$HOME `id` \\', "CUDA_VISIBLE_DEVICES": "0,3", "TERM": "dumb", "not a name": "x"}
    script = tmp_path / "session"
    script.write_text(session_script(values, tmp_path))
    command = f'printf "%s|%s|%s|%s" "$GREETING" "$CUDA_VISIBLE_DEVICES" "$TERM" "$PWD"; echo ${SESSION_VARIABLE} >&2'
    env = {"PATH": os.environ["PATH"], "SSH_ORIGINAL_COMMAND": command, "TERM": "xterm", "SHELL": "/bin/sh"}
    done = subprocess.run(["/bin/sh", str(script)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{values['GREETING']}|0,3|xterm|{tmp_path}"
    assert done.stderr.strip().isdigit()


def test_socket_path_that_is_too_long_leads_through_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert socket_path() == f"{tmp_path}/jupyter.sock"
    deep = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert len(socket_path()) < 107
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_path())
    assert (deep / "jupyter.sock").is_socket()


def test_ssh_server_keeps_its_port_while_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_ssh_server_accepts_only_its_own_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sshd = Sshd("/usr/sbin/sshd", home=tmp_path / "100%", listen="127.0.0.1", ports=PORTS, root=tmp_path)
    lines = sshd._config().splitlines()
    assert f"AllowUsers {sshd.account}" in lines
    assert "PasswordAuthentication no" in lines
    assert f'AuthorizedKeysFile "{tmp_path}/100%%/authorized_keys"' in lines
