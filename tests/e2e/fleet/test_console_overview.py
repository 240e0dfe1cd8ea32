"""The overview: real figures, the map of GPUs by mouse and keyboard, trends, and a failure that shows by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

CONFIG = """
monitoring:
  interval_seconds: 0.5
  health: {confirm_readings: 3, idle_grace_minutes: null}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    config = tmp_path_factory.mktemp("overview") / "corral.yaml"
    config.write_text(CONFIG)
    with api_server("--virtual-nodes", "3x2xA10", "--config", str(config), users=("ann", "bob")) as running:
        yield running


@dataclass(frozen=True)
class Work:
    """ann holds both GPUs of a node; bob waits for all nodes."""

    node: str
    gpus: list[str]
    waiting: str


@pytest.fixture(scope="module")
def work(server: CorralServer) -> Work:
    with server.http("ann") as ann, server.http("bob") as bob:
        body = {"name": "llama-sft", "command": ["sleep", "900"], "gpus": 2, "grace": 1}
        held = ann.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: ann.get(f"/jobs/{held}").json()["state"] == "running", "llama-sft runs")
        grant = ann.get(f"/jobs/{held}").json()["allocation"]["grants"][0]
        body = {"name": "moe-waits", "kind": "distributed", "command": ["true"], "gpus": 2, "nodes": 3}
        waiting = bob.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: bool(bob.get(f"/jobs/{waiting}/why").json()["summary"]), "moe-waits has a reason")
    return Work(node=grant["node"], gpus=grant["gpus"], waiting=waiting)


def region(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


def test_the_figures_are_those_of_the_server(visit: Visit, server: CorralServer, work: Work) -> None:
    with server.http() as http:
        now = http.get("/overview").json()
        reason = http.get(f"/jobs/{work.waiting}/why").json()["summary"]
    page = visit().open("/", "Overview")

    def figure(name: str) -> Locator:
        return page.get_by_role("group", name=name)

    expect(figure("GPUs in use")).to_contain_text(f"{now['gpus_allocated']:g} of {now['gpus']}")
    expect(figure("GPUs in use")).to_contain_text(f"{now['allocation']:.0%} asked for")
    expect(figure("Power")).to_contain_text(re.compile(r"\d+ ?W"))
    expect(figure("Temperature")).to_contain_text("°C")
    expect(figure("Node CPU")).to_contain_text(re.compile(r"\d+(\.\d)?%"))
    expect(figure("Waiting")).to_contain_text(f"{now['queued']} job")
    expect(page.get_by_text("3 nodes · 6 GPUs")).to_be_visible()
    queue = region(page, "Next in the queue")
    expect(queue).to_contain_text(reason[0].upper() + reason[1:])
    expect(queue.get_by_role("link", name="moe-waits")).to_have_attribute("href", f"/jobs/{work.waiting}")
    expect(region(page, "GPUs by user")).to_contain_text("ann2")
    kinds = page.get_by_role("table", name="Resources")
    expect(kinds.get_by_role("row", name=re.compile("^training"))).to_contain_text("training102")


def test_a_gpu_opens_from_the_map_by_mouse(visit: Visit, work: Work) -> None:
    gpu = work.gpus[1]
    page = visit("ann").open(f"/?find={gpu}", "Overview")
    expect(page.get_by_text("1 of 6 GPUs")).to_be_visible()
    gpus = page.get_by_role("application", name=re.compile("Map of 1 GPU"))
    gpus.hover(position={"x": 12, "y": 28})
    tooltip = page.get_by_role("tooltip").filter(has_text=gpu)
    expect(tooltip).to_contain_text("ann")
    expect(tooltip).to_contain_text("A10")
    gpus.click(position={"x": 12, "y": 28})
    expect(page).to_have_url(re.compile(f"/gpus/{gpu}$"))
    expect(page.get_by_role("heading", name=gpu, level=1)).to_be_visible()
    expect(region(page, "Jobs on this GPU")).to_contain_text("llama-sft")


def test_a_gpu_opens_from_the_map_by_keyboard(visit: Visit, server: CorralServer, work: Work) -> None:
    with server.http() as http:
        ids = http.get("/gpus/map").json()["gpus"]["id"]
    page = visit().open("/", "Overview")
    gpus = page.get_by_role("application", name=re.compile("Map of 6 GPUs"))
    gpus.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowRight")
    reported = page.locator("[aria-live=polite]").filter(has_text=ids[3])
    expect(reported).to_contain_text("Utilisation")
    expect(page.get_by_role("tooltip").filter(has_text=ids[3])).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=ids[3], level=1)).to_be_visible()


def test_the_map_is_coloured_and_listed_as_asked_and_the_address_keeps_it(visit: Visit, work: Work) -> None:
    console = visit()
    page = console.open("/", "Overview")
    page.get_by_role("radiogroup", name="Colour by").get_by_text("Temperature").click()
    expect(page).to_have_url(re.compile("color=temperature"))
    expect(page.get_by_role("list", name="Legend")).to_contain_text("95 °C")
    page.get_by_role("radiogroup", name="Colour by").get_by_text("User").click()
    expect(page.get_by_role("list", name="Legend")).to_contain_text("ann")
    page.get_by_role("radiogroup", name="View").get_by_text("Table").click()
    page.reload(wait_until="domcontentloaded")
    rows = page.get_by_role("table", name="GPU map").get_by_role("row")
    expect(rows).to_have_count(7)
    expect(rows.filter(has_text=work.gpus[0])).to_contain_text("ann")


