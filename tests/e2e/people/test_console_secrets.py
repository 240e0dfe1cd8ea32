"""Secrets in a real browser: stored, replaced, deleted, and shown by their names only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

PATH = "/settings?tab=secrets"


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "2xA10", users=("ann",)) as running:
        yield running


def put(page: Page, value: str) -> None:
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value").fill(value)
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_secret_is_stored_used_replaced_and_deleted(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open(PATH, "Settings")
    expect(page.get_by_text("No secret yet")).to_be_visible()
    page.get_by_role("button", name="New secret").click()
    dialog = page.get_by_role("dialog", name="New secret")
    name = dialog.get_by_label("Name")
    name.fill("not a name")
    name.press("Tab")
    expect(dialog.get_by_text("beginning with a letter or digit")).to_be_visible()
    # The hint belongs to the field also for a screen reader.
    hint = dialog.get_by_label("Value").get_attribute("aria-describedby") or ""
    assert "never shown again" in page.evaluate("id => document.getElementById(id).textContent", hint.split()[0])
    name.fill("HF_TOKEN")
    put(page, "first-value")
    row = page.get_by_role("table", name="Secrets").get_by_role("row").filter(has_text="HF_TOKEN")
    expect(row).to_contain_text("My jobs")
    expect(page.get_by_text("first-value")).to_have_count(0)
    row.get_by_role("button", name="Replace HF_TOKEN").click()
    put(page, "second-value")
    with server.http("ann") as http:
        body = {"command": ["sh", "-c", 'echo "length ${#HF_TOKEN}"'], "secrets": ["HF_TOKEN"]}
        job = http.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "completed", "the job has the secret")
        assert "length 12" in http.get(f"/jobs/{job}/logs").text
    row.get_by_role("button", name="Delete HF_TOKEN").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the secret").click()
    expect(page.get_by_text("No secret yet")).to_be_visible()


def test_operators_store_the_secrets_of_groups_and_members_see_their_names(visit: Visit) -> None:
    operator = visit().open(PATH, "Settings")
    operator.get_by_role("button", name="New secret").click()
    dialog = operator.get_by_role("dialog")
    dialog.get_by_label("Name").fill("LAB_KEY")
    dialog.get_by_role("combobox", name="For").click()
    operator.get_by_role("option", name="Group default").click()
    put(operator, "of-the-lab")
    page = visit("ann").open(PATH, "Settings")
    row = page.get_by_role("table", name="Secrets").get_by_role("row").filter(has_text="LAB_KEY")
    expect(row).to_contain_text("Group default")
    expect(row.get_by_role("button", name="Delete LAB_KEY")).to_have_attribute("aria-disabled", "true")
