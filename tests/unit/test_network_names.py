"""Names of the network are held by one process of this machine, whatever root it runs in."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.servers.network_names import held

NAME = f"corral-test-{os.getpid()}"
TRY = "import sys; from tests.servers.network_names import held; sys.exit(0 if held(sys.argv[1]) else 7)"


def from_elsewhere(command: tuple[str, ...] = ()) -> int:
    return subprocess.run([*command, sys.executable, "-c", TRY, NAME], check=False).returncode


def test_a_name_is_held_once() -> None:
    assert from_elsewhere() == 0
    lock = held(NAME)
    assert lock is not None
    assert held(NAME) is None
    assert from_elsewhere() == 7
    if os.geteuid() == 0:
        # With other files, as in a root of its own.
        hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh")
        assert from_elsewhere(hidden) == 7
    lock.close()
    assert from_elsewhere() == 0
