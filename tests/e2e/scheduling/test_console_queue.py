"""The queue in a real browser: who goes first and why, one's own order by mouse and keyboard, pins, and scores."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

LINE = "Any GPU · one node"


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    """Eight GPUs, all held by carl for as long as the tests need."""
    with api_server("--virtual-gpus", "8xA100-80G", users=("ann", "bob", "carl")) as running:
        submit(running, "carl", "holds-everything", gpus=8, time="2h")
        with running.http() as http:
            wait_for(lambda: http.get("/queues/default").json()["running"] == 1)
        yield running
        with running.http() as http:
            for job in http.get("/jobs?state=running&state=starting").json()["items"]:
                http.post(f"/jobs/{job['id']}/stop")


@pytest.fixture(autouse=True)
def nothing_left_waiting(server: CorralServer) -> Iterator[None]:
    yield
    with server.http() as http:
        for job in http.get("/jobs?state=queued&limit=500").json()["items"]:
            http.post(f"/jobs/{job['id']}/stop")


def submit(server: CorralServer, user: str, name: str, **more: Any) -> str:
    with server.http(user) as http:
        answer = http.post("/jobs", json={"name": name, "command": ["sleep", "600"], **more})
        answer.raise_for_status()
        return str(answer.json()["id"])


def wait_for(is_so: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def order(server: CorralServer, queue: str = "default") -> list[str]:
    """The names in the server's order."""
    with server.http() as http:
        lines = http.get(f"/queues/{queue}/order").json()["lines"]
    return [job["name"] for line in lines for job in line["jobs"]]


def rows(page: Page) -> Locator:
    return page.get_by_role("list", name=LINE).get_by_role("listitem")


def grip(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=f"Move {name}", exact=True)


def drag(page: Page, name: str, onto: Locator) -> None:
    """Pick a job up by its handle and hold it over another row; not dropped yet."""
    start = grip(page, name).bounding_box()
    target = onto.bounding_box()
    assert start is not None
    assert target is not None
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(start["x"] + 8, start["y"] + 12, steps=3)
    page.mouse.move(start["x"] + 8, target["y"] + target["height"] / 2, steps=12)


def test_own_jobs_change_places_by_mouse(visit: Visit, server: CorralServer) -> None:
    for name in ("ann-one", "ann-two", "ann-three"):
        submit(server, "ann", name, gpus=4, time="1h")
    page = visit("ann").open("/queue", "Queue")
    expect(rows(page)).to_have_count(3)
    expect(rows(page).first).to_contain_text("ann-one")
    expect(rows(page).first).to_contain_text("4 GPUs")
    expect(rows(page).first).to_contain_text("score 0, then priority 5 and age")
    expect(rows(page).first.locator("time[datetime]")).to_have_count(2)
    drag(page, "ann-three", rows(page).first)
    page.mouse.up()
    expect(page.get_by_text("ann-three moved before ann-one")).to_be_visible()
    expect(rows(page)).to_have_text([re.compile("ann-three"), re.compile("ann-one"), re.compile("ann-two")])
    assert order(server) == ["ann-three", "ann-one", "ann-two"]
    expect(rows(page).first).to_contain_text("moved by its owner")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone")).to_be_visible()
    expect(rows(page)).to_have_text([re.compile("ann-one"), re.compile("ann-two"), re.compile("ann-three")])
    assert order(server) == ["ann-one", "ann-two", "ann-three"]


def test_rows_keep_their_places_while_one_is_dragged(visit: Visit, server: CorralServer) -> None:
    for name in ("still-one", "still-two"):
        submit(server, "ann", name, gpus=4)
    page = visit("ann").open("/queue", "Queue")
    expect(rows(page)).to_have_count(2)
    drag(page, "still-two", rows(page).first)
    # The page gets the new order; the list with the held job does not change.
    with page.expect_response(lambda answer: "/order" in answer.url and "comes-later" in answer.text()):
        submit(server, "ann", "comes-later", gpus=4)
    expect(rows(page)).to_have_count(2)
    page.mouse.up()
    expect(rows(page)).to_have_count(3)


def test_a_stop_of_a_waiting_job_is_taken_back_and_it_keeps_its_place(visit: Visit, server: CorralServer) -> None:
    job = submit(server, "ann", "stays-first", gpus=4)
    submit(server, "ann", "stays-second", gpus=4)
    with server.http("ann") as http:
        since = http.get(f"/jobs/{job}").json()["queued_at"]
    # Of another user's job it is asked first, with the owner's name.
    page = visit().open(f"/jobs/{job}", "stays-first")
    page.get_by_role("button", name="Stop", exact=True).click()
    question = page.get_by_role("dialog", name="Stop stays-first?")
    expect(question).to_contain_text("belongs to ann")
    question.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone")).to_be_visible()
    with server.http("ann") as http:
        again = http.get(f"/jobs/{job}").json()
    assert (again["state"], again["queued_at"]) == ("queued", since)
    assert order(server) == ["stays-first", "stays-second"]


