"""A private image that a node has already is of no use to those who may not pull it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.conftest import SharedMachine
from tests.servers.images import PODMAN, busybox_image, needs_podman
from tests.servers.registry import PrivateRegistry, private_registry

pytestmark = needs_podman

SECRET = "a-password-for-the-registry"


@pytest.fixture
def registry(machine: SharedMachine) -> Iterator[PrivateRegistry]:
    with private_registry("ann", SECRET) as running:
        # The registry speaks HTTP; a real one has a certificate.
        conf = machine.place / "registries.conf"
        conf.write_text(f'[[registry]]\nlocation = "{running.host}"\ninsecure = true\n')
        machine.server.kill()
        machine.start(CONTAINERS_REGISTRIES_CONF=str(conf))
        yield running
        subprocess.run([str(PODMAN), "rmi", "--force", running.image], check=False, capture_output=True)


@pytest.fixture
def pulled(machine: SharedMachine, registry: PrivateRegistry) -> str:
    """The address of an image that ann's login has brought to the node."""
    with machine.server.http("ann") as ann:
        body = {"registry": registry.host, "username": "ann", "secret": SECRET}
        ann.put("/registry-logins/mine", json=body).raise_for_status()
    job, log = machine.run("ann", "echo mine", image=registry.image)
    assert job["state"] == "completed", job
    assert log.endswith("mine\n")
    return registry.image


def image_id(address: str) -> str:
    command = [str(PODMAN), "image", "inspect", "--format", "{{.Id}}", address]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", ["address", "id", "short name"])
def test_anothers_private_image_is_refused_by_every_name(machine: SharedMachine, pulled: str, name: str) -> None:
    named = {"address": pulled, "id": image_id(pulled)[:20], "short name": "team/train:1"}[name]
    job, log = machine.run("eve", "echo stolen", image=named, max_retries=0)
    assert (job["state"], job["end_reason"]) == ("failed", "image_pull_error")
    assert "stolen" not in log


def test_a_login_that_the_registry_refuses_gives_nothing(machine: SharedMachine, pulled: str) -> None:
    with machine.server.http("eve") as eve:
        body = {"registry": pulled.partition("/")[0], "username": "ann", "secret": "a wrong guess"}
        eve.put("/registry-logins/guess", json=body).raise_for_status()
    job, log = machine.run("eve", "echo stolen", image=pulled, max_retries=0)
    assert job["end_reason"] == "image_pull_error"
    assert "stolen" not in log
    again, log = machine.run("ann", "echo still mine", image=pulled)
    assert again["state"] == "completed", "her own right is not touched"


def test_images_that_an_operator_put_on_the_node_serve_all_users(
    machine: SharedMachine, registry: PrivateRegistry
) -> None:
    with busybox_image() as address:
        # A pull of it with a login fails, and must not make it private.
        with machine.server.http("ann") as ann:
            body = {"registry": "localhost", "username": "ann", "secret": SECRET}
            ann.put("/registry-logins/local", json=body).raise_for_status()
        machine.run("ann", "echo no", image=address, max_retries=0)
        job, log = machine.run("eve", "echo for all", image=address)
        assert (job["state"], log) == ("completed", "for all\n")


def test_a_pull_that_died_half_way_leaves_nothing_open(machine: SharedMachine, registry: PrivateRegistry) -> None:
    """Imitates a supervisor that was killed between the end of the pull and the note about it."""
    rights = Path(machine.server.home) / "local" / "images"
    rights.mkdir(mode=0o700, exist_ok=True)
    login = ["--creds", f"ann:{SECRET}", "--tls-verify=false"]
    subprocess.run([str(PODMAN), "pull", *login, registry.image], check=True, capture_output=True)
    (rights / "pending-999999999").write_text(f"{registry.image}\n\n")
    job, _ = machine.run("eve", "echo stolen", image=registry.image, max_retries=0)
    assert job["end_reason"] == "image_pull_error"
    assert not list(rights.glob("pending-*"))
