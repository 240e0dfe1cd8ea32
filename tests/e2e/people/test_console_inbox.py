"""The inbox in a real browser: what happened to one's own jobs, counted, read, and narrowed to the wanted kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "2xA10", users=("ann",)) as running:
        yield running


def test_a_failure_appears_at_once_is_read_and_unwanted_kinds_are_left_out(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/inbox", "Inbox")
    expect(page.get_by_text("Nothing has happened yet")).to_be_visible()
    with server.http("ann") as http:
        body = {"name": "breaks-soon", "command": ["sh", "-c", "exit 3"], "gpus": 1}
        http.post("/jobs", json=body).raise_for_status()
    table = page.get_by_role("table", name="Inbox")
    expect(table.get_by_role("row").filter(has_text="breaks-soon has failed")).to_contain_text("new")
    expect(table.get_by_role("row").filter(has_text="breaks-soon has started")).to_have_count(1)
    expect(page.get_by_role("link", name="Inbox: 2 unread")).to_be_visible()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("link", name="Inbox: everything is read")).to_be_visible()
    page.get_by_role("link", name="What is shown").click()
    page.get_by_role("switch", name="started").click()
    expect(page.get_by_text("Inbox settings saved")).to_be_visible()
    with server.http("ann") as http:
        found = http.get("/me/inbox").json()
    assert found["muted"] == ["started"]
    assert [item["action"] for item in found["items"]] == ["job.failed"]
    assert (found["unread"], found["items"][0]["name"]) == (0, "breaks-soon")
    # An operator's own inbox does not have the failures of others.
    with server.http() as http:
        assert http.get("/me/inbox").json()["items"] == []
    page.goto("/inbox", wait_until="domcontentloaded")
    page.get_by_role("table", name="Inbox").get_by_role("link", name="breaks-soon has failed").click()
    expect(page.get_by_role("heading", name="breaks-soon", level=1)).to_be_visible()
