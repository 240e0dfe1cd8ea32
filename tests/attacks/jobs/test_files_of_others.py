"""A user's job tries to read files of the server and of another user."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import SharedMachine

pytestmark = pytest.mark.slow


def test_a_job_reads_neither_the_store_nor_the_files_of_another_job(machine: SharedMachine) -> None:
    ended, _ = machine.run("ann", "echo secret > $CORRAL_OUTPUT_DIR/secret; echo secret > secret; pwd")
    victim = machine.server.home / "jobs" / "000000" / ended["id"]
    script = f"cat {machine.server.home}/corral.db {victim}/outputs/secret; ls {victim}; ls {machine.server.home}; true"
    ended, log = machine.run("eve", script)
    assert ended["state"] == "completed"
    assert log.count("Permission denied") == 4, log
