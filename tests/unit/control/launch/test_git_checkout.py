"""The script that fetches a commit, under the shells that nodes and images have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from corral.control.launch.git_checkout import FAILED, GitAccess, checkout_command, resolve_command

SHELLS = [["/bin/sh"], ["bash"], ["busybox", "sh"]]
URL = "https://127.0.0.1:9/team/project.git"
COMMIT = "0" * 40
#: Everything that the script calls beside git and ssh.
TOOLS = ("base64", "cat", "env", "head", "mkdir", "mktemp", "rm", "sed", "tail", "tr")


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """Directories of programs, without git."""
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(found)
    return str(tmp_path / "bin")


def run(command: Sequence[str], path: str, access: GitAccess, **env: str) -> subprocess.CompletedProcess[str]:
    values: Mapping[str, str] = {"PATH": path, **access.environment(), **env}
    return subprocess.run(command, env=values, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_host_that_does_not_answer_is_said_and_nothing_is_left(shell: list[str], tmp_path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed: run scripts/install-test-servers as root")
    left = set(Path("/tmp").glob("corral-git.*"))
    commands = (
        resolve_command(URL, "main"),
        checkout_command(URL, "main", COMMIT, "", ["echo", "ran"]),
        checkout_command(URL.replace("https", "ssh"), "main", COMMIT, "", ["echo", "ran"]),
    )
    for command in commands:
        done = run([*shell, *command[1:]], os.environ["PATH"], GitAccess(token="t0ken"), CORRAL_JOB_DIR=str(tmp_path))
        assert (done.returncode, done.stderr) == (FAILED, "")
        assert done.stdout == f"corral: git: the host of {command[5]} does not answer\n"
    assert set(Path("/tmp").glob("corral-git.*")) <= left


def test_a_node_without_git_says_so(bare_path: str, tmp_path: Path) -> None:
    done = run(checkout_command(URL, "", COMMIT, "", ["true"]), bare_path, GitAccess(), CORRAL_JOB_DIR=str(tmp_path))
    assert done.returncode == FAILED
    assert done.stdout == "corral: git: the program git is not installed here, on the node or in the image\n"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_copy_of_the_same_commit_is_used_again_without_the_network(shell: list[str], tmp_path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed: run scripts/install-test-servers as root")
    place = tmp_path / "source-2"
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "corral-commit").write_text(f"{COMMIT}\n")
    (place / "a b").mkdir()
    program = ["sh", "-c", 'pwd; echo "$1"; env', "name", "two  words $HOME"]
    command = [*shell, *checkout_command(URL, "v1", COMMIT, "a b", program)[1:]]
    access = GitAccess(token="t0ken", authorities="pem", pinned="x")
    done = run(command, os.environ["PATH"], access, CORRAL_JOB_DIR=str(tmp_path), CORRAL_RANK="2")
    lines = done.stdout.splitlines()
    assert lines[:3] == [f"corral: git: {URL} at {COMMIT} (v1)", str(place / "a b"), "two  words $HOME"]
    assert [line for line in lines if "CORRAL_GIT" in line] == [f"CORRAL_GIT_COMMIT={COMMIT}"]
    assert "dDBrZW4" not in done.stdout


@pytest.mark.parametrize("user", ["http", "https", "git"])
def test_the_client_of_ssh_gets_its_settings_whatever_the_user_is_called(user: str, tmp_path: Path) -> None:
    """Without them it would connect to whatever the name means now, with the keys of the account."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/words\nexit 255\n')
    ssh.chmod(0o755)
    access = GitAccess(pinned="-o HostName=203.0.113.7")
    command = resolve_command(f"{user}@git.example.org:team/project.git", "main")
    done = run(command, f"{ssh.parent}:{os.environ['PATH']}", access)
    words = (tmp_path / "words").read_text().splitlines()
    assert done.returncode == FAILED
    assert {"HostName=203.0.113.7", "StrictHostKeyChecking=yes", "IdentityFile=none"} <= set(words)
