"""A look-up at a host that never answers leaves nothing on the server."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from corral.control.launch.git_checkout import FAILED, GitAccess, resolve_command
from corral.server.jobs import git_sources


@pytest.fixture
def key(tmp_path: Path) -> str:
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return file.read_text()


def agents() -> list[str]:
    """The SSH agents of look-ups, by their command lines."""
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if line.startswith("ssh-agent") and "/corral-git." in line]


def test_a_host_that_says_nothing_leaves_no_agent_with_the_key_and_no_directory(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_sources, "_RESOLVE_SECONDS", 2.0)
    places, running = set(Path("/tmp").glob("corral-git.*")), agents()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        command = resolve_command(f"ssh://git@127.0.0.1:{port}/team/project.git", "main")
        env = {"PATH": os.environ["PATH"], **GitAccess(key=key).environment()}
        code, output = git_sources._output(command, env)
    assert (code not in (0, FAILED), output) == (True, "")
    assert set(Path("/tmp").glob("corral-git.*")) <= places
    assert set(agents()) <= set(running)
