"""The way of a new user from an empty account to trainings and a workbench, as document 004 describes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.listed_registry import ListedRegistry

pytestmark = pytest.mark.slow

CONFIGURATION = """\
scheduling: {{blocking: strict, show_queued_names: true}}
disk: {{temporary_limit: 40MiB}}
images: {{registries: ["http://{registry}"]}}
"""


@pytest.fixture(scope="module")
def registry() -> Iterator[ListedRegistry]:
    made = ListedRegistry()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, registry: ListedRegistry) -> Iterator[CorralServer]:
    home = tmp_path_factory.mktemp("story-004")
    file = home / "story.yaml"
    file.write_text(CONFIGURATION.format(registry=registry.host))
    with cli_server(home, "--virtual-gpus", "4xA100-80G", "--config", str(file)) as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def lin(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "lin")


@pytest.fixture(scope="module")
def mei(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "mei")


@pytest.fixture(scope="module", autouse=True)
def prepared(operator: Person, lin: Person) -> None:
    """The operator's setup: a size to choose, and limits by kind of job and type of storage."""
    operator.ok(
        "package", "create", "a100-x1", "--gpus", "1", "--cpus", "1", "--kind", "training", "--kind", "workbench"
    )
    operator.ok("quota", "set", "lin", "--kind", "training", "--gpus", "2")
    operator.ok("quota", "set", "lin", "--kind", "workbench", "--gpus", "1")
    operator.ok("quota", "set", "lin", "--volume", "block=20MiB")


def test_a_quota_is_seen_and_a_start_above_it_is_refused_with_the_numbers(lin: Person) -> None:
    assert lin.read("quota", "show")["kinds"]["training"]["gpus"]["limit"] == 2
    refused = lin.run("submit", "--gpus", "3", "--", "true", code=1).err
    assert "insufficient quota for training gpus: asked 3, held 0, limit 2" in refused
    refused = lin.run("preset", "run", "classification", "--gpus", "3", code=1).err
    assert "insufficient quota for training gpus" in refused
    refused = lin.run("volume", "create", "huge", "--type", "block", "--size", "1GiB", code=1).err
    assert "quota" in refused
    assert lin.read("jobs", "-a")["items"] == []


def test_the_images_of_a_gitlab_are_listed_with_the_users_own_login(
    lin: Person, mei: Person, registry: ListedRegistry
) -> None:
    registry.kind = "gitlab"
    lin.ok("registry", "login", registry.host, "--user", "ada", "--name", "work", "--password-stdin", stdin="secret\n")
    (image,) = lin.read("registry", "images", "work")["items"]
    assert (image["repository"], image["version"], image["size_bytes"]) == ("team/train", "v1", 4096)
    assert image["address"] in lin.ok("registry", "images", "work")
    assert "there is no login 'work'" in mei.run("registry", "images", "work").err, "a login is its owner's"
    mei.ok("registry", "login", "registry.example.org", "--user", "mei", "--password-stdin", stdin="secret\n")
    refused = mei.run("registry", "images", "registry.example.org").err
    assert "an operator adds it to images.registries" in refused


def test_a_training_is_created_started_watched_and_found_in_the_list(lin: Person, tmp_path: Path) -> None:
    source = tmp_path / "samples"
    source.mkdir()
    (source / "one.txt").write_text("a sample\n")
    lin.ok("volume", "create", "code", "--type", "filesystem", "--size", "10MiB")
    wait_until(lambda: lin.read("volume", "show", "code")["state"] == "ready", "the volume is made")
    lin.ok("cp", "-r", str(source), "code:/samples")
    program = 'cat "$CORRAL_MOUNT_CODE/samples/one.txt"; echo "$STEPS steps"'
    job = lin.submit(
        *("--name", "first-training", "--hold", "--package", "a100-x1", "--mount", "code:/code:ro"),
        *("--env", "STEPS=3", "--", "sh", "-c", program),
    )
    assert lin.read("show", job)["state"] == "created"
    lin.ok("start", job)
    lin.wait_for(job, "completed")
    assert lin.ok("logs", job) == "a sample\n3 steps\n"
    assert "IMAGE" in lin.ok("jobs", "-a").splitlines()[0]
    assert [found["name"] for found in lin.read("jobs", "-a", "--state", "completed")["items"]] == ["first-training"]
    assert "(first-training-2)" in lin.ok("submit", "--name", "first-training", "--", "true")


def test_temporary_storage_is_shown_and_a_job_that_uses_it_up_is_evicted(lin: Person) -> None:
    modest = lin.submit("--", "sh", "-c", "head -c 5M /dev/zero > $TMPDIR/some; exec sleep 300")
    greedy = lin.submit("--", "sh", "-c", "head -c 38M /dev/zero > $TMPDIR/much; exec sleep 300")
    lin.wait_for(greedy, "stopped")
    ended = lin.read("show", greedy)
    assert ended["end_reason"] == "evicted"
    assert ended["message"].startswith("temporary storage: it has 38")
    assert "evicted" in lin.ok("show", greedy)
    wait_until(lambda: (lin.read("show", modest).get("disk") or {}).get("temporary_bytes", 0) > 4_000_000, "measured")
    assert "of 40MiB; the job is evicted at 90 %" in lin.ok("show", modest)
    lin.ok("stop", modest)


def test_a_workbench_without_jupyter_and_ssh_keeps_running_with_its_storage(lin: Person) -> None:
    lin.ok("volume", "create", "data", "--type", "block", "--size", "5MiB")
    wait_until(lambda: lin.read("volume", "show", "data")["state"] == "ready", "the volume is made")
    made = lin.read("workbench", "create", "bench", "--no-jupyter", "--no-ssh", "--mount", "data:/data")
    assert (made["jupyter"], made["ssh"], made["job"]["kind"]) == (None, None, "workbench")
    lin.wait_for(made["id"], "running")
    [reason] = lin.read("why", lin.submit("--name", "writer", "--mount", "data:/d", "--", "true"))["reasons"]
    assert reason["rule"] == "mount", "a block volume has one writer"
    lin.ok("workbench", "stop", "bench")
    lin.wait_for(made["id"], "stopped")
    lin.wait_for("writer", "completed")
    lin.ok("workbench", "start", "bench")
    lin.wait_for(made["id"], "running")
    assert [one["path"] for one in lin.read("show", made["id"])["mounts"]] == ["/data"]
    lin.ok("workbench", "stop", "bench")
    lin.wait_for(made["id"], "stopped")


def test_later_jobs_of_a_model_wait_where_the_switch_says_so_and_names_are_shown(
    operator: Person, lin: Person, mei: Person
) -> None:
    holds = mei.submit("--name", "holds-three", "--gpus", "3", "--", "sleep", "300")
    mei.wait_for(holds, "running")
    first = lin.submit("--name", "wants-two", "--gpus", "2", "--", "true")
    small = mei.submit("--name", "wants-one", "--gpus", "1", "--", "true")
    assert mei.read("why", small)["reasons"], "it would fit, and waits behind the first one"
    queue = mei.ok("queue", "show", "default") + mei.ok("queue")
    assert "wants-two" in queue, "the operator lets all users see the names"
    assert mei.run("show", first).code != 0, "and no more than the names"
    operator.ok("pin", small)
    mei.wait_for(small, "completed")
    mei.ok("stop", holds)
    lin.wait_for(first, "completed")
    scores = {one["user"]: one["score"] for one in lin.read("scores")["items"]}
    assert scores["mei"] > scores["lin"] >= 0.0, "the user who held more comes later next time"
