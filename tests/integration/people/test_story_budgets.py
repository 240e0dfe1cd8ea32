"""Budgets through a real server: a group spends its budget, `why` says so, a grant lets its jobs start, statements are
saved as files, and a server that is killed at any time charges every attempt once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.reporting import pdf
from corral.stores import open_store
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.unit.control.ledger import assert_charged_once

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("budgets"), "--virtual-gpus", "4xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def nora(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "nora")


def test_a_group_that_is_over_budget_waits_until_it_gets_a_grant(
    server: CorralServer, operator: Person, nora: Person, tmp_path: Path
) -> None:
    assert "No budgets." in nora.run("budget", "ls", code=0).err
    operator.ok("budget", "price", "set", "A10", "--money", "36000", "--currency", "EUR")
    operator.ok("budget", "set", "group/default", "--unit", "money", "--hard", "1", "--soft", "0.5")
    assert nora.run("budget", "set", "nora", "--hard", "5").code == 3

    nora.ok("submit", "--gpus", "1", "--wait", "--", "sleep", "1")
    waits = nora.read("submit", "--gpus", "1", "--name", "next", "--", "true")["id"]
    why = nora.ok("why", waits)
    assert "group default is over budget by" in why
    assert "of money: spent" in why
    (group,) = [one for one in nora.read("budget", "show", "group/default")["items"] if one["unit"] == "money"]
    assert group["left_micro"] < 0
    assert group["spent_micro"] == group["charged_micro"] == -group["balance_micro"]
    actions = [event["action"] for event in operator.read("events", "--limit", "50")["items"]]
    assert {"budget.soft-limit-reached", "budget.hard-limit-reached"} <= set(actions)

    operator.ok("budget", "grant", "group/default", "1000", "--unit", "money", "--note", "deadline")
    wait_until(lambda: nora.read("show", waits)["state"] == "completed", "the grant lets it start")
    shown = nora.ok("budget", "statement", "group/default", "--unit", "money")
    assert "deadline" in shown

    file = tmp_path / "mine.csv"
    nora.ok("budget", "statement", "--format", "csv", "-f", str(file))
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert {row["user"] for row in rows} == {"nora"}
    assert {row["kind"] for row in rows} == {"charge"}
    assert sum(float(row["amount"]) for row in rows) < 0
    if pdf.is_installed():
        paper = tmp_path / "group.pdf"
        nora.ok("budget", "statement", "group/default", "--format", "pdf", "-f", str(paper))
        assert paper.read_bytes().startswith(b"%PDF")
    assert nora.run("budget", "statement", "operator").code == 3, "an account of another user"


def test_a_server_that_is_killed_charges_every_attempt_once(
    server: CorralServer, operator: Person, nora: Person
) -> None:
    operator.ok("budget", "rm", "group/default", "--unit", "money", "--yes")
    ids = []
    for number in range(5):
        long = nora.read("submit", "--gpus", "1", "--name", f"long-{number}", "--", "sleep", "2")["id"]
        short = nora.read("submit", "--gpus", "1", "--name", f"short-{number}", "--", "sleep", "0.2")["id"]
        ids += [long, short]
        wait_until(lambda job=short: nora.read("show", job)["state"] != "queued", "it started")  # type: ignore[misc]
        # Every running attempt is charged up to now before a price changes.
        operator.ok("budget", "price", "set", "A10", "--money", str(number))
        server.kill()
        server.start()
    wait_until(lambda: all(nora.read("show", job)["state"] == "completed" for job in ids), "all jobs end", 60)
    assert server.stop() == 0
    store = open_store(f"sqlite:///{server.home / 'corral.db'}")
    try:
        with store.read() as tx:
            assert assert_charged_once(tx) > 0
    finally:
        store.close()
        server.start()
