"""A job fills the directory of its secrets: the files are removed nevertheless, and no other job is disturbed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until

pytestmark = pytest.mark.slow

VALUE = "hush-3f9a"


@pytest.fixture
def eves(machine: SharedMachine) -> SharedMachine:
    with machine.server.http("eve") as http:
        http.put("/secrets/deploy", json={"value": VALUE}).raise_for_status()
    return machine


def notes(machine: SharedMachine) -> list[str]:
    return os.listdir(machine.server.home / "secret-files")


@pytest.mark.parametrize(
    "plant",
    [
        "mkdir -p deep/er; touch deep/er/x",
        "i=0; while [ $i -lt 1100 ]; do : >f$i; i=$((i+1)); done",
        "rm -f deploy; mkfifo deploy",
        "mkdir closed; touch closed/x; chmod 0 closed; chmod 500 .",
    ],
)
def test_files_of_secrets_are_removed_whatever_the_job_put_beside_them(eves: SharedMachine, plant: str) -> None:
    script = f'cd "$(dirname "$DEPLOY_FILE")" && {plant}; echo "at=$DEPLOY_FILE"'
    ended, log = eves.run("eve", script, secrets=["deploy:file"])
    assert ended["state"] == "completed", log
    path = Path(log.rpartition("at=")[2].strip())
    wait_until(lambda: not path.parent.exists(), "the directory of the secrets is removed")
    wait_until(lambda: notes(eves) == [], "nothing is left to do")


@pytest.mark.parametrize(
    "plant",
    [
        "rm -rf secrets; ln -s /root secrets",
        "rm -rf secrets; mkfifo secrets",
        "rm -rf secrets/*; mkdir -p secrets/deploy/x",
    ],
)
def test_files_in_place_of_secrets_do_not_stop_the_next_attempt(eves: SharedMachine, plant: str) -> None:
    script = (
        f'cd "$(dirname "$DEPLOY_FILE")/.." && [ -e once ] || {{ touch once; {plant}; exit 3; }}; cat "$DEPLOY_FILE"'
    )
    ended, log = eves.run("eve", script, secrets=["deploy:file"], max_retries=1, retry_on=["exit"])
    assert ended["state"] == "completed", (ended, log)
    ran, _ = eves.run("ann", "true")
    assert ran["state"] == "completed"
