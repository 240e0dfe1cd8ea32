"""Analysis, reports and the audit log in the console, on a fleet whose free GPUs are scattered."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    config = tmp_path_factory.mktemp("insight") / "corral.yaml"
    config.write_text("monitoring: {interval_seconds: 0.5}\n")
    with api_server("--virtual-nodes", "2x2xA10", "--config", str(config), users=("ann",)) as running:
        yield running


@pytest.fixture(scope="module")
def scattered(server: CorralServer) -> str:
    """A job of ann's on each of two nodes with two GPUs, and one that waits for both GPUs of a node: its id."""
    with server.http("ann") as ann:

        def submitted(name: str, gpus: int) -> str:
            job: str = ann.post("/jobs", json={"name": name, "command": ["sleep", "600"], "gpus": gpus}).json()["id"]
            return job

        jobs = [submitted(f"work-{number}", 1) for number in range(3)]
        wait_until(lambda: {state_of(ann, job) for job in jobs} == {"running"}, "they run")
        ann.post(f"/jobs/{jobs[0]}/stop").raise_for_status()
        wait_until(lambda: state_of(ann, jobs[0]) == "stopped", "it has stopped")
        wide = submitted("wide-job", 2)
        wait_until(lambda: state_of(ann, wide) == "queued", "it waits")
    return wide


def state_of(http: httpx.Client, job: str) -> str:
    state: str = http.get(f"/jobs/{job}").json()["state"]
    return state


def downloaded(page: Page, name: str, role: str, tmp_path: Path) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role(role, name=name).click()  # type: ignore[arg-type]
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path.read_bytes()


def test_waste_is_found_and_a_way_out_is_drawn(visit: Visit, scattered: str) -> None:
    console = visit()
    page = console.open("/analysis?period=24h", "Analysis")
    found = page.get_by_role("region", name="What could be better").get_by_label("Fragmentation")
    expect(found).to_contain_text("2 free A10 of pool default are scattered")
    expect(found.get_by_role("link", name="default/A10")).to_have_attribute("href", "/pools?open=default")

    usage = page.get_by_role("table", name="GPU-hours: By user")
    expect(usage.get_by_role("row").filter(has_text="ann")).to_contain_text("3")
    expect(page.get_by_role("img", name=re.compile("GPU-hours By user: ann"))).to_be_visible()
    page.get_by_role("radiogroup", name="Grouped by").get_by_text("By model").click()
    expect(page.get_by_role("table", name="GPU-hours: By model")).to_contain_text("A10")
    expect(page).to_have_url(re.compile("by=by_model"))

    plan = page.get_by_role("region", name="Defragmentation preview")
    expect(plan).to_contain_text("1 node would be free")
    expect(plan).to_contain_text(f"1 waiting job would find a place: {scattered}")
    expect(plan.get_by_role("list", name="Moves, in this order").get_by_role("listitem")).to_have_count(1)
    expect(plan.get_by_role("img", name=re.compile("1 of 2 free"))).to_have_count(2)
    expect(plan.get_by_role("img", name=re.compile("2 of 2 free"))).to_have_count(1)
    expect(plan.get_by_role("img", name=re.compile("0 of 2 free"))).to_have_count(1)

    page.get_by_role("radiogroup", name="Period").get_by_text("30 d").click()
    expect(page).to_have_url(re.compile("period=30d"))
    console.open("/analysis?period=soon", "Analysis")
    expect(page.get_by_role("alert")).to_contain_text("period")


def test_a_report_is_made_previewed_and_downloaded(visit: Visit, scattered: str, tmp_path: Path) -> None:
    console = visit()
    page = console.open("/reports", "Reports")
    page.get_by_role("button", name="New report").click()
    form = page.get_by_role("dialog", name="New report")
    form.get_by_label("From … until …").check()
    form.get_by_role("button", name="Generate the report").click()
    expect(form.get_by_text("Required")).to_be_visible()
    form.get_by_label("The last 24 hours").check()
    form.get_by_role("button", name="Generate the report").click()

    preview = page.get_by_role("dialog", name=re.compile("Usage report"))
    frame = preview.locator("iframe")
    expect(frame).to_have_attribute("sandbox", "", timeout=30_000)
    expect(page.frame_locator("iframe").get_by_role("heading").first).to_be_visible()
    expect(page.frame_locator("iframe").locator("body")).to_contain_text("ann")
    assert downloaded(page, "Download PDF", "link", tmp_path).startswith(b"%PDF")
    lines = downloaded(page, "Download CSV", "link", tmp_path).decode()
    assert {line["user"] for line in csv.DictReader(lines.splitlines())} == {"ann"}

    preview.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete this report?").get_by_role("button", name="Delete the report").click()
    expect(page.get_by_text("No report yet")).to_be_visible()


