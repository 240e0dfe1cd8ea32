"""Jobs in the console: found by filters, watched live, stopped, understood while they wait, and repaired by advice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "8xA100-80G", users=("ann", "bob")) as running:
        yield running


def submit(server: CorralServer, user: str = "ann", **body: Any) -> dict[str, Any]:
    with server.http(user) as http:
        answer = http.post("/jobs", json={"command": ["true"], **body})
        answer.raise_for_status()
        job: dict[str, Any] = answer.json()
    return job


def running(server: CorralServer, user: str = "ann", **body: Any) -> dict[str, Any]:
    """A job that must hold its GPUs before others are submitted: the fair share orders waiting ones."""
    job = submit(server, user, **body)
    with server.http() as http:
        wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "running", f"{body['name']} runs")
    return job


def stop(server: CorralServer, *jobs: dict[str, Any]) -> None:
    """Stops jobs, and waits until their GPUs are free for the next test."""
    with server.http() as http:
        for job in jobs:
            http.post(f"/jobs/{job['id']}/stop")
        addresses = [f"/jobs/{job['id']}" for job in jobs]
        wait_until(lambda: all(http.get(address).json()["ended_at"] is not None for address in addresses), "all ended")


def table(page: Page) -> Any:
    return page.get_by_role("table", name="Jobs")


def badge(page: Page) -> Any:
    """The state in the head of a job's page."""
    return page.get_by_role("main").locator("[data-state]").first


def test_a_job_is_watched_from_the_queue_to_its_end_by_the_button(visit: Visit, server: CorralServer) -> None:
    program = "echo hello from the job; sleep 60"
    job = submit(server, name="watched", gpus=1, grace="1s", command=["sh", "-c", program], hold=True)
    console = visit("ann")
    page = console.open(f"/jobs/{job['id']}", "watched")
    expect(badge(page)).to_have_attribute("data-state", "created")
    with server.http("ann") as http:
        http.post(f"/jobs/{job['id']}/start").raise_for_status()
    expect(badge(page)).to_have_attribute("data-state", "running")
    expect(page.get_by_text("Where it runs")).to_be_visible()
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("log")).to_contain_text("hello from the job")
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("has 1s to save")
    dialog.get_by_role("button", name="Stop the job").click()
    expect(badge(page)).to_have_attribute("data-state", "stopped")
    page.get_by_role("tab", name="Summary").click()
    expect(page.get_by_text("stopped by its owner").first).to_be_visible()
    expect(page.get_by_text("Attempt 1")).to_be_visible()
    expect(page.get_by_label("The last lines of its log")).to_contain_text("hello from the job")


def test_temporary_storage_is_shown_with_its_limit(visit: Visit, server: CorralServer) -> None:
    program = "head -c 7M /dev/zero > $TMPDIR/some; exec sleep 120"
    job = submit(server, name="with-temporary-files", grace="1s", command=["sh", "-c", program])

    def measured() -> bool:
        with server.http("ann") as http:
            disk = http.get(f"/jobs/{job['id']}").json()["disk"] or {"temporary_bytes": 0}
        return bool(disk["temporary_bytes"] > 6_000_000)

    wait_until(measured, "its files are measured", seconds=60)
    page = visit("ann").open(f"/jobs/{job['id']}", "with-temporary-files")
    expect(page.get_by_text("Temporary storage")).to_be_visible()
    expect(page.get_by_text("evicted at 90 %")).to_be_visible()
    stop(server, job)


def test_the_list_is_live(visit: Visit, server: CorralServer) -> None:
    console = visit("ann")
    page = console.open("/jobs", "Jobs")
    expect(page.get_by_role("main").get_by_role("link", name="New job").first).to_be_visible()
    job = submit(server, name="newcomer", command=["sleep", "30"])
    row = table(page).get_by_role("row").filter(has_text="newcomer")
    expect(row.locator("[data-state=running]")).to_be_visible()
    stop(server, job)
    expect(row.locator("[data-state=stopped]")).to_be_visible()


