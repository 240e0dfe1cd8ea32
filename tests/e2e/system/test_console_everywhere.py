"""The rules for every page: no accessibility violation in either theme, nothing from other servers, Chinese,
the width of a phone, no secret left in the browser, one heading, and a first load that is small.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.e2e.pages import VIEWS, concrete, registered_paths
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

AXE = Path(__file__).parents[3] / "console" / "node_modules" / "axe-core" / "axe.min.js"
FIRST_LOAD_LIMIT = 200_000


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--demo", users=("zoe",)) as running:
        with running.http() as http:
            wait_until(lambda: len(http.get("/jobs?state=running").json()["items"]) > 3, "demo jobs run")
        yield running


@pytest.fixture(scope="module")
def places(server: CorralServer) -> dict[str, str]:
    """Something real for the pages of one thing."""
    with server.http() as http:
        jobs, gpus = http.get("/jobs?state=running").json()["items"], http.get("/gpus").json()["items"]
        reservation = {
            "name": "seminar",
            "pool": gpus[0]["pool"],
            "gpus": 1,
            "users": ["zoe"],
            "note": "for the seminar",
        }
        http.post("/reservations", json={**reservation, "until": "2100-01-01T00:00:00Z"}).raise_for_status()
        question = {"days": 1, "candidate": {"queues": {"*": {"policy": "shortest"}}}}
        asked = http.post("/simulations", json=question).raise_for_status().json()
        wait_until(lambda: http.get(f"/simulations/{asked['id']}").json()["state"] == "ready", "it is worked out")
        volumes, datasets = (http.get(path).json()["items"] for path in ("/volumes", "/datasets"))
    return {
        "job": jobs[0]["id"],
        "past": jobs[0]["queued_at"],
        "node": gpus[0]["node"],
        "gpu": gpus[0]["id"],
        "simulation": asked["id"],
        "volume": volumes[0]["id"],
        "dataset": datasets[0]["id"],
    }


def settled(page: Page) -> None:
    """One heading, and no skeleton any more."""
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.locator(".mantine-Skeleton-root:visible")).to_have_count(0)


def violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']} ({one['impact']}): {one['nodes'][0]['target']} {one['nodes'][0]['failureSummary'][:200]}"
        for one in found["violations"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible_and_asks_no_other_server(
    browser: Browser, server: CorralServer, places: dict[str, str], theme: str
) -> None:
    # Only the test's own script needs this; that the policy holds is checked elsewhere.
    console = Console(browser, server, bypass_csp=True).sign_in()
    console.page.add_init_script(f"localStorage.setItem('mantine-color-scheme-value', '{theme}')")
    asked: list[str] = []
    console.page.on("request", lambda request: asked.append(request.url))
    wrong: dict[str, list[str]] = {}
    for path in [*registered_paths(), *VIEWS.values()]:
        page = console.open(concrete(path, **places))
        settled(page)
        if found := violations(page):
            wrong[path] = found
    assert not wrong, json.dumps(wrong, indent=1)
    assert not [url for url in asked if not url.startswith((server.url, "data:", "blob:"))]
    console.close()


def test_every_page_speaks_chinese_and_fits_a_phone(visit: Visit, places: dict[str, str]) -> None:
    """The page itself never scrolls sideways."""
    console = visit(phone=True)
    console.page.add_init_script("localStorage.setItem('corral.language', '\"zh\"')")
    wide: dict[str, int] = {}
    english: dict[str, list[str]] = {}
    for path in registered_paths():
        page = console.open(concrete(path, **places))
        settled(page)
        expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        if (width := page.evaluate("document.documentElement.scrollWidth")) > 391:
            wide[path] = width
        buttons = [text.strip() for text in page.get_by_role("main").get_by_role("button").all_inner_texts()]
        if untold := [text for text in buttons if re.fullmatch(r"(?:[A-Z][a-z]+ ?){2,}", text)]:
            english[path] = untold
    assert not wide
    assert not english


def test_browser_stores_no_secret(visit: Visit, server: CorralServer) -> None:
    console = visit("zoe")
    page = console.open("/settings")
    settled(page)
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    session = next(cookie for cookie in console.context.cookies() if cookie["name"] == "corral_session")
    assert session["httpOnly"]
    assert session["value"] not in kept
    csrf = page.evaluate("fetch('/api/v1/me').then((answer) => answer.json()).then((me) => me.csrf_token)")
    assert csrf
    assert csrf not in kept
    assert csrf not in page.content()


def test_the_first_load_is_small(server: CorralServer) -> None:
    """JavaScript of the entry and what it imports at once, compressed; pages come when they are opened."""
    manifest = json.loads((BUILT.parent / ".vite" / "manifest.json").read_text(encoding="utf-8"))
    first: set[str] = set()

    def follow(name: str) -> None:
        chunk = manifest[name]
        if chunk["file"] not in first:
            first.add(chunk["file"])
            for other in chunk.get("imports", ()):
                follow(other)

    follow("index.html")
    follow("src/pages/fleet/overview/OverviewPage.tsx")
    sizes = {name: len(gzip.compress((BUILT.parent / name).read_bytes())) for name in first}
    assert 0 < sum(sizes.values()) <= FIRST_LOAD_LIMIT, sizes
