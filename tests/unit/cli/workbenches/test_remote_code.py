"""The entry that `corral code` writes for SSH, as OpenSSH reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from corral.cli.workbenches.remote_code import write_entry
from corral.client.views import SshView, WorkbenchView


def view(name: str, number: int) -> WorkbenchView:
    return cast("WorkbenchView", {"id": f"j-{number}", "name": name})


def ssh(port: int, **others: Any) -> SshView:
    made = {"host": "node7", "port": port, "account": "ann", "host_key": "ssh-ed25519 AAAA", **others}
    return cast("SshView", made)


def test_entries_are_added_and_replaced_and_the_users_own_stay(tmp_path: Path) -> None:
    directory = tmp_path / ".ssh"
    directory.mkdir()
    (directory / "config").write_text("Host mine\n  Port 7\n")
    assert write_entry(directory, view("bench", 1), ssh(2201)) == "corral-bench"
    write_entry(directory, view("other", 2), ssh(2202))
    write_entry(directory, view("bench", 1), ssh(2299))
    own = (directory / "corral" / "config").read_text()
    assert own.count("Host corral-bench\n") == own.count("Host corral-other\n") == 1
    assert "Port 2299" in own
    assert "Port 2201" not in own
    config = (directory / "config").read_text()
    assert config == "Include ~/.ssh/corral/config\n\nHost mine\n  Port 7\n"
    assert (directory / "corral" / "j-1.known_hosts").read_text() == "corral-j-1 ssh-ed25519 AAAA\n"
    assert (directory / "corral" / "config").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh: install it (Debian package: openssh-client)")
def test_openssh_reads_the_entry(tmp_path: Path) -> None:
    write_entry(tmp_path, view("bench", 1), ssh(2201))
    config = str(tmp_path / "corral" / "config")
    found = subprocess.run(["ssh", "-G", "-F", config, "corral-bench"], check=True, capture_output=True, text=True)
    lines = set(found.stdout.splitlines())
    assert {"hostname node7", "port 2201", "user ann", "hostkeyalias corral-j-1"} <= lines
    assert {"stricthostkeychecking true"} & lines or {"stricthostkeychecking yes"} & lines
