"""Apps in the console: opened from the job's page and the workbenches, shared with a group and by a link."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT),
]

PROGRAM = Path(__file__).parents[2] / "integration" / "programs" / "echo_app.py"


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "2xA10", users=("ann", "bob")) as running:
        yield running


@pytest.fixture(scope="module")
def job(server: CorralServer) -> Iterator[str]:
    line = f'{shlex.join([sys.executable, str(PROGRAM)])} "$CORRAL_APP_PORT"'
    with server.http("ann") as http:
        body = {"name": "echoes", "command": ["sh", "-c", line], "port": 0, "app_name": "echo"}
        found: str = http.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/apps/{found}").json()["ready"], "the app is ready")
        yield found
        http.post(f"/jobs/{found}/stop").raise_for_status()


def test_an_app_is_shared_with_a_group_and_by_a_link(visit: Visit, server: CorralServer, job: str) -> None:
    page = visit("ann").open(f"/jobs/{job}", "echoes")
    page.get_by_role("tab", name="App").click()
    expect(page.get_by_role("status").filter(has_text="ready")).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open echo").click()
    expect(opened.value.locator("#answer")).to_have_text("echo: hello from the page")
    opened.value.close()

    expect(page.get_by_text("Not shared yet")).to_be_visible()
    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share the app")
    expect(dialog.get_by_role("textbox", name="Group")).to_have_value("default")
    dialog.get_by_role("button", name="Share", exact=True).click()
    shares = page.get_by_role("table", name="Shared with")
    expect(shares.get_by_role("row").filter(has_text="Group default")).to_be_visible()

    # bob is of the group: he opens it from the list of apps, and does not share it further.
    bob = visit("bob").open("/workbenches", "Workbenches")
    apps = bob.get_by_role("table", name="Apps")
    expect(apps.get_by_role("row").filter(has_text="echoes")).to_contain_text("ann")
    expect(apps.get_by_role("link", name="Open echo")).to_be_visible()

    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_role("dialog").get_by_label("Everyone who has a link").check()
    page.get_by_role("dialog").get_by_role("button", name="Share", exact=True).click()
    note = page.get_by_role("status").filter(has_text="This link is shown once")
    address = note.locator("code").inner_text()
    with server.http("ann") as http:
        kinds = [share["kind"] for share in http.get(f"/apps/{job}").json()["shares"]]
    assert sorted(kinds) == ["group", "link"]
    guest = visit("bob")
    guest.page.goto(address)
    expect(guest.page.locator("#answer")).to_have_text("echo: hello from the page")
    note.get_by_role("button", name="I have copied it").click()
    expect(page.get_by_text("This link is shown once")).to_have_count(0)

    shares.get_by_role("button", name="End the share with Group default").click()
    expect(shares.get_by_role("row").filter(has_text="Group default")).to_have_count(0)
    bob.reload(wait_until="domcontentloaded")
    expect(bob.get_by_role("heading", name="Workbenches", level=1)).to_be_visible()
    expect(bob.get_by_role("table", name="Apps")).to_have_count(0)


def test_a_job_without_an_app_has_no_such_tab(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        plain = http.post("/jobs", json={"name": "plain", "command": ["true"]}).raise_for_status().json()["id"]
    page = visit("ann").open(f"/jobs/{plain}", "plain")
    expect(page.get_by_role("tab", name="Logs")).to_be_visible()
    expect(page.get_by_role("tab", name="App")).to_have_count(0)
