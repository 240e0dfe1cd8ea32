"""The functions of every table: choose columns, keep its order in the address, download CSV, save and share a view."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Visit
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "3x2xA10", users=("ann",)) as running:
        yield running


def menu(page: Page, item: str, role: Literal["menuitem", "menuitemcheckbox"] = "menuitem") -> None:
    opened = page.get_by_role(role, name=item, exact=True)
    if not opened.is_visible():
        page.get_by_role("button", name="Columns, CSV and views of Nodes").click()
    opened.click()


def nodes(page: Page) -> list[str]:
    """The names in their order."""
    rows = page.get_by_role("table", name="Nodes").locator("tbody tr[data-key]")
    return [row.get_attribute("data-key") or "" for row in rows.all()]


def test_order_and_columns_are_in_the_address_and_in_a_saved_view(visit: Visit) -> None:
    console = visit()
    page = console.open("/nodes", "Nodes")
    table = page.get_by_role("table", name="Nodes")
    expect(table.locator("tbody tr[data-key]")).to_have_count(3)
    usual = nodes(page)
    table.get_by_role("button", name="Node", exact=True).click()
    expect(page).to_have_url(re.compile(r"sort=-\w+"))
    assert nodes(page) == usual[::-1]
    menu(page, "Network", "menuitemcheckbox")
    expect(table.get_by_role("columnheader", name="Network")).to_have_count(0)
    expect(page).to_have_url(re.compile("hide=network"))
    menu(page, "Save this view …")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name of the view").fill("backwards")
    dialog.get_by_role("button", name="Save").click()

    console.open("/nodes?hide=disk", "Nodes")
    expect(table.locator("tbody tr[data-key]")).to_have_count(3)
    assert nodes(page) == usual
    expect(table.get_by_role("columnheader", name="Network")).to_be_visible()
    expect(table.get_by_role("columnheader", name="Disk")).to_have_count(0)
    menu(page, "backwards")
    expect(table.get_by_role("columnheader", name="Network")).to_have_count(0)
    assert nodes(page) == usual[::-1]


def test_csv_has_the_rows_and_columns_that_are_shown(visit: Visit, tmp_path: Path) -> None:
    page = visit().open("/nodes?hide=network&sort=-id", "Nodes")
    table = page.get_by_role("table", name="Nodes")
    expect(table.locator("tbody tr[data-key]")).to_have_count(3)
    with page.expect_download() as download:
        menu(page, "Download as CSV")
    path = tmp_path / "nodes.csv"
    download.value.save_as(path)
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head[0] == "Node"
    assert "Network" not in head
    assert [row[0].split()[0] for row in rows] == nodes(page)
    free = head.index("Free")
    assert {row[free] for row in rows} == {"2"}
