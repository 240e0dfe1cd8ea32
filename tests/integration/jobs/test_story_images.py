"""Images as scientists use them: a name for an image, shared, run under a real Podman; logins kept encrypted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api import dump
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.servers.corral_server import CorralServer
from tests.servers.images import busybox_image, containers, needs_podman

pytestmark = [pytest.mark.slow, needs_podman]
SECRET = "a-token-for-the-registry"


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    with busybox_image() as address:
        yield address


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("images"), "--virtual-gpus", "2xA10") as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "ann")


@pytest.fixture(scope="module")
def bob(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "bob")


def test_an_image_is_named_shared_and_run(
    server: CorralServer, operator: Person, ann: Person, bob: Person, image: str, tmp_path: Path
) -> None:
    ann.ok("image", "create", "tools", image, "--description", "what I need")
    assert image in ann.ok("image", "ls")
    assert image in ann.ok("image", "show", "tools")
    job = ann.submit("--image", "tools", "--gpus", "1", "--", "sh", "-c", "echo in $(ls /bin/busybox)")
    ann.wait_for(job, "completed")
    assert ann.ok("logs", job) == "in /bin/busybox\n"
    assert "tools" in ann.ok("show", job)
    # Another does not see it, until it is shared.
    assert bob.read("image", "ls")["items"] == []
    ann.ok("image", "share", "tools", "--user", "bob")
    (seen,) = bob.read("image", "ls")["items"]
    assert (seen["name"], seen["owner"], seen["shared_users"]) == ("tools", "ann", [])
    file = tmp_path / "job.yaml"
    file.write_text("name: from-a-file\nimage: ann/tools\ncommand: [sh, -c, 'echo shared; exit 4']\n")
    job = bob.submit("-f", str(file))
    bob.wait_for(job, "failed")
    assert bob.ok("logs", job) == "shared\n"
    operator.ok("image", "create", "base", image, "--public")
    assert [item["name"] for item in bob.read("image", "ls")["items"]] == ["base", "tools"]
    ann.ok("image", "share", "tools", "--nobody")
    assert [item["name"] for item in bob.read("image", "ls")["items"]] == ["base"]
    ann.ok("image", "rm", "tools", "--yes")
    engine = hashlib.sha256(str((server.home / "local").resolve()).encode()).hexdigest()[:8]
    assert containers(engine) == [], "nothing is left of the jobs"


def test_a_pull_that_fails_is_reported_and_the_job_can_be_started_again(ann: Person, image: str) -> None:
    ann.ok("image", "create", "moved", "127.0.0.1:1/nothing/there:1")
    job = ann.submit("--image", "moved", "--retries", "0", "--", "echo", "at last")
    ann.wait_for(job, "failed")
    reported = ann.read("show", job)
    assert (reported["end_reason"], reported["exit_code"]) == ("image_pull_error", None)
    assert "connection refused" in reported["message"]
    ann.ok("image", "edit", "moved", "--address", image)
    ann.ok("start", job)
    ann.wait_for(job, "completed")


def test_a_login_is_kept_encrypted_and_never_shown(server: CorralServer, ann: Person, bob: Person) -> None:
    ann.ok("registry", "login", "registry.example.org", "--user", "ann", "--password-stdin", stdin=SECRET)
    assert "registry.example.org" in ann.ok("registry", "ls")
    assert bob.read("registry", "ls")["items"] == []
    assert SECRET not in str(ann.read("registry", "ls"))
    stored = dump(server)
    assert "registry.example.org" in stored, "it is there"
    assert SECRET not in stored
    assert SECRET not in server.log()
    ann.ok("registry", "logout", "registry.example.org", "--yes")
    assert ann.read("registry", "ls")["items"] == []


def test_an_impossible_image_is_refused_at_once(ann: Person) -> None:
    assert "is not an image" in ann.run("submit", "--image", "dir:/etc", "--", "true", code=2).err
    assert (
        "leave image or venv out" in ann.run("submit", "--image", "ubuntu", "--venv", "/opt", "--", "true", code=2).err
    )
    assert "only operators offer public images" in ann.run("image", "create", "mine", "ubuntu", "--public", code=3).err
    assert "there is no image" in ann.run("image", "show", "nothing", code=4).err
