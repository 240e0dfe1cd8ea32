"""Nodes and GPUs: what is shown of them, and what operators do with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "3x2xA10", users=("ann",)) as running:
        yield running


@pytest.fixture(scope="module")
def held(server: CorralServer) -> str:
    """A GPU that a job of ann's holds."""
    with server.http("ann") as http:
        body = {"name": "bert-tune", "command": ["sleep", "900"], "gpus": 1, "grace": 1}
        job = http.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "bert-tune runs")
        gpu: str = http.get(f"/jobs/{job}").json()["allocation"]["grants"][0]["gpus"][0]
    return gpu


@pytest.fixture(scope="module")
def free(server: CorralServer, held: str) -> list[str]:
    """GPUs on nodes without jobs."""
    with server.http() as http:
        nodes = http.get("/nodes").json()["items"]
    return [gpu["id"] for node in nodes if not node["jobs"] for gpu in node["gpus"]]


def row(page: Page, table: str, name: str) -> Locator:
    return page.get_by_role("table", name=table, exact=True).get_by_role("row").filter(has_text=name)


def test_nodes_are_listed_with_what_is_free_and_narrowed_by_the_address(visit: Visit, held: str) -> None:
    node = held.rsplit("-", 1)[0]
    page = visit().open("/nodes", "Nodes")
    expect(page.get_by_text("3 of 3 ready")).to_be_visible()
    expect(row(page, "Nodes", node).get_by_role("img", name="1 of 2 free")).to_be_visible()
    expect(row(page, "Nodes", node)).to_contain_text("1 / 2")
    page.get_by_role("textbox", name="Find by name, label or user").fill("ann")
    expect(page).to_have_url(re.compile("q=ann"))
    expect(page.get_by_role("table", name="Nodes").get_by_role("row")).to_have_count(2)
    row(page, "Nodes", node).get_by_role("link", name=node).click()
    expect(page.get_by_role("heading", name=node, level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Jobs on this node")).to_contain_text("bert-tune")
    expect(row(page, "GPUs of this node", held)).to_contain_text("ann")


def test_nodes_are_cordoned_together_and_one_is_uncordoned(visit: Visit, server: CorralServer, free: list[str]) -> None:
    nodes = sorted({gpu.rsplit("-", 1)[0] for gpu in free})
    page = visit().open("/nodes", "Nodes")
    for node in nodes:
        page.get_by_role("checkbox", name=f"Select {node}").check()
    tools = page.get_by_role("toolbar")
    expect(tools.get_by_role("button", name="Uncordon")).to_have_attribute("aria-disabled", "true")
    tools.get_by_role("button", name="Cordon", exact=True).click()
    question = page.get_by_role("dialog", name="Cordon 2 nodes?")
    expect(question).to_contain_text("No new jobs start")
    question.get_by_role("button", name="Cordon").click()
    for node in nodes:
        expect(row(page, "Nodes", node)).to_contain_text("cordoned")
    expect(page.get_by_text("2 nodes cordoned")).to_be_visible()
    with server.http() as http:
        assert {http.get(f"/nodes/{node}").json()["state"] for node in nodes} == {"cordoned"}
        page.get_by_role("button", name=f"Actions for {nodes[0]}").click()
        page.get_by_role("menuitem", name="Uncordon").click()
        expect(row(page, "Nodes", nodes[0])).to_contain_text("ready")
        wait_until(lambda: http.get(f"/nodes/{nodes[0]}").json()["state"] == "ready", "the node is ready")
        http.post(f"/nodes/{nodes[1]}/uncordon").raise_for_status()
    # The change of another operator is shown without a reload.
    expect(row(page, "Nodes", nodes[1])).to_contain_text("ready")


def test_disabled_actions_of_a_node_show_the_reason(visit: Visit, held: str) -> None:
    page = visit().open(f"/nodes/{held.rsplit('-', 1)[0]}")
    remove = page.get_by_role("button", name="Remove")
    expect(remove).to_have_attribute("aria-disabled", "true")
    remove.focus()
    expect(page.get_by_role("tooltip")).to_contain_text("The node has jobs")


def test_a_node_shows_what_happened_to_it(visit: Visit, server: CorralServer, free: list[str]) -> None:
    node = free[-1].rsplit("-", 1)[0]
    page = visit().open(f"/nodes/{node}")
    page.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_role("region", name="Events")).to_contain_text("is being drained")
    page.get_by_role("button", name="Uncordon").click()
    expect(page.get_by_role("region", name="Events")).to_contain_text("was uncordoned")


def test_gpus_are_narrowed_by_use_and_lead_to_their_page(visit: Visit, held: str) -> None:
    page = visit().open("/gpus?use=used", "GPUs")
    gpus = page.get_by_role("table", name="GPUs")
    expect(gpus.get_by_role("row")).to_have_count(2)
    expect(row(page, "GPUs", held)).to_contain_text("ann · bert-tune")
    gpus.get_by_role("link", name=held).click()
    expect(page.get_by_role("heading", name=held, level=1)).to_be_visible()
    expect(page.get_by_role("figure", name="Load")).to_contain_text("max")
    expect(page.get_by_role("button", name="Self-test")).to_have_attribute("aria-disabled", "true")


def test_a_gpu_is_marked_suspect_with_a_reason_and_reset(visit: Visit, server: CorralServer, free: list[str]) -> None:
    gpu = free[0]
    page = visit().open("/gpus", "GPUs")
    page.get_by_role("checkbox", name=f"Select {gpu}").check()
    page.get_by_role("toolbar").get_by_role("button", name="Mark as bad").click()
    form = page.get_by_role("dialog", name="Mark 1 GPU as bad")
    form.get_by_role("button", name="Mark").click()
    expect(form).to_contain_text("Say why.")
    form.get_by_role("textbox", name="Reason").fill("a loose power cable")
    form.get_by_role("button", name="Mark").click()
    expect(row(page, "GPUs", gpu)).to_contain_text("suspect")
    expect(row(page, "GPUs", gpu)).to_contain_text("a loose power cable")
    page.goto(f"/gpus/{gpu}", wait_until="domcontentloaded")
    expect(page.get_by_role("region", name="Evidence")).to_contain_text("a loose power cable (operator)")
    page.get_by_role("button", name="Reset health").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset health").click()
    expect(page.get_by_role("region", name="Evidence")).to_contain_text("No evidence against")
    expect(page.get_by_role("region", name="Events")).to_contain_text("health was reset")
    with server.http() as http:
        assert http.get(f"/gpus/{gpu}").json()["health"] == "healthy"


def test_gpus_are_tested_and_the_result_is_shown(visit: Visit, server: CorralServer, free: list[str]) -> None:
    with server.http() as http:
        http.post(f"/gpus/{free[1]}/mark", json={"health": "failed", "reason": "no answer"}).raise_for_status()
    page = visit().open("/gpus?health=failed", "GPUs")
    page.get_by_role("button", name=f"Actions for {free[1]}").click()
    page.get_by_role("menuitem", name="Self-test").click()
    page.get_by_role("dialog").get_by_role("button", name="Self-test").click()
    expect(page.get_by_text("1 GPU tested")).to_be_visible()
    with server.http() as http:
        wait_until(lambda: http.get(f"/gpus/{free[1]}").json()["health"] == "healthy", "it passed")


def test_a_missing_gpu_is_reported_in_words(visit: Visit) -> None:
    page = visit("ann").open("/gpus/no/such/gpu")
    expect(page.get_by_text("There is no such GPU")).to_be_visible()


def test_a_drain_that_must_be_empty_now_moves_the_job_and_ends_as_drained(
    visit: Visit, server: CorralServer, held: str
) -> None:
    with server.http("ann") as http:
        (job,) = http.get("/jobs", params={"state": "running"}).json()["items"]
        node = job["allocation"]["grants"][0]["node"]
        page = visit().open(f"/nodes/{node}")
        page.get_by_role("button", name="Drain").click()
        dialog = page.get_by_role("dialog")
        # At first no job is displaced: all run to their end.
        expect(dialog.get_by_role("table", name="Jobs there")).to_contain_text("runs to its end")
        dialog.get_by_text("Now", exact=True).click()
        expect(dialog.get_by_role("table", name="Jobs there")).to_contain_text("surely")
        dialog.get_by_role("button", name="Drain the node").click()
        expect(page.locator('[data-state="drained"]').first).to_be_visible(timeout=30_000)
        expect(page.get_by_text("Drained by operator: no jobs are left")).to_be_visible()
        expect(page.get_by_role("region", name="Events")).to_contain_text("is drained")

        def runs_elsewhere() -> bool:
            now = http.get(f"/jobs/{job['id']}").json()
            return now["state"] == "running" and now["allocation"]["grants"][0]["node"] != node

        wait_until(runs_elsewhere, "the job continues on another node")
    page.get_by_role("button", name="Uncordon").click()
    expect(page.get_by_text("Drained by operator")).to_have_count(0)
