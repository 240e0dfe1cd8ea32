"""A scientist asks for a container that shows another's files: its directories are opened with the account's rights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.conftest import SharedMachine
from tests.servers.images import busybox_image, needs_podman

pytestmark = [pytest.mark.slow, needs_podman]


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    with busybox_image() as address:
        yield address


@pytest.fixture
def secret(machine: SharedMachine) -> Path:
    """A file in a volume of ann's that is not shared."""
    with machine.server.http("ann") as http:
        body = {"name": "data", "type": "filesystem", "size": "1GiB"}
        volume = http.post("/volumes", json=body).raise_for_status().json()["id"]
    ended, log = machine.run("ann", "echo secret > $CORRAL_MOUNT_DATA/secret", mounts=["data:/data"])
    assert ended["state"] == "completed", log
    return machine.server.home / "volumes" / str(volume) / "data" / "secret"


def message_of(machine: SharedMachine, job_id: str) -> str:
    with machine.server.http("eve") as http:
        attempts = http.get(f"/jobs/{job_id}/attempts").raise_for_status().json()["items"]
    return str(max(attempts, key=lambda attempt: attempt["number"])["message"])


def test_a_working_directory_is_opened_as_the_account(machine: SharedMachine, image: str, secret: Path) -> None:
    for workdir in (secret.parent, machine.server.home, secret.parent.parent.parent):
        ended, log = machine.run(
            "eve", f"cat {secret}; echo eve > {secret}; cat {secret}", image=image, workdir=str(workdir)
        )
        assert ended["state"] == "failed", log
        assert "secret" not in log
        message = message_of(machine, ended["id"])
        assert "cannot be mounted in the container: Permission denied" in message or "not the job's own" in message
    assert secret.read_text() == "secret\n"


def test_a_link_to_a_working_directory_leads_no_further(machine: SharedMachine, image: str, secret: Path) -> None:
    machine.run("eve", f"ln -s {secret.parent} /tmp/eve-link-$$; echo /tmp/eve-link-$$")
    ended, log = machine.run("eve", f"ln -s {secret.parent} $CORRAL_OUTPUT_DIR/way; echo $CORRAL_OUTPUT_DIR/way")
    way = log.strip()
    ended, log = machine.run("eve", f"cat {way}/secret", image=image, workdir=way)
    assert ended["state"] == "failed"
    assert "secret\n" not in log


@pytest.mark.parametrize("name", ["outputs", "checkpoints"])
def test_a_directory_that_was_replaced_is_not_mounted(
    machine: SharedMachine, image: str, secret: Path, name: str
) -> None:
    """The container runs once; then its owner puts a link to another's volume in the place of a directory."""
    ended, log = machine.run("eve", "echo ran", image=image, max_retries=0)
    assert (ended["state"], log) == ("completed", "ran\n")
    held = machine.submit("eve", f"cat /never/there $CORRAL_JOB_DIR/{name}/secret; sleep 600", image=image)
    machine.wait("eve", held, "running")
    place = machine.server.home / "jobs" / "000000" / held / name
    ended, log = machine.run("eve", f"mv {place} {place}.old && ln -s {secret.parent} {place}")
    assert ended["state"] == "completed", log
    with machine.server.http("eve") as http:
        http.post(f"/jobs/{held}/requeue").raise_for_status()
    ended = machine.wait("eve", held)
    assert ended["state"] == "failed"
    assert "a link is in the way" in message_of(machine, held)
    assert "secret\n" not in machine.log("eve", held)


def test_anothers_working_directory_is_closed_and_ones_own_is_not(machine: SharedMachine, image: str) -> None:
    private = machine.place / "private"
    private.mkdir(mode=0o700)
    mine = machine.place / "mine"
    mine.mkdir()
    mine.chmod(0o777)
    ended, log = machine.run("eve", "ls", image=image, workdir=str(private))
    assert ended["state"] == "failed"
    assert "Permission denied" in message_of(machine, ended["id"])
    (machine.place / "way").symlink_to(mine)
    ended, log = machine.run("eve", "echo made > made; pwd", image=image, workdir=str(machine.place / "way"))
    assert (ended["state"], log) == ("completed", f"{machine.place}/way\n")
    assert (mine / "made").read_text() == "made\n"