def test_own_jobs_change_places_by_keyboard_with_announcements(visit: Visit, server: CorralServer) -> None:
    for name in ("key-one", "key-two", "key-three"):
        submit(server, "ann", name, gpus=4)
    page = visit("ann").open("/queue", "Queue")
    expect(rows(page)).to_have_count(3)
    handle = grip(page, "key-one")
    expect(handle).to_have_accessible_description(re.compile("Press space or enter to pick the job up"))
    handle.focus()
    page.keyboard.press("Space")
    spoken = page.locator("[aria-live=assertive]").filter(has_text=re.compile("key-one"))
    expect(spoken).to_contain_text("key-one is held at its own place, 1.")
    page.keyboard.press("ArrowDown")
    expect(spoken).to_contain_text("key-one would take place 2, where key-two is now.")
    page.keyboard.press("ArrowDown")
    expect(spoken).to_contain_text("would take place 3")
    page.keyboard.press("Space")
    expect(rows(page).last).to_contain_text("key-one")
    expect(page.get_by_text("key-one moved after key-three")).to_be_visible()
    assert order(server) == ["key-two", "key-three", "key-one"]
    # The same without dragging at all.
    page.get_by_role("button", name="Actions for key-one").click()
    page.get_by_role("menuitem", name="First of ann's jobs").click()
    expect(rows(page).first).to_contain_text("key-one")
    wait_for(lambda: order(server) == ["key-one", "key-two", "key-three"])


def test_others_places_cannot_be_taken_and_the_page_says_so(visit: Visit, server: CorralServer) -> None:
    for name in ("mine-one", "mine-two"):
        submit(server, "ann", name, gpus=4)
    submit(server, "bob", "of-bob-secret", gpus=2)
    page = visit("ann").open("/queue", "Queue")
    expect(rows(page)).to_have_count(3)
    bobs = rows(page).filter(has_text="a job of bob")
    expect(bobs).to_contain_text("2 GPUs")
    expect(page.get_by_text("of-bob-secret")).to_have_count(0)
    expect(bobs.get_by_role("button")).to_have_count(0)
    before = order(server)
    drag(page, "mine-one", bobs)
    words = "This is bob's place; only jobs of the same user change places."
    expect(page.get_by_text(words, exact=True)).to_be_visible()
    page.mouse.up()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was moved")
    assert order(server) == before


def test_a_refused_move_is_taken_back_in_the_servers_words(visit: Visit, server: CorralServer) -> None:
    for name in ("roll-one", "roll-two"):
        submit(server, "ann", name, gpus=4)
    console = visit("ann")
    page = console.open("/queue", "Queue")
    expect(rows(page).first).to_contain_text("roll-one")
    refusal = {
        "type": "/problems/wrong-state",
        "title": "Wrong state",
        "status": 409,
        "detail": "roll-two is no longer in this line",
    }
    page.route(
        "**/move", lambda route: route.fulfill(status=409, json=refusal, content_type="application/problem+json")
    )
    page.get_by_role("button", name="Actions for roll-two").click()
    page.get_by_role("menuitem", name="One place up").click()
    expect(page.get_by_role("alert")).to_contain_text("roll-two is no longer in this line")
    expect(rows(page)).to_have_text([re.compile("roll-one"), re.compile("roll-two")])
    assert order(server) == ["roll-one", "roll-two"]


