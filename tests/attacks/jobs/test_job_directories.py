"""A job fills its directory with links, pipes and others' files: the server, which is root, is not led astray."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until
from tests.servers.corral_server import plain_http

pytestmark = pytest.mark.slow


@pytest.fixture
def victim(machine: SharedMachine) -> Path:
    """A file that only root may read or write."""
    path = machine.place / "root-only"
    path.write_text("root's own words")
    path.chmod(0o600)
    return path


def job_dir(machine: SharedMachine, job_id: str) -> Path:
    return machine.server.home / "jobs" / "000000" / job_id


def held_task(machine: SharedMachine) -> str:
    """The job of a task of eve's, which waits for its program."""
    with machine.server.http("eve") as http:
        job = http.post("/tasks", json={"task": "one-1", "gpus": 1}).raise_for_status().json()["job"]
    machine.wait("eve", job["id"], "running")
    return str(job["id"])


def is_beating(machine: SharedMachine) -> None:
    """The controller takes requests and starts jobs of others."""
    with plain_http(machine.server.url, timeout=5) as http:
        assert http.get("/readyz").is_success
    ended, log = machine.run("ann", "echo still here")
    assert (ended["state"], log) == ("completed", "still here\n")


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_program_is_handed_over_past_links_and_pipes(machine: SharedMachine, victim: Path, kind: str) -> None:
    job_id = held_task(machine)
    assert machine.server.process is not None
    place = job_dir(machine, job_id)
    # The name that a draft of the server's once had: its process id can be seen by everybody.
    draft = f"{place}/.program.json.{machine.server.process.pid}"
    ended, log = machine.run("eve", f"ln -s {victim} {draft}" if kind == "link" else f"mkfifo {draft}")
    assert ended["state"] == "completed", log
    with machine.server.http("eve") as http:
        answer = http.post("/tasks/one-1/program", json={"command": ["/bin/echo", "the program ran"]})
    assert answer.is_success, answer.text
    machine.wait("eve", job_id)
    assert "the program ran" in machine.log("eve", job_id)
    assert victim.read_text() == "root's own words"
    is_beating(machine)


def test_a_program_is_not_written_through_a_link(machine: SharedMachine, victim: Path) -> None:
    job_id = held_task(machine)
    place = job_dir(machine, job_id)
    machine.run("eve", f"ln -s {victim} {place}/program.json")
    with machine.server.http("eve") as http:
        answer = http.post("/tasks/one-1/program", json={"command": ["/bin/true"]})
    assert answer.status_code == 409
    assert victim.read_text() == "root's own words"
    is_beating(machine)


@pytest.mark.parametrize(
    "plant",
    [
        "rmdir checkpoints; ln -s /nowhere/at/all checkpoints",
        "rmdir outputs; ln -s /root outputs",
        "rmdir checkpoints; mkfifo checkpoints",
        "rmdir outputs; touch outputs",
    ],
)
def test_a_directory_that_was_replaced_ends_the_next_attempt_and_nothing_else(
    machine: SharedMachine, plant: str
) -> None:
    job_id = machine.submit("eve", f"cd $CORRAL_JOB_DIR && {plant}; sleep 600")
    machine.wait("eve", job_id, "running")
    changed = plant.split()[1].rstrip(";")
    place = job_dir(machine, job_id) / changed
    wait_until(lambda: place.is_symlink() or (place.exists() and not place.is_dir()), "it is replaced")
    with machine.server.http("eve") as http:
        http.post(f"/jobs/{job_id}/requeue").raise_for_status()
    ended = machine.wait("eve", job_id)
    assert ended["state"] == "failed", ended
    with machine.server.http("eve") as http:
        attempts = http.get(f"/jobs/{job_id}/attempts").raise_for_status().json()["items"]
    message = max(attempts, key=lambda attempt: attempt["number"])["message"]
    assert str(place) in message
    assert "a link is in the way" in message or "it is not a directory" in message
    is_beating(machine)
    machine.server.kill()
    machine.start()
    is_beating(machine)


def test_a_second_name_of_anothers_file_stays_the_others(machine: SharedMachine) -> None:
    """A file that everybody may write to is linked into a job's directory: the next launch gives the job its directory,
    and not that file."""
    board = machine.place / "board"
    board.write_text("everybody's")
    board.chmod(0o666)
    job_id = machine.submit("eve", f"ln {board} $CORRAL_JOB_DIR/board || exit 7; sleep 600")
    machine.wait("eve", job_id, "running")
    wait_until(lambda: board.stat().st_nlink == 2, "it is linked")
    with machine.server.http("eve") as http:
        http.post(f"/jobs/{job_id}/requeue").raise_for_status()
    # The second attempt finds the name taken.
    ended = machine.wait("eve", job_id)
    assert ended["exit_code"] == 7, ended
    assert board.stat().st_uid == os.geteuid()


def test_a_very_deep_directory_is_removed_with_its_job(machine: SharedMachine) -> None:
    deep = "cd $CORRAL_JOB_DIR; i=0; while [ $i -lt 1500 ]; do mkdir d && cd -P d || exit 1; i=$((i+1)); done"
    ended, log = machine.run("eve", deep)
    # What cannot be measured is over the limit, if it is looked at while the job still runs.
    assert ended["state"] == "completed" or ended["end_reason"] == "disk_quota", log
    place = job_dir(machine, ended["id"])
    assert place.is_dir()
    with machine.server.http("eve") as http:
        http.delete(f"/jobs/{ended['id']}").raise_for_status()
    wait_until(lambda: not place.exists(), "it is removed")
    # Directories are moved aside and removed in the background.
    aside = machine.server.home / "jobs" / ".removed"
    wait_until(lambda: not aside.exists() or not any(aside.iterdir()), "nothing of it is left")
    is_beating(machine)
