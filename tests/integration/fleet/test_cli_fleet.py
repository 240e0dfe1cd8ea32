"""An operator's view of the machines, queues, tasks and the audit log at the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, person
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-fleet"), "--virtual-nodes", "3x4xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def test_the_status_page_has_the_shape_of_003(operator: Person) -> None:
    job = operator.submit("--name", "holding", "--gpus", "3", "--", "sleep", "600")
    operator.wait_for(job, "running")
    lines = operator.ok("status", "--classic").splitlines()
    for line in ("Total Nodes: 3", "Total GPUs: 12", "Free GPUs: 9", "Allocated GPUs: 3", "Active Tasks: 1"):
        assert line in lines
    details = lines[lines.index("Node Details:") + 2 : lines.index("Task Allocations:") - 1]
    assert len(details) == 3
    assert all(re.fullmatch(r"\S+: \d+/4 free \(\d+ allocated\)", line) for line in details)
    assert sorted(line.partition(": ")[2] for line in details) == [
        "1/4 free (3 allocated)",
        "4/4 free (0 allocated)",
        "4/4 free (0 allocated)",
    ]
    (task,) = lines[lines.index("Task Allocations:") + 2 :]
    assert re.fullmatch(r"Task holding: 3 GPUs on \S+ \(running\)", task)
    document = operator.read("status")
    assert (document["total_gpus"], document["free_gpus"], len(document["tasks"])) == (12, 9, 1)
    operator.ok("stop", job)
    operator.wait_for(job, "stopped")


def test_nodes_are_taken_out_of_use_and_back(operator: Person) -> None:
    nodes = [node["id"] for node in operator.read("nodes")["items"]]
    assert operator.read("nodes", "ls")["items"][0]["id"] == nodes[0]
    assert operator.ok("nodes", "cordon", nodes[0]).startswith(f"{nodes[0]} is cordoned")
    operator.ok("nodes", "cordon", nodes[1])
    assert operator.ok("nodes").count("cordoned") == 2
    assert f"{nodes[0]}: " in operator.ok("status", "--classic")
    # only the third one is left to run on
    job = operator.submit("--gpus", "4", "--", "sleep", "600")
    operator.wait_for(job, "running")
    (grant,) = operator.read("show", job)["allocation"]["grants"]
    assert grant["node"] == nodes[2]
    assert operator.ok("nodes", "uncordon", nodes[0], nodes[1]).splitlines() == [
        f"{nodes[0]} is ready",
        f"{nodes[1]} is ready",
    ]
    operator.ok("stop", job)
    operator.wait_for(job, "stopped")
    assert "drained" in operator.ok("nodes", "drain", nodes[2])
    operator.ok("nodes", "uncordon", nodes[2])
    assert operator.run("nodes", "drain", "nowhere", code=4).err.startswith("Error:")


def test_gpus_have_readings_and_a_health_that_can_be_reset(operator: Person) -> None:
    gpus = operator.read("gpus")["items"]
    assert len(gpus) == 12
    assert {gpu["model"] for gpu in gpus} == {"A10"}
    wait_until(lambda: all(gpu["reading"] for gpu in operator.read("gpus")["items"]), "every GPU was read")
    table = operator.ok("gpus")
    assert len(table.splitlines()) == 13
    assert "°C" in table
    assert "healthy" in operator.ok("gpus", "reset-health", gpus[0]["id"])
    assert operator.run("gpus", "reset-health", "none", code=4).err.startswith("Error:")


def test_queues_are_created_changed_used_and_removed(operator: Person) -> None:
    operator.ok("queue", "create", "night", "--policy", "priority", "--max-gpus", "4", "--max-time", "2h")
    view = operator.read("queue", "show", "night")
    assert (view["policy"], view["max_gpus"], view["max_seconds"]) == ("priority", 4, 7200)
    assert "at most 4 GPUs held; at most 2h a job" in operator.ok("queue", "show", "night")
    operator.ok("queue", "edit", "night", "--max-gpus", "none", "--blocking", "strict", "--kind", "training")
    view = operator.read("queue", "show", "night")
    assert (view["max_gpus"], view["blocking"], view["kinds"]) == (None, "strict", ["training"])
    assert {line.split()[0] for line in operator.ok("queue", "ls").splitlines()[1:]} == {"default", "night"}

    operator.run("submit", "--queue", "night", "--gpus", "1", "--wait", "--", "true", code=0)
    assert "Queue night: priority, strict" in operator.ok("queue")
    for args, message in (
        (("queue", "create", "night"), "night"),
        (("queue", "rm", "-y", "default"), "default"),
    ):
        refused = operator.run(*args, code=1)
        assert message in refused.err
    for wrong, flag in (
        (("queue", "create", "stars", "--policy", "astrology"), "--policy"),
        (("queue", "edit", "night", "--weight", "-1"), "--weight"),
    ):
        assert operator.run(*wrong, code=2).err.startswith(f"Error: {flag}: ")
    operator.ok("queue", "rm", "-y", "night")
    assert operator.run("queue", "show", "night", code=4).err.startswith("Error:")


def test_tasks_hold_gpus_run_a_program_and_give_them_back(operator: Person) -> None:
    said = operator.ok("allocate", "training_task_1", "--gpus", "2")
    assert "corral start-program training_task_1" in said
    holding = re.compile(r"^Task training_task_1: 2 GPUs on \S+ \(running\)$", re.MULTILINE)
    wait_until(lambda: holding.search(operator.ok("status", "--classic")) is not None, "the task holds its GPUs")
    started = operator.read(
        "start-program", "training_task_1", "--", "sh", "-c", "echo on $CUDA_VISIBLE_DEVICES; sleep 60"
    )
    wait_until(lambda: re.search(r"on \d,\d", operator.ok("logs", started["id"])) is not None, "the program runs")
    assert operator.ok("release", "training_task_1").startswith("Task training_task_1: released")
    wait_until(lambda: operator.read("status")["allocated_gpus"] == 0, "the GPUs are free again")

    refused = operator.run("allocate", "too_many", "--gpus", "11")
    assert refused.code == 1
    assert "11" in refused.err
    assert operator.run("release", "never_was", code=4).err.startswith("Error:")


def test_the_audit_log_shows_who_did_what(operator: Person) -> None:
    job = operator.submit("--name", "audited", "--gpus", "1", "--", "true")
    operator.wait_for(job, "completed")
    events = operator.read("events", "--subject", job)["items"]
    actions = [event["action"] for event in events]
    assert actions[0] == "job.submitted"
    assert {event["actor"] for event in events} == {"operator", "corral"}
    assert job in operator.ok("events", "--since", "1h", "--actor", "operator")
    assert operator.read("events", "--until", "2020-01-01T00:00:00Z")["items"] == []
    assert [score["user"] for score in operator.read("scores")["items"]] == ["operator"]
    assert operator.ok("scores").splitlines()[1].split()[:2] == ["operator", "A10"]


def test_events_are_followed_as_they_happen(operator: Person) -> None:
    following = operator.start("events", "-f", "-o", "json", "--action", "job.submitted", "--limit", "1")
    assert following.stdout is not None
    json.loads(following.stdout.readline())
    job = operator.submit("--", "true")
    assert json.loads(following.stdout.readline())["subject"] == job
    following.terminate()
    following.communicate(timeout=30)
    operator.wait_for(job, "completed")


def test_doctor_finds_a_good_set_up_good_and_a_bad_one_bad(server: CorralServer, operator: Person) -> None:
    good = operator.run("doctor", "-o", "json", code=0).document
    verdicts = {item["check"]: item["verdict"] for item in good["items"]}
    assert good["healthy"] is True
    assert verdicts["Server"] == verdicts["Home"] == verdicts["Clock"] == "OK"
    assert verdicts["Sign-in"] in ("OK", "WARN")
    # Servers of tests give jobs their own account.
    (isolation,) = [item for item in good["items"] if item["check"] == "Isolation"]
    assert (isolation["verdict"], isolation["detail"][:11]) == ("WARN", "single-user")
    assert "corral init server" in isolation["fix"]
    (shares,) = [item for item in good["items"] if item["check"] == "Shares of GPUs"]
    assert (shares["verdict"], shares["detail"]) == ("OK", "not enforced: the GPUs are virtual")

    stranger = person(server, "no-token")
    assert "fix: Run `corral login`." in stranger.run("doctor", code=1).out
    lost = operator.run("doctor", "--server", "http://127.0.0.1:1", code=1)
    assert "FAIL  Server" in lost.out
    assert "Isolation" in lost.out
    assert "corral up" in lost.out
    assert operator.read("version") == {
        "version": operator.read("version")["server_version"],
        "server_version": operator.read("version")["version"],
        "server": server.url,
    }


def test_a_second_server_and_a_bad_configuration_are_refused_in_words(server: CorralServer, tmp_path: Path) -> None:
    shell = Person(server=server.url, home=tmp_path)
    shell.env = {"CORRAL_BOOTSTRAP_PASSWORD": PASSWORD}
    same_home = shell.run("up", "--home", str(server.home), "--port", str(free_port()))
    assert same_home.code == 3
    assert "already uses" in same_home.err
    same_port = shell.run("up", "--home", str(tmp_path / "other"), "--port", str(server.port))
    assert same_port.code == 4
    assert str(server.port) in same_port.err

    (tmp_path / "bad.yaml").write_text("policies:\n  max_gpus_per_usr: 4\nserver: {port: high}\n")
    for args, code in ((("up", "--config", "bad.yaml"), 2), (("config", "check", "bad.yaml"), 1)):
        refused = shell.run(*args, code=code)
        assert "bad.yaml:2" in refused.err
        assert "bad.yaml:3" in refused.err
    assert shell.run("up", "--virtual-gpus", "eight", code=2).err.startswith("Error: --virtual-gpus:")
    (tmp_path / "old.json").write_text('{"monitor_interval": 7, // seconds\n "max_gpus_per_task": 4, "colour": "red"}')
    imported = shell.run("config", "import", "old.json", "--to", "corral.yaml", code=0)
    assert "colour" in imported.err
    shell.ok("config", "check", "corral.yaml")
    shown = {line["key"]: line for line in shell.read("config", "show", "--config", "corral.yaml")["items"]}
    assert shown["monitoring.interval_seconds"]["value"] == 7
    assert shell.run("config", "import", "old.json", "--to", "corral.yaml", code=1).err.startswith("Error:")
