"""The built console in a real browser: its files arrive, its policy lets it work and lets nothing else in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from corral.server.http.console_files import BUILT
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer

pytestmark = pytest.mark.slow

#: Before anything of the page runs: whatever the policy refuses is written down.
WATCH = """
window.refused = [];
addEventListener("securitypolicyviolation", (event) => refused.push(`${event.effectiveDirective} ${event.blockedURI}`));
"""
LOADED_FONTS = "document.fonts.ready.then((all) => [...all].filter((font) => font.status === 'loaded').length)"
ASKED_HOSTS = "[...new Set(performance.getEntriesByType('resource').map((one) => new URL(one.name).host))]"
IN_A_FRAME = """(path) => {
    const frame = document.createElement("iframe");
    frame.src = path;
    document.body.replaceChildren(frame);
}"""


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    assert (BUILT / "index.html").is_file(), "the console is not built: make console"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.add_init_script(WATCH)
    yield context.new_page()
    context.close()


def refused(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.refused")
    return found


def sign_in(page: Page, server: CorralServer, path: str) -> None:
    page.goto(f"{server.url}{path}", wait_until="domcontentloaded")
    page.get_by_label("User").fill("operator")
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation").first).to_be_visible(timeout=30_000)


def test_a_user_signs_in_and_nothing_is_refused(page: Page, server: CorralServer) -> None:
    failed: list[tuple[int, str]] = []
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", lambda answer: failed.append((answer.status, answer.url)) if answer.status >= 400 else None)
    sign_in(page, server, "/signin?next=/gpus")
    page.wait_for_url(f"{server.url}/gpus")
    assert failed == [(401, f"{server.url}/api/v1/me")], "the question that leads to the sign-in page, and nothing else"
    page.reload(wait_until="domcontentloaded")
    expect(page.get_by_role("navigation").first).to_be_visible(timeout=30_000)
    assert page.url == f"{server.url}/gpus"
    assert page.evaluate(LOADED_FONTS) > 0, "fonts are our own"
    assert page.evaluate(ASKED_HOSTS) == [server.url.removeprefix("http://")], "nothing is asked of other servers"
    assert (refused(page), errors) == ([], [])


def test_injected_scripts_do_not_run(page: Page, server: CorralServer) -> None:
    page.goto(f"{server.url}/", wait_until="domcontentloaded")
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = 'inline'";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", `<img src="x" onerror="window.ran = 'handler'">`);
        const frame = document.createElement("iframe");
        frame.src = "https://evil.example/";
        document.body.append(frame);
    }""")
    wait_until(lambda: len(refused(page)) >= 3, "all three are refused")
    assert {entry.split()[0] for entry in refused(page)} == {"script-src-elem", "script-src-attr", "frame-src"}
    assert page.evaluate("window.ran") is None


def test_a_report_is_shown_in_a_frame_and_can_do_nothing(page: Page, server: CorralServer) -> None:
    report = make_report(server)
    sign_in(page, server, "/")
    page.evaluate(IN_A_FRAME, f"{report}?format=html")
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1").first).to_be_visible(timeout=30_000)
    assert refused(page) == []
    inner = next(one for one in page.frames if one != page.main_frame)
    assert inner.evaluate("origin") == "null", "it is sandboxed by the server's own word"


def make_report(server: CorralServer) -> str:
    """The path of a report that is ready."""
    with server.http() as http:
        made: dict[str, Any] = http.post("/reports", json={"period": "24h"}).raise_for_status().json()
        path = f"/reports/{made['id']}"
        wait_until(lambda: http.get(path).json()["state"] == "ready", "the report is ready")
    return f"/api/v1{path}/file"
