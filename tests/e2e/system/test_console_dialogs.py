"""Forms and dialogs as assistive technology reads them: one banner, labelled controls, hints that belong to inputs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

#: the address of a form, and the heading of the page below it
FORMS = (
    ("/volumes?open=new", "Volumes"),
    ("/users?new=yes", "Users"),
    ("/pools?new=yes", "Pools"),
    ("/flavors?new=yes", "Flavors"),
    ("/queues?new=yes", "Queue settings"),
    ("/settings?tab=notifications&create=1", "Settings"),
)

#: Controls without a label, and descriptions that no control or group has.
FAULTS = """() => {
  const dialog = document.querySelector("[role=dialog]");
  const found = [];
  for (const control of dialog.querySelectorAll("input:not([type=hidden]), textarea, select")) {
    const isNamed = control.labels?.length || control.ariaLabel || control.getAttribute("aria-labelledby");
    if (!isNamed) found.push(`no label: ${control.outerHTML.slice(0, 120)}`);
  }
  const described = new Set();
  for (const one of dialog.querySelectorAll("[aria-describedby]"))
    for (const id of one.getAttribute("aria-describedby").split(" ")) described.add(id);
  for (const hint of dialog.querySelectorAll(".mantine-InputWrapper-description, p.mantine-Text-root[data-size=xs]"))
    if (hint.textContent && !described.has(hint.id)) found.push(`a hint of nothing: ${hint.textContent}`);
  return found;
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "2xA10") as running:
        yield running


@pytest.mark.parametrize(("address", "heading"), FORMS)
def test_a_form_has_labels_and_hints_and_no_banner_of_its_own(
    visit: Visit, server: CorralServer, address: str, heading: str
) -> None:
    page = visit("operator").open(address, heading)
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("banner")).to_have_count(1)
    assert page.evaluate(FAULTS) == []
