"""Pools in the console: what is in them, and moving GPUs between them by mouse, by keyboard and by button."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.e2e.dragging import MOMENT_MS, carry_right, drag
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    """Two nodes with four GPUs each of two models."""
    with api_server("--virtual-nodes", "1x4xA100-80G,1x4xL4", users=("ann",)) as running:
        yield running


@pytest.fixture
def operator(server: CorralServer) -> Iterator[httpx.Client]:
    """Afterwards everything is in the pool default again."""
    with server.http() as http:
        yield http
        for job in http.get("/jobs?state=queued&state=running&state=starting").json()["items"]:
            http.post(f"/jobs/{job['id']}/stop")
        http.patch("/groups/vision", json={"pool": None})
        http.delete("/groups/vision")
        for pool in http.get("/pools").json()["items"]:
            if pool["name"] != "default":
                http.delete(f"/pools/{pool['name']}")


def gpus_of(operator: httpx.Client, pool: str) -> list[str]:
    answer: dict[str, Any] = operator.get(f"/pools/{pool}").raise_for_status().json()
    return sorted(gpu["id"] for gpu in answer["gpus"])


def of_model(operator: httpx.Client, model: str) -> list[str]:
    return sorted(gpu["id"] for gpu in operator.get("/gpus").json()["items"] if gpu["model"] == model)


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def free_tiles(page: Page, pool: str, model: str) -> Locator:
    return column(page, pool).get_by_role("button", name=re.compile(rf"GPU \d+ of .*{model}.*free"))


def test_the_list_shows_models_use_group_and_queues(visit: Visit, operator: httpx.Client) -> None:
    operator.post("/pools", json={"name": "vision", "gpus": of_model(operator, "A100-80G")[:2]}).raise_for_status()
    operator.post("/groups", json={"name": "vision", "pool": "vision"}).raise_for_status()
    page = visit().open("/pools", "Pools")
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name="vision", exact=True))
    expect(row).to_contain_text("2 × A100-80G")
    expect(row).to_contain_text("0 of 2")
    expect(row.get_by_role("link", name="vision")).to_have_attribute("href", "/groups?open=vision")
    row.get_by_role("button", name="Actions for vision").click()
    delete = page.get_by_role("menuitem", name=re.compile("Delete"))
    expect(delete).to_be_disabled()
    expect(delete).to_contain_text("belongs to group vision: detach it there first")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    page.get_by_role("button", name="Actions for default").click()
    expect(page.get_by_role("menuitem", name=re.compile("Delete"))).to_contain_text("default pool cannot be deleted")


def test_a_pool_is_made_and_filled_by_mouse_and_by_keyboard(visit: Visit, operator: httpx.Client) -> None:
    page = visit().open("/pools", "Pools")
    page.get_by_role("button", name="Create pool").click()
    name = page.get_by_role("textbox", name="Name")
    name.fill("two words")
    expect(page.get_by_text("Up to 63 letters, digits, - and _", exact=True)).to_be_visible()
    name.fill("default")
    expect(page.get_by_text("There is a pool of that name")).to_be_visible()
    name.fill("vision")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("button", name="vision", exact=True)).to_be_visible()
    page.get_by_text("Move GPUs", exact=True).click()
    expect(column(page, "vision")).to_contain_text("No GPUs")

    drag(page, free_tiles(page, "default", "A100-80G").first, column(page, "vision"))
    dialog = page.get_by_role("dialog", name="Move 1 GPU to vision?")
    expect(dialog).to_contain_text("1 A100-80G from default")
    expect(dialog).to_contain_text("No group has pool vision yet")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(free_tiles(page, "vision", "A100-80G")).to_have_count(1)

    tile = free_tiles(page, "default", "A100-80G").first
    tile.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_role("status").filter(has_text="2 GPUs chosen")).to_be_visible()
    page.keyboard.press("Enter")
    expect(column(page, "vision")).to_contain_text("Drop here")
    # Columns are measured right after they show that they take something: no hand is quicker than that.
    page.wait_for_timeout(5 * MOMENT_MS)
    carry_right(page, column(page, "vision"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Move 2 GPUs to vision?")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(free_tiles(page, "vision", "A100-80G")).to_have_count(3)
    expect(page.get_by_text("2 GPUs moved to vision")).to_be_visible()
    assert gpus_of(operator, "vision") == of_model(operator, "A100-80G")[:3]


def test_a_node_at_once_by_button_and_a_second_model_is_refused_before_the_click(
    visit: Visit, operator: httpx.Client
) -> None:
    operator.post("/pools", json={"name": "small"}).raise_for_status()
    page = visit().open("/pools?view=board", "Pools")
    column(page, "default").get_by_role("button", name=re.compile(r"^All of .*L4")).click()
    page.get_by_role("button", name="Move to…").click()
    page.get_by_role("menuitem", name="small").click()
    page.get_by_role("dialog").get_by_role("button", name="Move", exact=True).click()
    expect(free_tiles(page, "small", "L4")).to_have_count(4)
    free_tiles(page, "default", "A100-80G").first.click()
    page.get_by_role("button", name="Move to…").click()
    item = page.get_by_role("menuitem", name=re.compile("small"))
    expect(item).to_be_disabled()
    expect(item).to_contain_text("A pool has one model: small would have A100-80G, L4")
    page.keyboard.press("Escape")
    drag(page, free_tiles(page, "default", "A100-80G").first, column(page, "small"))
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("A pool has one model")
    expect(dialog.get_by_role("button", name="Move", exact=True)).to_be_disabled()
    assert len(gpus_of(operator, "small")) == 4


def test_a_busy_gpu_moves_when_its_job_has_ended_or_is_kept(
    visit: Visit, operator: httpx.Client, server: CorralServer
) -> None:
    operator.post("/pools", json={"name": "later"}).raise_for_status()
    with server.http("ann") as ann:
        body = {"name": "holds-one", "gpus": 1, "command": ["sleep", "600"]}
        job = ann.post("/jobs", json=body).raise_for_status().json()
    page = visit().open("/pools?view=board", "Pools")
    held = page.get_by_role("button", name=re.compile(rf"held by job {job['id']} of ann"))
    drag(page, held, column(page, "later"))
    dialog = page.get_by_role("dialog", name="Move 1 GPU to later?")
    expect(dialog).to_contain_text(f"1 GPU has a running job: {job['id']} of ann.")
    expect(dialog).to_contain_text("moves when its job has ended")
    dialog.get_by_role("button", name="Move when free").click()
    expect(page.get_by_text("1 GPU moves to later when free")).to_be_visible()
    leaving = column(page, "default").get_by_role("button", name=re.compile("moves to later when free"))
    expect(leaving).to_have_count(1)
    assert gpus_of(operator, "later") == []

    # It is taken back by moving the GPU into the pool that it is in.
    leaving.click()
    page.get_by_role("button", name="Move to…").click()
    page.get_by_role("menuitem", name="default", exact=True).click()
    page.get_by_role("dialog", name="Keep 1 GPU in default?").get_by_role("button", name="Keep").click()
    expect(leaving).to_have_count(0)

    drag(page, held, column(page, "later"))
    page.get_by_role("dialog").get_by_role("button", name="Move when free").click()
    expect(leaving).to_have_count(1)
    [gpu] = [gpu["id"] for gpu in operator.get("/pools/default").json()["gpus"] if gpu["next_pool"]]
    detail = visit().open(f"/gpus/{gpu}", gpu)
    expect(detail.get_by_text("moves to pool later when its jobs have ended")).to_be_visible()
    detail.get_by_role("button", name="Keep in default").click()
    expect(detail.get_by_text("The GPU stays in pool default")).to_be_visible()
    detail.get_by_role("button", name="Undo").click()
    expect(detail.get_by_role("button", name="Keep in default")).to_be_visible()
    operator.post(f"/jobs/{job['id']}/stop").raise_for_status()
    expect(column(page, "later").get_by_role("button", name=re.compile("GPU .* free$"))).to_have_count(1)
    assert gpus_of(operator, "later") == [gpu]


def test_only_free_gpus_are_shown_if_wished(visit: Visit, operator: httpx.Client, server: CorralServer) -> None:
    with server.http("ann") as ann:
        body = {"name": "holds-one", "gpus": 1, "command": ["sleep", "600"]}
        job = ann.post("/jobs", json=body).raise_for_status().json()
    page = visit().open("/pools?view=board", "Pools")
    held = page.get_by_role("button", name=re.compile(rf"held by job {job['id']} of ann"))
    expect(held).to_have_count(1)
    page.get_by_role("checkbox", name="Only free ones").check()
    expect(held).to_have_count(0)
    expect(page).to_have_url(re.compile("free=yes"))
    expect(page.get_by_text("7 of 8 GPUs shown")).to_be_visible()


def test_a_refused_move_is_reported_and_taken_back(visit: Visit, operator: httpx.Client) -> None:
    operator.post("/pools", json={"name": "gone"}).raise_for_status()
    console = visit()
    page = console.open("/pools?view=board", "Pools")
    expect(free_tiles(page, "default", "L4")).to_have_count(4)
    free_tiles(page, "default", "L4").first.click()
    page.get_by_role("button", name="Move to…").click()
    page.get_by_role("menuitem", name="gone").click()
    # Another operator deletes the pool while the question is open; the page gets the event only afterwards.
    page.route("**/api/v1/pools/gone/gpus", lambda route: (operator.delete("/pools/gone"), route.continue_()))
    page.get_by_role("dialog").get_by_role("button", name="Move", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="there is no pool 'gone'")).to_be_visible()
    expect(free_tiles(page, "default", "L4")).to_have_count(4)


def test_deleting_shows_what_happens_and_gives_the_gpus_back(visit: Visit, operator: httpx.Client) -> None:
    operator.post("/pools", json={"name": "brief", "gpus": of_model(operator, "L4")[:2]}).raise_for_status()
    page = visit().open("/pools", "Pools")
    page.get_by_role("button", name="Actions for brief").click()
    page.get_by_role("menuitem", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete pool brief?")
    expect(question).to_contain_text("2 GPUs go back to the pool default")
    question.get_by_role("button", name="Delete 1 pool").click()
    expect(page.get_by_role("button", name="brief", exact=True)).to_have_count(0)
    assert len(gpus_of(operator, "default")) == 8