def test_filters_are_in_the_address_and_survive_reload_and_back(visit: Visit, server: CorralServer) -> None:
    submit(server, name="find-me-1", hold=True, kind="training")
    submit(server, name="find-me-2", hold=True, nodes=2, kind="distributed", gpus=1)
    console = visit("ann")
    page = console.open("/jobs", "Jobs")
    page.get_by_label("Name, id or user").fill("find-me")
    expect(table(page).get_by_role("row")).to_have_count(3)
    page.get_by_role("combobox", name="Kinds").click()
    page.get_by_role("option", name="distributed").click()
    page.keyboard.press("Escape")
    # While the list closes, it takes the next click.
    expect(page.get_by_role("option")).to_have_count(0)
    expect(table(page).get_by_role("row")).to_have_count(2)
    page.get_by_role("group", name="States").get_by_text("created").click()
    expect(page).to_have_url(re.compile(r"q=find-me.*kind=distributed.*state=created"))
    page.reload(wait_until="domcontentloaded")
    expect(table(page).get_by_role("row")).to_have_count(2)
    expect(page.get_by_label("Name, id or user")).to_have_value("find-me")
    table(page).get_by_role("link", name="find-me-2").click()
    expect(page.get_by_role("heading", name="find-me-2", level=1)).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Name, id or user")).to_have_value("find-me")
    expect(table(page).get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Clear filters").click()
    expect(table(page).get_by_role("row").filter(has_text="find-me-1")).to_be_visible()


def test_filters_become_a_view_that_is_renamed_and_deleted(visit: Visit, server: CorralServer) -> None:
    submit(server, name="viewed-1", hold=True)
    console = visit("ann")
    page = console.open("/jobs?q=viewed&state=created", "Jobs")
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("button", name="Save view").click()
    page.get_by_role("textbox", name="Name of the view").fill("my held ones")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    console.open("/jobs", "Jobs")
    views.get_by_role("link", name="my held ones").click()
    expect(page).to_have_url(re.compile(r"q=viewed"))
    expect(table(page).get_by_role("row")).to_have_count(2)
    expect(views.get_by_role("link", name="my held ones")).to_have_attribute("aria-current", "page")
    page.get_by_role("button", name="What to do with the view my held ones").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("textbox", name="Name of the view").fill("held")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.reload(wait_until="domcontentloaded")
    page.get_by_role("button", name="What to do with the view held").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete the view").click()
    expect(views.get_by_role("link", name="held", exact=True)).to_have_count(0)
    views.get_by_role("link", name="Failed today").click()
    expect(page).to_have_url(re.compile(r"state=failed&since=today"))


def test_several_jobs_are_handled_at_once_and_what_cannot_be_is_explained(visit: Visit, server: CorralServer) -> None:
    running = submit(server, name="batch-runs", command=["sleep", "60"], grace="1s")
    submit(server, name="batch-held", hold=True)
    console = visit("ann")
    page = console.open("/jobs?q=batch-", "Jobs")
    expect(table(page).locator("[data-state=running]")).to_be_visible()
    page.get_by_label("Select all").check()
    bar = page.get_by_role("toolbar", name="2 chosen")
    expect(bar.get_by_role("button", name="Remove (1/2)")).to_be_visible()
    bar.get_by_role("button", name="Remove (1/2)").click()
    expect(page.get_by_role("dialog")).to_contain_text("It is running: stop it first")
    page.get_by_role("dialog").get_by_role("button", name="Remove (1)").click()
    expect(table(page).get_by_role("row").filter(has_text="batch-held")).to_have_count(0)
    page.get_by_label("Select all").check()
    page.get_by_role("toolbar").get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop (1)").click()
    expect(table(page).locator("[data-state=stopped]")).to_be_visible()
    expect(page.get_by_role("toolbar")).to_have_count(0)
    stop(server, running)


def test_a_stop_is_shown_at_once_and_taken_back_when_it_fails(visit: Visit, server: CorralServer) -> None:
    job = submit(server, name="unstoppable", command=["sleep", "60"], grace="1s")
    console = visit("ann")
    page = console.open(f"/jobs/{job['id']}", "unstoppable")
    expect(badge(page)).to_have_attribute("data-state", "running")
    held: list[Route] = []
    page.route("**/api/v1/jobs/*/stop", lambda route: held.append(route))
    page.get_by_role("button", name="Stop", exact=True).click()
    with page.expect_request("**/api/v1/jobs/*/stop"):
        page.get_by_role("button", name="Stop the job").click()
    expect(badge(page)).to_have_attribute("data-state", "stopping")
    refusal = {"type": "/problems/wrong-state", "title": "Conflict", "status": 409, "detail": "Not while we look."}
    held[0].fulfill(status=409, json=refusal, content_type="application/problem+json")
    expect(page.get_by_role("alert").filter(has_text="Not while we look.")).to_be_visible()
    expect(badge(page)).to_have_attribute("data-state", "running")
    stop(server, job)


def test_why_shows_numbers_and_the_jobs_in_front_and_the_suggestion_helps(visit: Visit, server: CorralServer) -> None:
    holder = running(server, "bob", name="holder", gpus=6, time="2h", command=["sleep", "600"], grace="1s")
    first = submit(server, "ann", name="first-in-line", gpus=8, time="1h", command=["sleep", "600"], grace="1s")
    waiting = submit(server, "ann", name="waits", gpus=4, time="3h", command=["sleep", "600"], grace="1s")
    console = visit("operator")
    page = console.open(f"/jobs/{first['id']}", "first-in-line")
    why = page.get_by_role("region", name="Why it waits")
    # What is planned holds at the latest; what is estimated comes a moment later, and is the likelier.
    expect(why.get_by_role("group", name="Expected start")).to_contain_text("at the latest")
    expect(why.get_by_role("region", name="Estimated start")).to_contain_text("nine times in ten", timeout=30_000)
    console.open(f"/jobs/{waiting['id']}", "waits")
    expect(why).to_contain_text("Needs 4")
    expect(why.get_by_text(re.compile(r"GPUs free\s*2"))).to_be_visible()
    expect(why.get_by_role("group", name="Place in line")).to_contain_text("2")
    expect(why.get_by_role("list", name="Jobs in front").get_by_role("link", name="first-in-line")).to_be_visible()
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitem", name="简体中文").click()
    expect(page.get_by_text(re.compile("需要 1 个节点、每个 4 个 GPU；目前空闲 2 个"))).to_be_visible()
    page.get_by_role("button", name="语言").click()
    page.get_by_role("menuitem", name="English").click()
    # The journal has the earlier reasons; a link to that time can be sent to another user.
    with server.http() as http:
        moment = http.get("/gpus/map").json()["at"]
    console.open(f"/jobs/{waiting['id']}?at={moment}", "waits")
    back = page.get_by_role("region", name="Back in time")
    expect(back).to_contain_text("As of cycle")
    expect(back).to_contain_text("Needs 4")
    expect(back.get_by_role("list", name="Jobs in front").get_by_role("link", name="first-in-line")).to_be_visible()
    back.get_by_role("slider", name="Moment").press("Home")
    expect(page).not_to_have_url(re.compile(re.escape(moment)))
    expect(back).to_contain_text("As of cycle")
    back.get_by_label("Exact time").fill("2020-01-01T00:00:00")
    expect(back.get_by_role("alert")).to_be_visible()
    back.get_by_role("button", name="Close").click()
    expect(page).not_to_have_url(re.compile("at="))
    stop(server, first)
    advice = why.get_by_role("list", name="What would help")
    fewer = advice.get_by_role("button", name=re.compile("Apply: Ask for 2 GPUs instead of 4"))
    fewer.click()
    expect(badge(page)).to_have_attribute("data-state", "running")
    expect(page.get_by_text("2 A100-80G GPUs").first).to_be_visible()
    stop(server, holder, waiting)


def test_a_waiting_job_is_pinned_and_edited_by_an_operator(visit: Visit, server: CorralServer) -> None:
    holder = running(server, "bob", name="holds-all", gpus=8, command=["sleep", "600"], grace="1s")
    waiting = submit(server, "ann", name="to-edit", gpus=8, command=["sleep", "600"], grace="1s")
    console = visit("operator")
    page = console.open(f"/jobs/{waiting['id']}", "to-edit")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Pin to the front").click()
    expect(page.get_by_text("to-edit is first in its line now.")).to_be_visible()
    page.get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Unpin")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Resize")).to_contain_text("It is not elastic")
    page.get_by_role("menuitem", name="Edit").click()
    drawer = page.get_by_role("dialog")
    drawer.get_by_label("Time limit").fill("nonsense")
    expect(drawer).to_contain_text("A number with a unit")
    drawer.get_by_label("Time limit").fill("90m")
    drawer.get_by_label("Priority").fill("1")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer).to_have_count(0)
    with server.http() as http:
        now = http.get(f"/jobs/{waiting['id']}").json()
    assert (now["time_limit_seconds"], now["priority"]) == (5400, 1)
    stop(server, holder, waiting)


