"""What-if questions: a question is asked, answered with two runs side by side, and deleted; a shadow is started and
stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    """A server with a little history: three jobs that ended."""
    with api_server("--virtual-gpus", "2xA10", users=("ann",)) as running:
        with running.http("ann") as ann:
            jobs = [
                ann.post("/jobs", json={"name": f"past-{number}", "command": ["sleep", "0.3"], "gpus": 2}).json()["id"]
                for number in range(3)
            ]
            wait_until(lambda: all(ann.get(f"/jobs/{job}").json()["state"] == "completed" for job in jobs), "all done")
        yield running


def pick(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).or_(page.get_by_role("textbox", name=label)).first.click()
    page.get_by_role("option", name=option).click()


def test_a_question_is_asked_and_answered_side_by_side(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/what-if", "What if")
    expect(page.get_by_text("Nothing has been asked yet")).to_be_visible()
    page.get_by_role("button", name="New question").click()
    form = page.get_by_role("dialog", name="New question")
    form.get_by_role("button", name="Work it out").click()
    expect(form.get_by_role("alert")).to_contain_text("Change something")
    form.get_by_role("textbox", name="Name").fill("half the fleet")
    form.get_by_text("the last 1 day", exact=True).click()
    pick(page, "Order", "Shortest first")
    form.get_by_role("textbox", name="So many times the nodes").fill("none")
    expect(form.get_by_text("A number above 0")).to_be_visible()
    form.get_by_role("textbox", name="So many times the nodes").fill("2")
    form.get_by_role("button", name="Work it out").click()

    # The page shows the answer as soon as it is there, without a reload.
    expect(page.get_by_role("heading", name="half the fleet", level=1)).to_be_visible()
    numbers = page.get_by_role("table", name="All numbers")
    expect(numbers.get_by_role("row").filter(has_text="Waiting, mean")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("figure", name="GPUs in use over time")).to_be_visible()
    # Three short jobs are no day of history: the page says so, and the means are those of the time that is replayed.
    expect(page.get_by_role("alert").filter(has_text="Little history")).to_contain_text("of the 1d asked for")
    expect(page.get_by_role("img", name=re.compile("Part of the jobs that waited at most so long"))).to_be_visible()
    page.get_by_role("radiogroup", name="Grouped by").get_by_text("Users").click()
    expect(
        page.get_by_role("table", name="Distribution: Users").get_by_role("row").filter(has_text="ann")
    ).to_be_visible()
    expect(page).to_have_url(re.compile("by=users"))

    page.get_by_role("link", name="All questions").click()
    questions = page.get_by_role("table", name="Questions asked")
    expect(questions.get_by_role("row").filter(has_text="half the fleet")).to_contain_text("waiting")
    page.get_by_role("button", name="Actions for half the fleet").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("Nothing has been asked yet")).to_be_visible()
    with server.http() as http:
        # The page shows the removal before the server has done it.
        wait_until(lambda: http.get("/simulations").json()["items"] == [], "the question is deleted")


def test_a_shadow_is_started_and_stopped(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/what-if?tab=shadow", "What if")
    page.get_by_role("button", name="Start a shadow").click()
    form = page.get_by_role("dialog", name="Start a shadow")
    expect(form.get_by_role("textbox", name="So many times the nodes")).to_have_count(0)
    pick(page, "Order", "Shortest first")
    form.get_by_role("button", name="Start a shadow").click()
    expect(page.get_by_role("status", name="every queue: policy shortest")).to_be_visible()
    with server.http("ann") as ann:
        ann.post("/jobs", json={"name": "seen-by-both", "command": ["true"], "gpus": 1}).raise_for_status()
    # Without a reload.
    expect(page.get_by_role("group", name="Rounds seen")).not_to_contain_text("Rounds seen0", timeout=20_000)
    page.get_by_role("button", name="Stop the shadow").click()
    expect(page.get_by_text("No shadow runs")).to_be_visible()


def test_only_operators_ask(visit: Visit) -> None:
    page = visit("ann").open("/what-if")
    expect(page.get_by_text("This page is for operators")).to_be_visible()
