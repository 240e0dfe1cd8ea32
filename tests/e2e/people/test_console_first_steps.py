"""First steps in a real browser: they tick themselves while the page is open, are dismissed, and come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "2xA10", users=("ann",)) as running:
        yield running


def steps(page: Page) -> Locator:
    return page.get_by_role("region", name="First steps")


def test_steps_tick_themselves_are_dismissed_and_come_back(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/", "Overview")
    # The test's own requests have a token.
    expect(steps(page).get_by_role("status")).to_have_text("1 of 3 done")
    # The next step is explained, with its command.
    expect(steps(page)).to_contain_text("corral submit --gpus 1")
    with server.http("ann") as http:
        job = http.post("/jobs", json={"command": ["true"], "gpus": 1, "hold": True}).raise_for_status().json()["id"]
    expect(steps(page).get_by_role("link", name="Submit a first job (done)")).to_be_visible()
    expect(steps(page).get_by_role("status")).to_have_text("2 of 3 done")
    steps(page).get_by_role("link", name="Use the command line (done)").click()
    expect(page.get_by_role("tab", name="Tokens")).to_have_attribute("aria-selected", "true")
    page.goto("/", wait_until="domcontentloaded")
    steps(page).get_by_role("button", name="Dismiss").click()
    expect(steps(page)).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(steps(page)).to_be_visible()
    steps(page).get_by_role("button", name="Dismiss").click()
    expect(steps(page)).to_have_count(0)
    # The server knows it, not this browser.
    again = visit("ann").open("/", "Overview")
    expect(again.get_by_role("region", name="Key figures")).to_be_visible()
    expect(steps(again)).to_have_count(0)
    again.goto("/settings", wait_until="domcontentloaded")
    again.get_by_role("button", name="Show the first steps on the overview").click()
    expect(again.get_by_text("The overview shows the first steps.")).to_be_visible()
    again.goto("/", wait_until="domcontentloaded")
    expect(steps(again)).to_be_visible()
    with server.http("ann") as http:
        http.post(f"/jobs/{job}/start").raise_for_status()
    expect(steps(again).get_by_role("status")).to_have_text("All steps are done.")
    # Those who have done everything are not bothered.
    again.reload(wait_until="domcontentloaded")
    expect(again.get_by_role("region", name="Key figures")).to_be_visible()
    expect(steps(again)).to_have_count(0)


def test_an_operator_has_the_steps_of_the_server(visit: Visit) -> None:
    page = visit().open("/", "Overview")
    done = steps(page).get_by_role("link", name="(done)")
    expect(done.filter(has_text="See the GPUs")).to_have_count(1)
    expect(done.filter(has_text="Add people")).to_have_count(1)
    expect(steps(page).get_by_role("link", name="Make backups (to do)")).to_be_visible()
    steps(page).get_by_role("link", name="Get notices of alerts").click()
    expect(page.get_by_role("tab", name="Notifications")).to_have_attribute("aria-selected", "true")
