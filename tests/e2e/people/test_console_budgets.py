"""The page of budgets: an operator sets a price, a limit and a grant; a user sees the own group's, and reads its
statement."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


def test_a_budget_is_set_granted_to_and_read(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/budgets", "Budgets")
    expect(page.get_by_text("Set the price of a GPU model, and statements show what jobs cost.")).to_be_visible()
    page.get_by_role("button", name="Set price").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="GPU model").fill("A10")
    form.get_by_role("textbox", name="Price per hour").fill("2.50")
    form.get_by_role("textbox", name="Currency").fill("EUR")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row").filter(has_text="A10")).to_contain_text("2.5 EUR")

    page.get_by_role("button", name="Set budget").click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox", name="Name").click()
    page.get_by_role("option", name="default", exact=True).click()
    form.get_by_role("textbox", name="Hard limit").fill("100")
    form.get_by_role("textbox", name="Soft limit").fill("200")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("Not above the hard limit")).to_be_visible()
    form.get_by_role("textbox", name="Soft limit").fill("80")
    form.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has_text="group default")
    expect(row).to_contain_text("100")

    row.get_by_role("button", name="Actions for group/default/gpu-hours").click()
    page.get_by_role("menuitem", name="Grant an amount").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="Amount").fill("12.5")
    form.get_by_role("textbox", name="Note").fill("deadline")
    form.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("-12.5")

    hers = visit("ann").open("/budgets", "Budgets")
    expect(hers.get_by_role("button", name="Set budget")).to_have_count(0)
    row = hers.get_by_role("row").filter(has_text="group default")
    row.get_by_role("button", name="Actions for group/default/gpu-hours").click()
    hers.get_by_role("menuitem", name="Statement").click()
    statement = hers.get_by_role("dialog")
    expect(statement.get_by_role("row").filter(has_text="deadline")).to_contain_text("12.5")
    with hers.expect_download() as download:
        statement.get_by_role("link", name="CSV").click()
    assert "12.500000" in download.value.path().read_text()
    hers = visit("ann").open("/settings?tab=quota", "Settings")
    expect(hers.get_by_text("group default, this month")).to_be_visible()

    with server.http() as http:
        http.delete("/budgets/group/default").raise_for_status()
        http.delete("/prices", params={"model": "A10"}).raise_for_status()
