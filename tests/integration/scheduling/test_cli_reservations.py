"""Reserving GPUs and looking at a drain before it is done, at the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-reservations"), "--virtual-nodes", "2x4xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def test_a_reservation_is_made_shown_changed_and_deleted(operator: Person) -> None:
    made = operator.ok(
        "reservation",
        "create",
        "demo",
        "--gpus",
        "4",
        "--group",
        "default",
        "--from",
        "1h",
        "--until",
        "2h",
        "--no-lend",
    )
    assert made.startswith("Reserved 4 A10 GPUs of pool default for group default from ")
    view = operator.read("reservation", "show", "demo")
    assert (view["gpu_count"], view["groups"], view["lends"], view["state"]) == (4, ["default"], False, "upcoming")
    listed = operator.ok("reservation", "ls")
    assert "demo" in listed
    assert "upcoming" in listed
    shown = operator.ok("reservation", "show", "demo")
    assert "In use" in shown
    assert "0 by owners, 0 by others" in shown
    operator.ok("reservation", "edit", "demo", "--gpus", "2", "--until", "3h", "--lend", "--note", "longer")
    changed = operator.read("reservation", "show", "demo")
    assert (changed["gpu_count"], changed["lends"], changed["note"]) == (2, True, "longer")
    assert changed["until"] > view["until"]
    assert operator.ok("reservation", "rm", "-y", "demo") == "Deleted reservation demo\n"
    assert operator.read("reservation", "ls")["items"] == []


def test_mistakes_are_refused_with_what_would_be_right(operator: Person) -> None:
    assert "--user is missing" in operator.run("reservation", "create", "demo", "--gpus", "1", code=2).err
    assert "--gpus is missing" in operator.run("reservation", "create", "demo", "--user", "operator", code=2).err
    bad = operator.run("reservation", "create", "demo", "--gpus", "1", "--user", "operator", "--until", "soon", code=2)
    assert "--until: 'soon' is not a time" in bad.err
    assert "nothing to change" in operator.run("reservation", "edit", "demo", code=2).err
    refused = operator.run("reservation", "create", "demo", "--gpus", "3", "--user", "operator", code=1)
    assert "standing reservations may take 2 GPUs of pool default together" in refused.err


def test_a_drain_is_looked_at_first(operator: Person) -> None:
    job = operator.submit("--name", "long-one", "--gpus", "3", "--", "sleep", "600")
    operator.wait_for(job, "running")
    (grant,) = operator.read("show", job)["allocation"]["grants"]
    reported = operator.ok("nodes", "drain", grant["node"], "--preview")
    assert "displaces 1 job." in reported
    assert "long-one" in reported
    assert "Pool default is left with 4 GPUs, 1 of them free." in reported
    later = operator.read("nodes", "drain", grant["node"], "--preview", "--by", "2h")
    assert [item["displaced"] for item in later["jobs"]] == ["likely"]
    assert all(node["state"] == "ready" for node in operator.read("nodes")["items"])
    # The preview becomes true: the job saves and continues on the other node.
    assert "is draining, empty by" in operator.ok("nodes", "drain", grant["node"], "--by", "now")
    operator.wait_for(job, "running")
    (moved,) = operator.read("show", job)["allocation"]["grants"]
    assert moved["node"] != grant["node"]
    assert operator.read("nodes", "show", grant["node"])["state"] == "drained"
    # The node is empty a moment before the server has recorded it.
    wait_until(lambda: "empty since" in operator.ok("nodes", "show", grant["node"]), "the record of the empty node")
    operator.ok("nodes", "uncordon", grant["node"])
    assert operator.read("nodes", "show", grant["node"])["drain"] is None
    operator.ok("stop", job)
