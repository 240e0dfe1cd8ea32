"""Queues, packages and flavors in a real browser: made, changed, refused in words, and deleted, also together."""

from __future__ import annotations

import re
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
    with api_server("--virtual-gpus", "4xA100-80G", users=("ann",)) as running:
        yield running


def row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-key="{name}"]')


def pick(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).or_(page.get_by_role("textbox", name=label)).first.click()
    page.get_by_role("option", name=option).click()


def menu(page: Page, name: str, item: str) -> Locator:
    page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    return page.get_by_role("menuitem", name=re.compile(f"^{item}"))


def close_menu(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)


def open_row(page: Page, name: str) -> None:
    """By the button with its name, as a keyboard would."""
    row(page, name).get_by_role("button", name=re.compile(f"^{name}")).click()


def test_a_queue_is_made_changed_and_deleted(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/queues", "Queue settings")
    expect(row(page, "default")).to_contain_text("Fair share")
    page.get_by_role("button", name="New queue").click()
    form = page.get_by_role("dialog", name="New queue")
    form.get_by_role("textbox", name="Name").fill("no spaces")
    expect(form.get_by_text("Up to 63 letters, digits, - and _", exact=True)).to_be_visible()
    form.get_by_role("textbox", name="Name").fill("nightly")
    form.get_by_role("radio", name="Priority").check()
    form.get_by_role("radio", name="Strict").check()
    form.get_by_role("textbox", name="GPUs held together").fill("3")
    form.get_by_role("textbox", name="Longest run time").fill("1d12h")
    form.get_by_role("switch", name="Preempt running jobs by order").check(force=True)
    form.get_by_role("textbox", name="Guaranteed GPUs").fill("2")
    form.get_by_role("textbox", name="Weight").fill("0")
    expect(form.get_by_text("A number above 0")).to_be_visible()
    form.get_by_role("textbox", name="Weight").fill("1.5")
    form.get_by_role("button", name="New queue").click()
    expect(row(page, "nightly")).to_contain_text("≤ 3 GPUs together · ≤ 1d12h")
    with server.http() as http:
        made = http.get("/queues/nightly").json()
        assert (made["policy"], made["blocking"], made["max_seconds"]) == ("priority", "strict", 129_600)
        assert (made["preempts"], made["guaranteed_gpus"], made["weight"]) == (True, 2, 1.5)
    expect(row(page, "nightly")).to_contain_text("0 of 2")
    open_row(page, "nightly")
    expect(page).to_have_url(re.compile("open=nightly"))
    form = page.get_by_role("dialog", name="Queue nightly")
    form.get_by_role("textbox", name="GPUs held together").fill("")
    form.get_by_role("button", name="Save").click()
    expect(row(page, "nightly")).not_to_contain_text("≤ 3 GPUs")
    with server.http() as http:
        changed = http.get("/queues/nightly").json()
        assert (changed["max_gpus"], changed["weight"]) == (None, 1.5)
    menu(page, "nightly", "Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the queue").click()
    expect(row(page, "nightly")).to_have_count(0)


def test_queues_in_use_are_kept_with_the_reason(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        for name in ("busy", "idle-one", "idle-two"):
            http.post("/queues", json={"name": name}).raise_for_status()
        job = {"name": "waits-in-busy", "command": ["true"], "gpus": 4, "queue": "busy"}
        http.post("/jobs", json={**job, "command": ["sleep", "300"]}).raise_for_status()
    page = visit().open("/queues", "Queue settings")
    item = menu(page, "default", "Delete")
    expect(item).to_be_disabled()
    expect(item).to_contain_text("This is the default queue of its pool")
    close_menu(page)
    expect(menu(page, "busy", "Delete")).to_contain_text("1 job is in it")
    close_menu(page)
    for name in ("busy", "idle-one", "idle-two"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    batch = page.get_by_role("toolbar", name="Actions")
    expect(batch.get_by_role("button", name="Delete")).to_have_attribute("aria-disabled", "true")
    batch.get_by_role("button", name="Delete").hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Cannot be deleted: busy")
    page.get_by_role("checkbox", name="Select busy").uncheck()
    batch.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the queues").click()
    expect(page.get_by_text("2 queues deleted")).to_be_visible()
    with server.http() as http:
        assert {queue["name"] for queue in http.get("/queues").json()["items"]} == {"default", "busy"}
        for job in http.get("/jobs?queue=busy").json()["items"]:
            http.post(f"/jobs/{job['id']}/stop")


def test_a_package_shows_what_it_means_before_it_is_created(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        http.post("/flavors", json={"name": "a100", "models": ["A100-80G"]}).raise_for_status()
    page = visit().open("/packages", "Packages")
    expect(page.get_by_text("No packages yet")).to_be_visible()
    page.get_by_role("button", name="New package").first.click()
    form = page.get_by_role("dialog", name="New package")
    form.get_by_role("textbox", name="Name").fill("medium")
    form.get_by_role("textbox", name="GPUs").fill("1.5")
    expect(form.get_by_text("0, a share below 1 such as 0.25, or a whole number")).to_be_visible()
    form.get_by_role("textbox", name="GPUs").fill("64")
    form.get_by_role("textbox", name="CPUs").fill("1")
    form.get_by_role("textbox", name="Memory").fill("64 apples")
    expect(form.get_by_text("Write a size such as 64GiB")).to_be_visible()
    form.get_by_role("textbox", name="Memory").fill("2G")
    preview = form.get_by_role("status")
    expect(preview).to_contain_text("No node can run this package")
    expect(preview).to_contain_text("the most such GPUs together on one node are 4")
    form.get_by_role("textbox", name="GPUs").fill("2")
    pick(page, "Flavor", "a100 (A100-80G)")
    expect(preview).to_contain_text("2 × A100-80G · 1 CPU · 1.9 GiB of memory")
    expect(preview).to_contain_text("1 of 1 node could run it")
    form.get_by_role("button", name="New package").click()
    expect(row(page, "medium")).to_contain_text("A100-80G")
    expect(row(page, "medium")).to_contain_text("2 now")
    with server.http() as http:
        made = http.get("/packages/medium").json()
        assert (made["gpus"], made["memory_bytes"], made["flavor"]) == (2, 2_000_000_000, "a100")
        (offer,) = http.get("/packages?kind=training").json()["items"]
        assert offer["free_count"] == 2
    page.goto("/packages?open=medium")
    form = page.get_by_role("dialog", name="Package medium")
    form.get_by_role("textbox", name="GPUs").fill("4")
    form.get_by_role("button", name="Save").click()
    expect(row(page, "medium")).to_contain_text("1 now")


def test_a_flavor_in_use_is_kept_and_packages_go_together(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        http.post("/flavors", json={"name": "used-kind"}).raise_for_status()
        for name in ("small-a", "small-b"):
            http.post("/packages", json={"name": name, "cpus": 1, "flavor": "used-kind"}).raise_for_status()
    console = visit()
    page = console.open("/flavors", "Flavors")
    item = menu(page, "used-kind", "Delete")
    expect(item).to_be_disabled()
    expect(item).to_contain_text("Used by packages small-a, small-b")
    close_menu(page)
    # The refusal of a rule that only the server checks is shown beside its field: these packages have no GPUs.
    open_row(page, "used-kind")
    form = page.get_by_role("dialog", name="Flavor used-kind")
    expect(form.get_by_role("status")).to_contain_text("4 GPUs on 1 node are of this kind")
    pick(page, "GPU models", "A100-80G")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("flavor used-kind is used without GPUs by packages small-a, small-b")).to_be_visible()
    console.open("/packages", "Packages")
    for name in ("small-a", "small-b"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    page.get_by_role("toolbar", name="Actions").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Jobs that were submitted with them keep their size")
    dialog.get_by_role("button", name="Delete the packages").click()
    expect(row(page, "small-a")).to_have_count(0)
    console.open("/flavors", "Flavors")
    menu(page, "used-kind", "Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the flavor").click()
    expect(row(page, "used-kind")).to_have_count(0)


def test_a_flavor_is_made_from_what_the_fleet_has(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/flavors?new=yes", "Flavors")
    form = page.get_by_role("dialog", name="New flavor")
    form.get_by_role("textbox", name="Name").fill("with-label")
    labels = form.get_by_role("combobox", name="Node labels").or_(form.get_by_role("textbox", name="Node labels")).first
    labels.fill("no label")
    labels.press("Enter")
    expect(form.get_by_text("Write key=value: no label")).to_be_visible()
    labels.press("Backspace")
    labels.fill("rack=nowhere")
    labels.press("Enter")
    expect(form.get_by_role("status")).to_contain_text("No GPU of the fleet is of this kind")
    form.get_by_role("button", name="New flavor").click()
    expect(row(page, "with-label")).to_contain_text("rack=nowhere")
    with server.http() as http:
        assert http.get("/flavors/with-label").json()["labels"] == {"rack": "nowhere"}


def test_a_scientist_sees_none_of_it(visit: Visit) -> None:
    console = visit("ann")
    for path in ("/queues", "/packages", "/flavors"):
        page = console.open(path)
        expect(page.get_by_text("This page is for operators")).to_be_visible()