def test_reports_are_scheduled(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/reports?tab=schedules", "Reports")
    page.get_by_role("button", name="New schedule").click()
    form = page.get_by_role("dialog", name="New schedule")
    form.get_by_label("Name").fill("weekly-usage")
    page.get_by_role("combobox", name="On", exact=True).click()
    page.get_by_role("option", name="Wednesday").click()
    form.get_by_role("button", name="Create").click()
    table = page.get_by_role("table", name="Schedules")
    expect(table).to_contain_text("Wednesday 06:00 UTC")
    expect(table.locator("time")).to_have_count(1)
    table.get_by_role("button", name="weekly-usage").click()
    form = page.get_by_role("dialog", name="Schedule weekly-usage")
    page.get_by_role("combobox", name="Every", exact=True).click()
    page.get_by_role("option", name="day", exact=True).click()
    form.get_by_role("button", name="Save").click()
    expect(table).not_to_contain_text("Wednesday")
    with server.http() as http:
        assert http.get("/report-schedules/weekly-usage").json()["period"] == "daily"
    table.get_by_role("button", name="weekly-usage").click()
    page.get_by_role("dialog", name="Schedule weekly-usage").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name=re.compile("Delete schedule")).get_by_role(
        "button", name=re.compile("Delete")
    ).click()
    expect(page.get_by_text("No scheduled reports")).to_be_visible()


def test_the_audit_log_is_narrowed_and_exported(visit: Visit, scattered: str, tmp_path: Path) -> None:
    console = visit()
    page = console.open("/audit", "Audit log")
    page.get_by_label("Actor", exact=True).fill("ann")
    page.get_by_label("Action", exact=True).fill("job.submitted")
    table = page.get_by_role("table", name="Audit log")
    expect(table.get_by_role("row")).to_have_count(1 + 4)
    expect(page).to_have_url(re.compile("actor=ann.*action=job.submitted"))
    page.get_by_label("Text anywhere").fill("wide-job")
    expect(table.get_by_role("row")).to_have_count(1 + 1)
    expect(table).to_contain_text(scattered)

    page.get_by_role("button", name="Export").click()
    rows = list(csv.DictReader(downloaded(page, "Export CSV", "menuitem", tmp_path).decode().splitlines()))
    assert [(row["actor"], row["action"], row["subject"]) for row in rows] == [("ann", "job.submitted", scattered)]
    page.get_by_role("button", name="Export").click()
    lines = downloaded(page, "Export JSON lines", "menuitem", tmp_path).decode().splitlines()
    assert [json.loads(line)["subject"] for line in lines] == [scattered]

    page.get_by_label("Until").fill("2001-01-01T00:00")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_label("Actor", exact=True)).to_have_value("")


