"""Logs in the console: colours, following, searching, jumping; and a million lines without freezing."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

#: `--log-cli-level=INFO` shows the measurements.
LOG = logging.getLogger(__name__)
MILLION = 1_000_000
#: What the main thread did for longer than a moment, and how long the page went without a frame at most.
WATCH = """() => {
  window.watched = { longest: 0, tasks: 0, gap: 0, frames: 0 };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      window.watched.tasks += 1;
      window.watched.longest = Math.max(window.watched.longest, entry.duration);
    }
  }).observe({ type: "longtask" });
  let last = performance.now();
  const tick = (now) => {
    window.watched.gap = Math.max(window.watched.gap, now - last);
    window.watched.frames += 1;
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "4xA100-80G", users=("ann",)) as running:
        yield running


def submit(server: CorralServer, **body: Any) -> str:
    with server.http("ann") as http:
        answer = http.post("/jobs", json=body)
        answer.raise_for_status()
        return str(answer.json()["id"])


def wait_for_end(server: CorralServer, job: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    with server.http("ann") as http:
        while time.monotonic() < deadline:
            if http.get(f"/jobs/{job}").json()["ended_at"] is not None:
                return
            time.sleep(0.2)
    raise AssertionError(f"{job} does not end")


def line(page: Page, number: int) -> Any:
    return page.get_by_role("log").locator(f'[data-line="{number}"]')


def test_invisible_characters_of_a_log_are_shown(visit: Visit, server: CorralServer) -> None:
    """Titles, links, C1 and changes of direction are symbols, on the page and in what is copied."""
    evil = "\x1b]0;owned\x07\x9b31m \u202eexe.gpj\u2066\x1b[31mred\x1b[0m"
    job = submit(server, name="evil", command=["sh", "-c", 'printf "%s\\n" "$EVIL"'], env={"EVIL": evil})
    wait_for_end(server, job)
    console = visit("ann")
    page = console.open(f"/jobs/{job}?tab=logs", "evil")
    shown = "␛]0;owned␇\\u009b31m \\u202eexe.gpj\\u2066red"
    expect(line(page, 1)).to_contain_text(shown)
    assert not set("\x1b\x07\x9b\u202e\u2066") & set(page.get_by_role("log").inner_text())
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the last").click()
    expect(page.get_by_text("Copied as it is shown here. Download the log for its exact text.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").strip() == shown
    with server.http("ann") as http:
        assert http.get(f"/jobs/{job}/logs/download").text == f"{evil}\n", "the file is exact"


def test_colours_progress_bars_search_and_wrapping(visit: Visit, server: CorralServer) -> None:
    program = (
        r"printf '\033[31mred\033[0m \033[1;38;5;196mbright\033[0m \033[38;2;1;2;3mtrue\033[0m\n'; "
        r"printf '10%%\r50%%\r100%% done\n'; printf 'broken \033[38;5\n'; "
        "for i in $(seq 400); do echo \"line $i of many\"; done; printf 'x%.0s' $(seq 600); echo"
    )
    job = submit(server, name="colourful", command=["sh", "-c", program])
    wait_for_end(server, job)
    page = visit("ann").open(f"/jobs/{job}?tab=logs", "colourful")
    log = page.get_by_role("log", name="Log of colourful")
    expect(log).to_contain_text("xxxx")
    expect(page.get_by_text("404 lines · complete")).to_be_visible()
    # Scrolling up lets go of the end, and the button goes back.
    log.hover()
    page.mouse.wheel(0, -100_000)
    expect(line(page, 1)).to_have_text("1red bright true")
    expect(page.get_by_role("switch", name="Follow")).not_to_be_checked()
    expect(line(page, 1).get_by_text("red", exact=True)).to_have_css("color", "rgb(255, 123, 134)")
    expect(line(page, 1).get_by_text("bright")).to_have_css("color", "rgb(255, 0, 0)")
    expect(line(page, 1).get_by_text("true")).to_have_css("color", "rgb(1, 2, 3)")
    expect(line(page, 2)).to_have_text("2100% done")
    expect(line(page, 3)).to_have_text("3broken ␛[38;5")
    page.get_by_role("button", name="To the end").click()
    expect(line(page, 404)).to_be_visible()
    page.get_by_role("textbox", name="Search the log").fill("LINE 200 of")
    expect(page.get_by_text("1 of 1", exact=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(line(page, 203).locator("mark")).to_have_text("line 200 of")
    expect(line(page, 203)).to_be_in_viewport()
    page.get_by_role("textbox", name="Search the log").fill("nowhere to be found")
    expect(page.get_by_text("no match")).to_be_visible()
    page.get_by_role("button", name="To the end").click()
    page.get_by_role("switch", name="Wrap").check(force=True)
    expect(line(page, 404)).to_be_in_viewport()
    height = line(page, 404).evaluate("row => row.offsetHeight")
    assert height > 2 * 18, "a long line is wrapped"


def test_a_line_has_an_address_and_the_server_searches_all_attempts(visit: Visit, server: CorralServer) -> None:
    program = 'for i in $(seq 3000); do echo "attempt $CORRAL_ATTEMPT says $i"; done'
    job = submit(server, name="twice", command=["sh", "-c", program])
    wait_for_end(server, job)
    with server.http("ann") as http:
        http.post(f"/jobs/{job}/start").raise_for_status()
    wait_for_end(server, job)
    page = visit("ann").open(f"/jobs/{job}?tab=logs&line=1500", "twice")
    expect(line(page, 1500)).to_have_text("1500attempt 2 says 1500")
    expect(line(page, 1500)).to_be_in_viewport()
    page.get_by_role("button", name="Search on the server").click()
    page.get_by_label("Look for").fill(r"says 2\d{2}5$")
    page.get_by_label("Regular expression").check()
    page.get_by_label("All attempts and ranks").check()
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_text("200 lines so far").or_(page.get_by_text("100 lines so far"))).to_be_visible()
    page.get_by_role("list", name="Matching lines").get_by_text("attempt 1 says 2345").click()
    expect(page).to_have_url(re.compile("attempt=1.*line=2345|line=2345.*attempt=1"))
    expect(line(page, 2345)).to_have_text("2345attempt 1 says 2345")
    expect(line(page, 2345)).to_be_in_viewport()
    page.get_by_label("Look for").fill("(")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()


def test_the_end_is_followed_while_the_job_writes(visit: Visit, server: CorralServer) -> None:
    program = "i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.02; done"
    job = submit(server, name="ticking", command=["sh", "-c", program], grace="1s")
    page = visit("ann").open(f"/jobs/{job}?tab=logs", "ticking")
    log = page.get_by_role("log")
    expect(log).to_contain_text("tick")

    def last_tick() -> int:
        return max(map(int, re.findall(r"tick (\d+)", log.inner_text())), default=0)

    # The log may be hundreds of lines ahead between two looks at it.
    first = last_tick()
    wait_until(lambda: last_tick() > first + 100, "the end is followed")
    log.hover()
    page.mouse.wheel(0, -1_000)
    expect(page.get_by_role("button", name="To the end")).to_be_visible()
    with server.http("ann") as http:
        http.post(f"/jobs/{job}/stop").raise_for_status()
    expect(page.get_by_text(re.compile("lines · complete"))).to_be_visible()


def test_a_million_lines_do_not_freeze_the_page(visit: Visit, server: CorralServer) -> None:
    text = "step {} of the training, loss 0.123, accuracy 0.456"
    program = f"import sys; sys.stdout.writelines(f'{text.format('{i}')}\\n' for i in range(1, {MILLION + 1}))"
    job = submit(server, name="million", command=[sys.executable, "-c", program])
    wait_for_end(server, job)
    console = visit("ann")
    page = console.open(f"/jobs/{job}", "million")
    page.evaluate(WATCH)
    began = time.monotonic()
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_text("1,000,000 lines · complete")).to_be_visible(timeout=60_000)
    expect(line(page, MILLION)).to_be_in_viewport()
    loading = time.monotonic() - began
    while_loading = page.evaluate("() => window.watched")
    page.evaluate("() => { window.watched = { longest: 0, tasks: 0, gap: 0, frames: 0 }; }")
    began = time.monotonic()
    page.get_by_role("textbox", name="Search the log").fill("step 500000 ")
    expect(page.get_by_text("1 of 1", exact=True)).to_be_visible(timeout=30_000)
    page.keyboard.press("Enter")
    expect(line(page, 500_000)).to_contain_text(text.format(500_000))
    expect(line(page, 500_000)).to_be_in_viewport()
    searching = time.monotonic() - began
    page.get_by_role("log").hover()
    for _ in range(20):
        page.mouse.wheel(0, 700)
    expect(page.get_by_role("log").locator("[data-line]").first).to_be_visible()
    page.get_by_role("button", name="To the end").click()
    expect(line(page, MILLION)).to_be_in_viewport()
    while_using = page.evaluate("() => window.watched")
    rows = page.get_by_role("log").locator("[data-line]").count()
    LOG.info("loaded in %.1f s: %s; searched in %.2f s: %s", loading, while_loading, searching, while_using)
    assert rows < 200, "only the lines in sight are in the page"
    assert while_using["longest"] < 2_000
