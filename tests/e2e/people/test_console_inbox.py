"""The inbox in a real browser: what happened to one's own jobs, counted, read, and narrowed to the wanted kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer
from tests.servers.smtp import SmtpServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def mails() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        yield server


@pytest.fixture(scope="module")
def server(mails: SmtpServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    config = tmp_path_factory.mktemp("inbox") / "corral.yaml"
    config.write_text(f"notification: {{personal_mail: '{mails.url}'}}\n")
    with api_server("--virtual-gpus", "2xA10", "--config", str(config), users=("ann",)) as running:
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


def test_a_mail_address_is_confirmed_and_tested_where_kinds_are_chosen(visit: Visit, mails: SmtpServer) -> None:
    page = visit("ann").open("/settings?tab=inbox", "Settings")
    expect(page.get_by_text("Your inbox is only here")).to_be_visible()
    page.get_by_role("button", name="New channel").click()
    form = page.get_by_role("dialog", name="New channel")
    form.get_by_label("Name").fill("phone")
    form.get_by_label("Mail address").fill("ann@example.org")
    form.get_by_role("checkbox", name="started").uncheck()
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_text("A code was mailed to ann@example.org")).to_be_visible()
    code = page.get_by_label("Code that was mailed to ann@example.org")
    code.fill("0000")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("this is not the code that was mailed last")).to_be_visible()
    code.fill(mails.bodies()[-1].split()[0])
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("ann@example.org is confirmed")).to_be_visible()
    page.get_by_role("button", name="Test phone").click()
    expect(page.get_by_text("phone accepted the test message.")).to_be_visible()
    assert mails.subjects == ["[corral] Confirm your address", "[corral] Test message"]
    page.get_by_role("button", name="New channel").click()
    form.get_by_label("Name").fill("inner")
    form.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="Discord").click()
    form.get_by_label("Webhook URL").fill("https://127.0.0.1/admin")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_text("is inside of this network")).to_be_visible()
