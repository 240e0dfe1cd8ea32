"""Maintenance in a real browser: planned with a preview, on the calendar, and drained together; groups of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "3x2xA100-80G", users=("ann",)) as running:
        with running.http("ann") as ann:
            job = ann.post("/jobs", json={"name": "bert", "command": ["sleep", "600"], "gpus": 2}).json()["id"]
            wait_until(lambda: ann.get(f"/jobs/{job}").json()["state"] == "running", "bert runs")
        yield running


@pytest.fixture(scope="module")
def busy(server: CorralServer) -> str:
    with server.http("ann") as ann:
        (job,) = ann.get("/jobs", params={"state": "running"}).json()["items"]
    return str(job["allocation"]["grants"][0]["node"])


@pytest.fixture(scope="module")
def nodes(server: CorralServer) -> list[str]:
    with server.http() as http:
        return [node["id"] for node in http.get("/nodes").json()["items"]]


def shot(page: Page, name: str) -> None:
    """For looking at; nothing without a folder."""
    folder = os.environ.get("CORRAL_SHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png")


def local(hours: float) -> str:
    return (datetime.now() + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")


def test_maintenance_is_planned_with_a_preview_shown_to_all_and_deleted(
    visit: Visit, server: CorralServer, busy: str
) -> None:
    page = visit().open("/maintenance", "Maintenance")
    expect(page.get_by_text("No maintenance is planned")).to_be_visible()
    page.get_by_role("button", name="Plan maintenance").first.click()
    form = page.get_by_role("dialog", name="Plan maintenance")
    form.get_by_role("button", name="Plan it").click()
    expect(form.get_by_text("Choose at least one node")).to_be_visible()
    form.get_by_role("textbox", name="Name").fill("fans")
    form.get_by_role("combobox", name="Nodes").or_(form.get_by_role("textbox", name="Nodes")).first.click()
    page.get_by_role("option", name=busy).click()
    page.keyboard.press("Escape")
    form.get_by_label("Nodes are empty from").fill(local(2))
    form.get_by_label("Back at").fill(local(1))
    expect(form.get_by_text("It must end after it begins")).to_be_visible()
    form.get_by_label("Back at").fill(local(4))
    expect(form.get_by_text("It lasts 2h.")).to_be_visible()
    # What it displaces is shown before it is planned.
    expect(form.get_by_role("table", name="Jobs there")).to_contain_text("bert")
    form.get_by_role("combobox", name="Repeated").or_(form.get_by_role("textbox", name="Repeated")).first.click()
    page.get_by_role("option", name="every week").click()
    shot(page, "maintenance-form")
    form.get_by_role("button", name="Plan it").click()
    table = page.get_by_role("table", name="Maintenance")
    expect(table.get_by_role("row").filter(has_text="fans")).to_contain_text("upcoming")
    expect(table.get_by_role("row").filter(has_text="fans")).to_contain_text("every week")
    shot(page, "maintenance-page")

    # A scientist sees it on the calendar, twice in two weeks, and cannot change it.
    scientist = visit("ann").open("/reservations?span=14", "Reservations")
    strip = scientist.get_by_role("list", name="Maintenance in this time")
    expect(strip.get_by_role("link")).to_have_count(2)
    shot(scientist, "maintenance-calendar")
    strip.get_by_role("link").first.click()
    expect(scientist.get_by_role("heading", name="Maintenance", level=1)).to_be_visible()
    expect(scientist.get_by_role("button", name="Plan maintenance")).to_have_count(0)

    page.get_by_role("button", name="Actions for fans").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the window").click()
    expect(page.get_by_text("No maintenance is planned")).to_be_visible()
    with server.http() as http:
        wait_until(lambda: http.get("/maintenance-windows").json()["items"] == [], "the window is deleted")


def test_several_nodes_are_drained_with_one_preview(
    visit: Visit, server: CorralServer, busy: str, nodes: list[str]
) -> None:
    other = next(node for node in nodes if node != busy)
    page = visit().open("/nodes", "Nodes")
    for node in (busy, other):
        page.get_by_role("checkbox", name=f"Select {node}").check()
    page.get_by_role("toolbar").get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog", name="Drain 2 nodes")
    expect(dialog).to_contain_text(other)
    dialog.get_by_text("Now", exact=True).click()
    jobs = dialog.get_by_role("table", name="Jobs there")
    expect(jobs.get_by_role("row").filter(has_text="bert")).to_contain_text("surely")
    # Not to the node that is drained with it.
    expect(jobs.get_by_role("row").filter(has_text="bert")).to_contain_text(
        next(node for node in nodes if node not in (busy, other))
    )
    shot(page, "drain-several")
    dialog.get_by_text("When its jobs have ended").click()
    dialog.get_by_role("button", name="Drain 2 nodes").click()
    expect(page.get_by_text("2 nodes draining")).to_be_visible()
    with server.http() as http:
        wait_until(
            lambda: all(http.get(f"/nodes/{node}").json()["withheld"] == "draining" for node in (busy, other)),
            "both are draining",
        )
        for node in (busy, other):
            http.post(f"/nodes/{node}/uncordon")


def test_the_navigation_is_short_and_its_groups_open(visit: Visit) -> None:
    page = visit().open("/", "Overview")
    navigation = page.get_by_role("navigation")
    entries = navigation.get_by_role("link").or_(navigation.get_by_role("button"))
    expect(navigation.get_by_role("button", name="Fleet")).to_have_attribute("aria-expanded", "false")
    assert entries.count() <= 12
    shot(page, "navigation")
    navigation.get_by_role("button", name="Fleet").click()
    navigation.get_by_role("link", name="Maintenance").click()
    expect(page.get_by_role("heading", name="Maintenance", level=1)).to_be_visible()
    expect(navigation.get_by_role("link", name="Maintenance")).to_have_attribute("aria-current", "page")
    # A page that is opened by its address shows its group open.
    page = visit().open("/alerts", "Alerts")
    expect(page.get_by_role("navigation").get_by_role("link", name="Alerts")).to_be_visible()
    shot(page, "navigation-open")
