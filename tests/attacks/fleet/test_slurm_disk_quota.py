"""A job on a Slurm cluster that fills the shared file system is stopped, wherever it writes."""

from __future__ import annotations

import pytest

from tests.attacks.slurm_machine import SlurmMachine

pytest_plugins = ("tests.servers.fixtures", "tests.attacks.slurm_fixtures")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_STAY = "exec sleep 300"
WAYS = {
    "its working directory": "head -c 60M /dev/zero > big",
    "the directory of its run": "head -c 60M /dev/zero > $CORRAL_RUN_DIR/big",
    "its outputs": "head -c 60M /dev/zero > $CORRAL_OUTPUT_DIR/big",
    "a directory that no other account may read": "mkdir -m 700 d; head -c 60M /dev/zero > d/big; chmod 0 d",
    "files without end": "i=0; while [ $i -lt 600 ]; do : > f$i; i=$((i+1)); done",
}


@pytest.mark.parametrize("attacked", ["programs"], indirect=True)
def test_a_job_over_its_limit_is_stopped(attacked: SlurmMachine) -> None:
    attacked.server.kill()
    config = attacked.server.home / "corral.yaml"
    config.write_text(config.read_text() + "disk: {job_limit: 50MiB, job_files: 500}\n")
    attacked.start()
    honest = attacked.submit("ann", f"head -c 40M /dev/zero > big; {_STAY}")
    running = {way: attacked.submit("eve", f"{script}\n{_STAY}", grace="1s") for way, script in WAYS.items()}
    for way, job in running.items():
        ended = attacked.wait("eve", job)
        assert (ended["state"], ended["end_reason"]) == ("failed", "disk_quota"), (way, ended)
        assert "stopped because" in ended["message"], way
    assert attacked.job("ann", honest)["state"] == "running"