def test_news_are_announced_and_shown_when_asked_for(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        job = http.post("/jobs", json={"name": "to-be-edited", "command": ["true"], "hold": True}).json()["id"]
    page = visit().open(f"/audit?subject={job}", "Audit log")
    table = page.get_by_role("table", name="Audit log")
    # While the list loads the table has rows, too.
    expect(table.get_by_text("job.submitted")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(2)
    with server.http("ann") as http:
        http.patch(f"/jobs/{job}", json={"priority": 2}).raise_for_status()
    news = page.get_by_role("button", name="1 new event")
    expect(news).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(2)
    news.click()
    expect(table.get_by_role("row")).to_have_count(3)
    table.get_by_role("row").nth(1).get_by_role("button").first.click()
    change = page.get_by_role("dialog").get_by_role("table", name="What changed")
    expect(change.get_by_role("row").filter(has_text="priority")).to_contain_text(re.compile("5.*2"))


def test_a_running_job_is_migrated_and_resized_after_a_preview(
    visit: Visit, server: CorralServer, scattered: str
) -> None:
    """Whole nodes: the waiting job of two GPUs can start when a small one has moved beside the other."""
    with server.http("ann") as ann:
        jobs = [job for job in ann.get("/jobs?state=running").json()["items"] if job["name"].startswith("work-")]
    first, second = sorted(jobs, key=lambda job: job["name"])
    target = second["allocation"]["grants"][0]["node"]
    page = visit().open("/analysis?period=24h", "Analysis")
    running = page.get_by_role("table", name="Running jobs")
    running.get_by_role("row").filter(has_text=first["name"]).get_by_role("button", name="Migrate").click()
    drawer = page.get_by_role("dialog", name=f"Migrate {first['name']}")
    preview = drawer.get_by_role("region", name="Preview")
    expect(preview).to_contain_text(f"Afterwards{target}: ")
    expect(preview).to_contain_text("the job never saved a checkpoint")
    expect(preview).to_contain_text(f"wide-job ({scattered}) starts at once")
    assert state_of_operator(server, first["id"]) == "running", "a preview changes nothing"
    drawer.get_by_role("button", name="Migrate").click()
    page.get_by_role("dialog", name=f"Migrate {first['name']}?").get_by_role("button", name="Migrate").click()
    effect = drawer.get_by_role("region", name="Effect")
    expect(effect).to_contain_text(f"It runs on {target}: ", timeout=60_000)
    expect(effect).to_contain_text("Attempt 2")
    drawer.get_by_role("button", name="Close").last.click()
    wait_until(lambda: state_of_operator(server, scattered) == "running", "the waiting job has the whole node")
    with server.http() as http:
        (receipt,) = http.get(f"/jobs/{first['id']}/receipts").json()["items"]
        assert receipt["rule"] == "migration"
        for job in (first["id"], second["id"], scattered):
            http.post(f"/jobs/{job}/stop").raise_for_status()
        body = {"name": "stretchy", "command": ["sleep", "600"], "min_gpus": 1, "max_gpus": 2, "restart_unsaved": True}
        stretchy = http.post("/jobs", json=body).json()["id"]
    wait_until(lambda: state_of_operator(server, stretchy) == "running", "the elastic job runs")
    row = running.get_by_role("row").filter(has_text="stretchy")
    row.get_by_role("button", name="Resize").click()
    drawer = page.get_by_role("dialog", name="Resize stretchy")
    with server.http() as http:
        gpus = http.get(f"/jobs/{stretchy}").json()["gpus"]
    drawer.get_by_label("GPU").fill(str(3 - gpus))
    expect(drawer.get_by_role("region", name="Preview")).to_be_visible()
    drawer.get_by_role("button", name="Resize").click()
    page.get_by_role("dialog", name="Resize stretchy?").get_by_role("button", name="Resize").click()
    expect(drawer.get_by_role("region", name="Effect")).to_contain_text("It runs on", timeout=60_000)
    with server.http() as http:
        assert http.get(f"/jobs/{stretchy}").json()["gpus"] == 3 - gpus
        http.post(f"/jobs/{stretchy}/stop").raise_for_status()


SAVES = """
import time
from corral import checkpoint
for step in checkpoint.steps(100000, lambda: {}):
    time.sleep(0.1)
"""


def state_of_operator(server: CorralServer, job: str) -> str:
    with server.http() as http:
        return state_of(http, job)


def test_a_defragmentation_is_approved_in_the_console(visit: Visit, server: CorralServer) -> None:
    """Jobs that have saved sit on a node each; an operator approves the move, and sees it done."""
    with server.http() as http:
        for job in http.get("/jobs?state=running&state=queued").json()["items"]:
            http.post(f"/jobs/{job['id']}/stop")
        wait_until(lambda: not http.get("/jobs?state=running&state=stopping").json()["items"], "no job runs any more")
        http.post("/queues", json={"name": "spread-out", "placement": "spread"}).raise_for_status()
        command = [sys.executable, "-c", SAVES]
        body = {"command": command, "gpus": 1, "queue": "spread-out", "checkpoint_interval": "1s"}
        saving = [http.post("/jobs", json={**body, "name": f"saves-{number}"}).json()["id"] for number in (1, 2)]
        wait_until(lambda: all(http.get(f"/jobs/{job}").json()["checkpointed_at"] for job in saving), "both have saved")
    page = visit().open("/analysis?period=24h", "Analysis")
    panel = page.get_by_role("region", name="Defragmentation preview")
    expect(panel).to_contain_text("1 node would be free")
    panel.get_by_role("button", name="Carry out").click()
    page.get_by_role("dialog", name="Move these jobs?").get_by_role("button", name="Carry out").click()
    moves = panel.get_by_role("list", name="Latest defragmentation")
    expect(moves).to_contain_text(re.compile("saves-.*done"), timeout=60_000)
    with server.http() as http:
        nodes = {http.get(f"/jobs/{job}").json()["allocation"]["grants"][0]["node"] for job in saving}
        assert len(nodes) == 1, "one node is free as a whole"
        for job in saving:
            http.post(f"/jobs/{job}/stop").raise_for_status()
