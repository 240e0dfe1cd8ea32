"""Reservations, drains and guarantees in a real browser: made, refused in words, drawn, used, and given up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    config = tmp_path_factory.mktemp("reservations") / "corral.yaml"
    config.write_text("policies: {enable_preemption: true, preemption_min_run_minutes: 0}\n")
    with api_server("--virtual-nodes", "2x4xA10", "--config", str(config), users=("ann", "bob")) as running:
        yield running


def row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-key="{name}"]')


def pick(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).or_(page.get_by_role("textbox", name=label)).first.click()
    page.get_by_role("option", name=option).click()
    page.keyboard.press("Escape")


def submitted(http: httpx.Client, name: str, **more: object) -> str:
    body = {"name": name, "command": ["sleep", "600"], **more}
    job: str = http.post("/jobs", json=body).raise_for_status().json()["id"]
    return job


def running(http: httpx.Client, name: str, **more: object) -> str:
    job: str = (
        http.post("/jobs", json={"name": name, "command": ["sleep", "600"], **more}).raise_for_status().json()["id"]
    )
    wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", f"{name} runs")
    return job


def test_gpus_are_reserved_refused_drawn_and_given_up(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/reservations", "Reservations")
    expect(page.get_by_text("Nothing is reserved")).to_be_visible()
    page.get_by_role("button", name="New reservation").first.click()
    form = page.get_by_role("dialog", name="New reservation")
    form.get_by_role("textbox", name="Name").fill("seminar")
    form.get_by_role("textbox", name="How many").fill("99")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_text("Name a user or a group")).to_be_visible()
    expect(form.get_by_text("Say until when, or let it stand")).to_be_visible()
    pick(page, "Users", "ann")
    form.get_by_text("1d", exact=True).click()
    expect(form.get_by_text("It lasts 1d")).to_be_visible()
    form.get_by_role("button", name="Create").click()
    # The server's own words, beside the field that they are about.
    expect(form.get_by_role("textbox", name="How many")).to_have_attribute("aria-invalid", "true")
    form.get_by_role("textbox", name="How many").fill("3")
    form.get_by_role("button", name="Create").click()
    expect(row(page, "seminar")).to_contain_text("3 × A10")
    bar = page.get_by_role("list", name="Reservations of pool default in this time").get_by_role("button")
    expect(bar).to_have_accessible_name(re.compile(r"^seminar\s*3 × A10\s*ann\s*in pool default, .*, active$"))
    expect(page.get_by_text("at most 3 of 8 GPUs set aside")).to_be_visible()

    bar.click()
    drawer = page.get_by_role("dialog", name="seminar")
    expect(drawer).to_contain_text("ann")
    drawer.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Reservation seminar")
    form.get_by_role("textbox", name="Note").fill("room 4")
    form.get_by_role("button", name="Save").click()
    expect(row(page, "seminar")).to_contain_text("room 4")

    # A user who is no operator sees it at once.
    ann = visit("ann").open("/reservations", "Reservations")
    expect(row(ann, "seminar")).to_be_visible()
    expect(ann.get_by_role("button", name="New reservation")).to_have_count(0)
    page.get_by_role("button", name="Actions for seminar").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the reservation").click()
    expect(row(page, "seminar")).to_have_count(0)
    with server.http() as http:
        # The page shows the removal before the server has done it.
        wait_until(lambda: http.get("/reservations").json()["items"] == [], "the reservation is deleted")


def test_a_drain_is_looked_at_before_it_is_done(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as ann:
        job = running(ann, "long-one", gpus=2, time="2h")
        node = ann.get(f"/jobs/{job}").json()["allocation"]["grants"][0]["node"]
    page = visit().open(f"/nodes/{node}", node)
    page.get_by_role("button", name="Drain …").click()
    dialog = page.get_by_role("dialog", name=f"Drain {node}")
    jobs = dialog.get_by_role("table", name="Jobs there")
    expect(jobs.get_by_role("row").filter(has_text="long-one")).to_contain_text("runs to its end")
    dialog.get_by_text("Now", exact=True).click()
    expect(jobs.get_by_role("row").filter(has_text="long-one")).to_contain_text("surely")
    dialog.get_by_text("At a time", exact=True).click()
    dialog.get_by_label("Time", exact=True).fill("2100-01-01T00:00")
    expect(jobs.get_by_role("row").filter(has_text="long-one")).to_contain_text("no: ends before")
    dialog.get_by_role("button", name="Drain the node").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="Events")).to_contain_text("is being drained")
    with server.http() as http:
        assert http.get(f"/nodes/{node}").json()["withheld"] == "draining"
        http.post(f"/nodes/{node}/uncordon").raise_for_status()
        http.post(f"/jobs/{job}/stop").raise_for_status()
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "stopped", "it has stopped")


def test_a_preemption_is_shown_on_the_pages_of_both_jobs(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        http.post("/queues", json={"name": "urgent", "policy": "priority", "preempts": True}).raise_for_status()
    with server.http("bob") as bob:
        for number in range(2):
            running(bob, f"fills-{number}", gpus=4, queue="urgent", priority=50)
        first = submitted(bob, "first-one", gpus=4, queue="urgent", priority=1)
        wait_until(lambda: bob.get(f"/jobs/{first}").json()["state"] == "running", "a job was preempted")
        receipt = bob.get(f"/jobs/{first}/receipts").json()["items"][0]
    page = visit("bob").open(f"/jobs/{first}", "first-one")
    reported = page.get_by_role("region", name="Preemption")
    expect(reported).to_contain_text(f"Took the place of {receipt['job_name']}")
    reported.get_by_role("link", name=receipt["job_name"]).click()
    expect(page.get_by_role("heading", name=receipt["job_name"], level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Preemption")).to_contain_text("Preempted by first-one")
    expect(page.get_by_text("It was preempted and waits to go on")).to_be_visible()
    page = visit().open("/queue?tab=receipts", "Queue")
    listed = page.get_by_role("table", name="Preemptions").get_by_role("row").filter(has_text="first-one")
    expect(listed).to_contain_text(receipt["job_name"])
    expect(listed).to_contain_text("order of the queue")
    page.get_by_role("textbox", name="A user on either side").fill("ann")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    expect(page).to_have_url(re.compile("user=ann"))
    page = visit("ann").open("/queue?tab=receipts", "Queue")
    expect(page.get_by_text("No job was preempted")).to_be_visible()
    with server.http() as http:
        for job in http.get("/jobs?state=running&state=queued").json()["items"]:
            http.post(f"/jobs/{job['id']}/stop")
