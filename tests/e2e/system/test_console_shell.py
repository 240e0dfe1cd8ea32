"""The frame of the console: signing in, who sees which pages, language, theme, the palette, and what is live."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.servers.corral_server import PASSWORD, CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

OPERATOR_PAGES = ("Nodes", "Users", "Quotas", "Alerts", "Audit log")


def test_a_deep_link_asks_to_sign_in_and_then_shows_what_was_asked_for(browser: Browser, server: CorralServer) -> None:
    console = Console(browser, server)
    page = console.open("/quotas")
    page.locator("[name=user]").fill("operator")
    page.locator("[name=password]").fill("a wrong one, certainly")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("password")
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Quotas", level=1)).to_be_visible()
    console.close()


def test_a_one_time_password_is_replaced_before_anything_else(browser: Browser, server: CorralServer) -> None:
    with server.http() as http:
        body = {"name": "fresh", "password": "given-by-an-operator"}
        http.post("/users", json=body).raise_for_status()
        http.patch("/users/fresh", json={"password": "given-by-an-operator-2"}).raise_for_status()
    console = Console(browser, server)
    page = console.open("/")
    page.locator("[name=user]").fill("fresh")
    page.locator("[name=password]").fill("given-by-an-operator-2")
    page.get_by_role("button", name="Sign in").click()
    page.locator("[name=old]").fill("given-by-an-operator-2")
    page.locator("[name=new]").fill("a-password-of-my-own")
    page.locator("[name=again]").fill("a-password-of-my-own")
    page.get_by_role("button", name="Change and go on").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    console.close()


def test_a_scientist_sees_no_operator_pages(visit: Visit) -> None:
    console = visit("ann")
    page = console.open("/", "Overview")
    navigation = page.get_by_role("navigation")
    expect(navigation.get_by_role("link", name="Jobs", exact=True)).to_be_visible()
    for name in OPERATOR_PAGES:
        expect(navigation.get_by_role("link", name=name, exact=True)).to_have_count(0)
    console.open("/users")
    expect(page.get_by_text("This page is for operators")).to_be_visible()


def test_language_and_theme_are_switched_and_remembered(visit: Visit) -> None:
    console = visit()
    page = console.open("/jobs", "Jobs")
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitem", name="简体中文").click()
    expect(page.get_by_role("heading", name="作业", level=1)).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    before = page.locator("html").get_attribute("data-mantine-color-scheme")
    page.get_by_role("button", name=re.compile("切换到")).click()
    after = "dark" if before == "light" else "light"
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", after)
    console.open("/jobs", "作业")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", after)


def test_the_palette_finds_pages_and_jobs_by_keyboard(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        job = http.post("/jobs", json={"name": "findable-llama", "command": ["true"], "hold": True}).json()
    console = visit("ann")
    page = console.open("/", "Overview")
    page.keyboard.press("Control+k")
    page.get_by_role("textbox", name="Command palette").fill("findable")
    expect(page.get_by_text("findable-llama")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{job['id']}"))


def test_the_page_says_when_it_is_stale_and_comes_back(visit: Visit, server: CorralServer) -> None:
    console = visit()
    page = console.open("/", "Overview")
    badge = page.get_by_role("status").filter(has_text=re.compile("Live|Stale|Connecting"))
    expect(badge).to_have_text("Live")
    server.kill()
    expect(badge).to_have_text("Stale", timeout=20_000)
    server.start()
    expect(badge).to_have_text("Live", timeout=30_000)
    console.errors.clear()


def test_keys_open_pages_and_show_themselves_and_virtual_gpus_are_said_to_be_simulated(visit: Visit) -> None:
    page = visit().open("/", "Overview")
    expect(page.get_by_text("Simulated GPUs").first).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Nodes", level=1)).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_contain_text("Reservations")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    # Letters in a field mean themselves.
    page.get_by_placeholder("Find by name, label or user").fill("n")
    expect(page.get_by_role("heading", name="Nodes", level=1)).to_be_visible()


def test_a_file_that_an_upgrade_replaced_offers_to_reload(browser: Browser, server: CorralServer) -> None:
    """Neither a part of a page, nor a menu, nor a message that cannot be loaded leaves a blank page."""
    for name, opens in (("ResourcePanel", ""), ("Palette", "Control+k")):
        console = Console(browser, server).sign_in()
        page = console.page
        page.route(f"**/assets/{name}-*.js", lambda route: route.fulfill(status=404))
        page.goto("/", wait_until="domcontentloaded")
        if opens:
            expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
            page.keyboard.press(opens)
        expect(page.get_by_text("A part of the console could not be loaded")).to_be_visible()
        page.unroute_all()
        page.get_by_role("button", name="Reload").click()
        expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        # What the browser says about the missing file is expected here.
        console.context.close()


def test_the_overlays_alone_may_fail_to_load(browser: Browser, server: CorralServer) -> None:
    console = Console(browser, server, "ann").sign_in()
    page = console.page
    page.route("**/assets/ToastFrame-*.js", lambda route: route.fulfill(status=404))
    page.goto("/settings", wait_until="domcontentloaded")
    page.get_by_label("Display name").fill("Ann of the tests")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Reload")).to_be_visible()
    console.context.close()


def test_the_hint_of_the_connection_is_reached_by_keyboard(visit: Visit) -> None:
    page = visit().open("/", "Overview")
    badge = page.locator("[data-live]")
    expect(badge).to_have_attribute("data-live", "live")
    badge.focus()
    expect(badge).to_be_focused()
    described = page.evaluate("id => document.getElementById(id).textContent", badge.get_attribute("aria-describedby"))
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("tooltip")).to_have_text(described)