def test_a_queue_without_own_order_offers_none(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        http.post("/queues", json={"name": "by-age", "policy": "fcfs"}).raise_for_status()
    for name in ("old-one", "old-two"):
        submit(server, "ann", name, gpus=4, queue="by-age")
    page = visit("ann").open("/queue?queue=by-age", "Queue")
    expect(rows(page)).to_have_count(2)
    expect(page.get_by_text("This queue has no own order to change")).to_be_visible()
    expect(grip(page, "old-one")).to_have_count(0)
    expect(rows(page).first).to_contain_text("by age")


def test_a_pin_of_an_operator_moves_the_job_in_everybodys_browser(visit: Visit, server: CorralServer) -> None:
    submit(server, "ann", "first-there", gpus=4)
    submit(server, "ann", "wants-pin", gpus=4)
    scientist = visit("ann").open("/queue", "Queue")
    expect(rows(scientist).first).to_contain_text("first-there")
    expect(scientist.get_by_role("checkbox", name="Choose wants-pin")).to_have_count(0)
    scientist.get_by_role("button", name="Actions for wants-pin").click()
    expect(scientist.get_by_role("menuitem", name="Stop")).to_be_visible()
    expect(scientist.get_by_role("menuitem", name="Pin to the top")).to_have_count(0)
    scientist.keyboard.press("Escape")
    operator = visit("operator").open("/queue", "Queue")
    operator.get_by_role("button", name="Actions for wants-pin").click()
    operator.get_by_role("menuitem", name="Pin to the top").click()
    expect(rows(operator).first).to_contain_text("pinned by an operator")
    expect(rows(scientist).first).to_contain_text("wants-pin")
    expect(rows(scientist).first).to_contain_text("pinned by an operator")
    assert order(server) == ["wants-pin", "first-there"]


def test_an_operator_acts_on_several_at_once(visit: Visit, server: CorralServer) -> None:
    for name in ("many-one", "many-two", "many-three"):
        submit(server, "bob", name, gpus=4)
    page = visit("operator").open("/queue", "Queue")
    for name in ("many-two", "many-three"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    batch = page.get_by_role("toolbar", name="Actions")
    expect(batch).to_contain_text("2 selected")
    batch.get_by_role("button", name="Pin to the top").click()
    expect(page.get_by_text("2 jobs pinned")).to_be_visible()
    expect(rows(page)).to_have_text([re.compile("many-two"), re.compile("many-three"), re.compile("many-one")])
    for name in ("many-one", "many-two"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    batch.get_by_role("button", name="Stop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Stop 2 jobs?")
    dialog.get_by_role("button", name="Stop them").click()
    expect(rows(page)).to_have_count(1)
    assert order(server) == ["many-three"]


def test_running_jobs_and_jobs_that_wait_for_others_are_shown(visit: Visit, server: CorralServer) -> None:
    first = submit(server, "ann", "goes-first", gpus=8)
    submit(server, "ann", "comes-after", gpus=1, after=[first])
    page = visit("carl").open("/queue", "Queue")
    expect(page.get_by_text("1 more job waits for other jobs to complete")).to_be_visible()
    running = page.get_by_role("table", name="Running now")
    expect(running.get_by_role("row").filter(has_text="holds-everything")).to_contain_text("8 GPUs")
    expect(running.get_by_role("row").filter(has_text="holds-everything")).to_contain_text("in 2 hr")
    other = visit("ann").open("/queue?mine=yes", "Queue")
    expect(rows(other)).to_have_count(1)
    other.get_by_role("switch", name="My jobs only").uncheck(force=True)
    expect(other.get_by_text("1 job of another user runs here too")).to_be_visible()
    expect(other.get_by_text("holds-everything")).to_have_count(0)


def test_an_empty_queue_says_what_is_free(visit: Visit) -> None:
    page = visit("ann").open("/queue", "Queue")
    expect(page.get_by_text("Nothing waits in this queue")).to_be_visible()
    expect(page.get_by_role("group", name="Free GPUs").first).to_contain_text("0 of 8 free")
    expect(page.get_by_role("link", name="New job")).to_be_visible()


def test_in_a_long_line_one_s_own_job_is_found(visit: Visit, server: CorralServer) -> None:
    jobs = [{"name": f"crowd-{n}", "command": ["true"], "gpus": 8} for n in range(70)]
    with server.http("bob") as http:
        http.post("/jobs:batch", json={"jobs": jobs}).raise_for_status()
    submit(server, "carl", "carls-own", gpus=8)
    page = visit("carl").open("/queue", "Queue")
    # carl has used the GPUs, so he comes last: behind what is shown, and shown nevertheless.
    own = rows(page).filter(has_text="carls-own")
    expect(page.get_by_text("10 jobs in between")).to_be_visible()
    page.get_by_role("button", name="Jump to my jobs").click()
    expect(own).to_be_in_viewport()
    expect(own.get_by_role("link", name="carls-own")).to_be_focused()
    page.get_by_role("button", name="Show 11 more").click()
    expect(rows(page)).to_have_count(71)


def test_scores_are_those_of_the_api(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        (score,) = [one for one in http.get("/scores").json()["items"] if one["user"] == "carl"]
    console = visit("ann")
    page = console.open("/queue?tab=scores", "Queue")
    row = page.get_by_role("row").filter(has_text="carl")
    expect(row).to_contain_text(score["model"])
    expect(row.get_by_role("cell").nth(2)).to_have_text("8")
    shown = float(row.get_by_role("cell").nth(3).inner_text())
    # The score grows while one looks: what is shown lies between the two answers.
    with server.http() as http:
        (later,) = [one for one in http.get("/scores").json()["items"] if one["user"] == "carl"]
    assert score["score"] * 0.99 <= shown <= later["score"] * 1.01
    expect(page.get_by_role("figure", name=re.compile("Score of carl per GPU model"))).to_be_visible()
    expect(page.get_by_text("Queue default goes by it.")).to_be_visible()
    row.get_by_role("button", name="carl").click()
    expect(page).to_have_url(re.compile("user=carl"))