def test_the_description_of_a_running_job_is_changed_and_found(visit: Visit, server: CorralServer) -> None:
    job = submit(server, "ann", name="described", gpus=1, command=["sleep", "600"], grace="1s", description="First try")
    page = visit("ann").open(f"/jobs/{job['id']}", "described")
    expect(badge(page)).to_have_attribute("data-state", "running")
    expect(page.get_by_text("First try")).to_be_visible()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Edit").click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_label("Priority")).to_have_count(0)
    drawer.get_by_label("Description").fill("Ablation without warm-up")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer).to_have_count(0)
    expect(page.get_by_text("Ablation without warm-up")).to_be_visible()
    page = visit("ann").open("/jobs?q=warm-up", "Jobs")
    expect(table(page).get_by_role("row").filter(has_text="described")).to_be_visible()
    stop(server, job)


def test_a_scientist_sees_only_own_jobs_and_a_refusal_in_words(visit: Visit, server: CorralServer) -> None:
    theirs = submit(server, "bob", name="of-bob", hold=True)
    mine = submit(server, "ann", name="of-ann", hold=True)
    console = visit("ann")
    page = console.open("/jobs?q=of-", "Jobs")
    expect(table(page).get_by_role("row").filter(has_text="of-ann")).to_be_visible()
    expect(table(page).get_by_role("row").filter(has_text="of-bob")).to_have_count(0)
    console.open(f"/jobs/{theirs['id']}")
    expect(page.get_by_role("alert")).to_contain_text(f"there is no job '{theirs['id']}'")
    console.open(f"/jobs/{mine['id']}", "of-ann")
    page.get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Pin to the front")).to_contain_text("Only operators pin jobs.")
    page.keyboard.press("Escape")
    with server.http("ann") as http:
        http.delete(f"/jobs/{mine['id']}").raise_for_status()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("there is no job")


