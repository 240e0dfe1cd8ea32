"""Maintenance windows on a real server: planned at the command line, nodes empty in time, and back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("maintenance"), "--virtual-nodes", "2x2xA100-80G") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def after(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def place(job: dict[str, Any]) -> str:
    return str(job["allocation"]["grants"][0]["node"])


def test_nodes_are_emptied_for_the_window_and_take_jobs_after_it(server: CorralServer, operator: Person) -> None:
    ann = scientist(server, operator, "ann")
    job = ann.submit("--gpus", "2", "--", "sleep", "600")
    node = place(ann.wait_for(job, "running"))
    other = next(one["id"] for one in operator.read("nodes")["items"] if one["id"] != node)

    preview = operator.read("maintenance", "create", "fans", "--node", node, "--until", "1h", "--preview")
    assert [(found["id"], found["goes_to"]) for found in preview["jobs"]] == [(job, [other])]
    both = operator.read("nodes", "drain", node, other, "--preview", "--by", "now")
    assert (both["nodes"], both["jobs"][0]["goes_to"]) == ([node, other], None)
    assert operator.read("maintenance", "ls")["items"] == []

    view = operator.read(
        "maintenance", "create", "fans", "--node", node, "--from", "1h", "--until", "1h", "--every", "week",
        "--drain-before", "10m", "--note", "new fans",
    )  # fmt: skip
    assert (view["state"], view["every_days"], view["drain_before_seconds"]) == ("upcoming", 7, 600)
    assert view["nodes_left"] == [node]
    assert "week" in ann.ok("maintenance", "ls")
    assert operator.read("nodes", "show", node)["state"] == "ready"

    operator.ok("maintenance", "edit", "fans", "--from", after(0), "--until", after(3600))
    wait_until(lambda: operator.read("nodes", "show", node)["state"] == "drained", "the node is empty")
    assert operator.read("nodes", "show", node)["drain"]["maintenance"] == "fans"
    assert place(ann.wait_for(job, "running")) == other
    shown = operator.read("maintenance", "show", "fans")
    assert (shown["state"], shown["nodes_left"]) == ("active", [])
    assert "for maintenance (fans)" in ann.ok("receipts", job)

    operator.ok("maintenance", "edit", "fans", "--until", after(1))
    wait_until(lambda: operator.read("nodes", "show", node)["state"] == "ready", "the node is back")
    again = operator.read("maintenance", "show", "fans")
    assert again["state"] == "upcoming"
    assert datetime.fromisoformat(again["since"]) > datetime.now(UTC) + timedelta(days=6)
    ann.ok("stop", job)


def test_deleting_a_window_brings_its_nodes_back(server: CorralServer, operator: Person) -> None:
    node = operator.read("nodes")["items"][0]["id"]
    operator.ok("maintenance", "create", "now", "--node", node, "--until", "1h", "--drain-before", "0s")
    assert operator.read("nodes", "show", node)["withheld"] == "draining"
    operator.ok("maintenance", "rm", "now", "-y")
    assert operator.read("nodes", "show", node)["withheld"] == "ready"


def test_wrong_words_are_explained(operator: Person) -> None:
    for args, words in (
        (("--until", "1h"), "--node is missing"),
        (("--node", "n"), "--until is missing"),
        (("--node", "n", "--until", "1h", "--every", "moon"), "is no period"),
        (("--node", "n", "--until", "25:00"), "is not a time"),
    ):
        assert words in operator.run("maintenance", "create", "fans2", *args, code=2).err
    assert "nothing to change" in operator.run("maintenance", "edit", "fans", code=2).err
    assert "no node n" in operator.run("maintenance", "create", "fans2", "--node", "n", "--until", "1h").err