def test_trends_look_back_as_far_as_the_address_says(visit: Visit) -> None:
    page = visit().open("/", "Overview")
    expect(page.get_by_role("figure", name="GPU use")).to_contain_text("utilised")
    # The last hour may be asked for once more at the same moment.
    with page.expect_request(lambda request: 6.9 < days_back(request.url) < 7.1):
        page.get_by_role("radiogroup", name="Time range").get_by_text("7 d").click()
    expect(page).to_have_url(re.compile("range=7d"))


def test_marking_a_stretch_of_a_chart_zooms_all_charts_and_can_be_walked_back(visit: Visit, work: Work) -> None:
    console = visit()
    page = console.open("/", "Overview")
    chart = page.get_by_role("figure", name="GPU use").locator(".u-over")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=5)
    # The crosshair is in every chart.
    expect(page.locator(".plot-tooltip:visible")).not_to_have_count(1)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"range=\d{4}-[^&]+\.\.\d{4}-"))
    chosen = page.get_by_role("button", name=re.compile("^Certain times: "))
    expect(chosen).to_be_visible()
    # Another page shows the same time.
    console.open(f"/nodes/{work.node}", work.node)
    expect(chosen).to_be_visible()
    console.open("/?range=6h", "Overview")
    expect(chosen).to_have_count(0)


def days_back(url: str) -> float:
    """How far a request for trends looks back; 0 for any other request."""
    since = re.search(r"/trends\?.*since=([^&]+)", url)
    if since is None:
        return 0.0
    return (datetime.now(UTC) - datetime.fromisoformat(since[1].replace("%3A", ":"))).total_seconds() / 86_400


def test_a_gpu_fails_and_the_alert_appears_without_reload(visit: Visit, server: CorralServer, work: Work) -> None:
    with server.http() as http:
        gpu = next(one["id"] for one in http.get("/gpus").json()["items"] if one["node"] != work.node)
    page = visit().open("/", "Overview")
    expect(page.get_by_role("link", name="No alert fires")).to_be_visible()
    page.evaluate("window.stillTheSamePage = true")
    faults = server.home / "local" / "faults.json"
    try:
        faults.write_text(json.dumps({"gpus": {gpu: {"temperature": 97}}}))
        alert = region(page, "Alerts").get_by_role("listitem").filter(has_text=f"GPU {gpu}").first
        expect(alert).to_contain_text("critical", timeout=30_000)
        expect(page.get_by_role("banner").get_by_role("link", name=re.compile(r"\d+ alerts? fires?"))).to_be_visible()
        expect(page.get_by_role("group", name="Open alerts")).to_contain_text("critical")
        assert page.evaluate("window.stillTheSamePage")
    finally:
        faults.write_text("{}")
        with server.http() as http:
            http.post(f"/gpus/{gpu}/reset-health").raise_for_status()


def test_a_scientist_sees_the_overview_and_the_own_quota_but_no_controls(
    visit: Visit, server: CorralServer, work: Work
) -> None:
    with server.http() as http:
        http.put("/users/ann/quota", json={"training": {"gpus": 4}}).raise_for_status()
    page = visit("ann").open("/", "Overview")
    expect(page.get_by_role("group", name="My jobs")).to_contain_text("1 running")
    expect(region(page, "My quota")).to_contain_text("2 / 4")
    expect(page.get_by_role("group", name="Open alerts")).to_have_count(0)
    expect(region(page, "Alerts")).to_have_count(0)
    page.goto(f"/gpus/{work.gpus[0]}", wait_until="domcontentloaded")
    expect(region(page, "Readings over time").get_by_role("figure", name="Load")).to_be_visible()
    expect(page.get_by_role("button", name="Mark as bad")).to_have_count(0)


def test_each_question_is_asked_once_when_the_page_is_opened(visit: Visit, work: Work, server: CorralServer) -> None:
    """The stream continues from the first answer, and the jobs that are next come with their reasons."""
    console = visit("bob")
    asked: list[str] = []
    console.page.on("request", lambda request: asked.append(request.url.partition("/api/v1")[2].partition("?")[0]))
    page = console.open("/", "Overview")
    expect(region(page, "Next in the queue").get_by_role("link", name="moe-waits")).to_be_visible()
    expect(page.locator("[data-live]")).to_have_attribute("data-live", "live")
    expect(region(page, "Trends")).to_be_visible()
    expect(page.locator(".mantine-Skeleton-root:visible")).to_have_count(0)
    # Readings, estimates and jobs ask for other answers again while the page is open.
    once = ("/me", "/clusters", "/stream")
    assert {path: asked.count(path) for path in once} == dict.fromkeys(once, 1)
    assert "/queues:next" in asked
    assert not [path for path in asked if path.endswith(("/why", "/order"))]
    # An event after the page was opened still arrives.
    with server.http("bob") as http:
        http.post(
            "/jobs", json={"name": "comes-later", "command": ["true"], "kind": "distributed", "gpus": 2, "nodes": 3}
        ).raise_for_status()
    expect(region(page, "Next in the queue").get_by_role("link", name="comes-later")).to_be_visible()