def test_files_events_and_spec(visit: Visit, server: CorralServer) -> None:
    program = 'mkdir -p "$CORRAL_OUTPUT_DIR/models" && echo weights > "$CORRAL_OUTPUT_DIR/models/final.txt"'
    env = {"EPOCHS": "08", "WANDB_API_KEY": "very-secret"}
    job = submit(server, name="writes-files", command=["sh", "-c", program], env=env)
    console = visit("ann")
    page = console.open(f"/jobs/{job['id']}", "writes-files")
    expect(badge(page)).to_have_attribute("data-state", "completed")
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("link", name="models", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download final.txt").click()
    assert download.value.path().read_text() == "weights\n"
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_role("table", name="Events")).to_contain_text("submitted")
    page.get_by_role("tab", name="Spec").click()
    listing = page.get_by_role("region", name="As a job file").locator("code, pre").first
    expect(listing).to_contain_text('EPOCHS: "08"')
    expect(page.get_by_text("very-secret")).to_have_count(0)
    page.get_by_role("button", name="Show hidden values").click()
    expect(listing).to_contain_text("very-secret")
    expect(page.get_by_text("corral submit --name")).to_be_visible()
    page.get_by_role("tab", name="Checkpoints").click()
    expect(page.get_by_text("No checkpoints yet")).to_be_visible()


def test_an_array_is_recognised_and_shown_as_a_whole(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        body = {"name": "sweep", "command": ["true"], "array": "0-2", "hold": True}
        http.post("/jobs:array", json=body).raise_for_status()
    console = visit("ann")
    page = console.open("/jobs", "Jobs")
    page.get_by_role("link", name=re.compile("Member 1 of array sweep")).click()
    expect(page).to_have_url(re.compile("array=sweep"))
    expect(table(page).get_by_role("row")).to_have_count(4)
    page.get_by_role("button", name="Array sweep").click()
    expect(page).not_to_have_url(re.compile("array=sweep"))


def test_a_phone_reads_a_job(visit: Visit, server: CorralServer) -> None:
    job = submit(server, name="small-screen", hold=True)
    page = visit("ann", phone=True).open("/jobs", "Jobs")
    table(page).get_by_role("link", name="small-screen").click()
    expect(page.get_by_role("heading", name="small-screen", level=1)).to_be_visible()
    expect(page.get_by_text("It is created but not started")).to_be_visible()
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    stop(server, job)
