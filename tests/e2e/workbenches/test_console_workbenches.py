"""Workbenches in the console: from the drawer to a cell that has run in Jupyter, SSH to copy, stop, start, remove."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit, new_key
from tests.e2e.console import BUILT, NOT_BUILT
from tests.e2e.workbench_steps import JUPYTER_SECONDS, look, until_state
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "4xA100-80G", users=("ann", "bob", "carl")) as running:
        with running.http() as http:
            http.put("/users/bob/quota", json={"workbench": {"gpus": 1}}).raise_for_status()
        yield running
        with running.http() as http:
            for view in http.get("/workbenches?state=running&state=starting&state=queued").json()["items"]:
                http.post(f"/workbenches/{view['id']}/stop")


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name)


def test_workbench_is_created_and_runs_a_cell_in_jupyter(visit: Visit) -> None:
    console = visit("ann")
    page = console.open("/workbenches", "Workbenches")
    expect(page.get_by_text("No workbench yet")).to_be_visible()
    page.get_by_role("button", name="New workbench").first.click()
    drawer = page.get_by_role("dialog", name="A new workbench")
    drawer.get_by_role("button", name="Create and start").click()
    expect(drawer.get_by_text("A name is needed")).to_be_visible()
    drawer.get_by_label("Name", exact=False).first.fill("bench")
    drawer.get_by_label("GPUs", exact=True).fill("5")
    expect(drawer.get_by_test_id("plan")).not_to_contain_text("Would start now")
    drawer.get_by_label("GPUs", exact=True).fill("1")
    expect(drawer.get_by_test_id("plan")).to_contain_text("Would start now")
    drawer.get_by_label("Stop when unused for").fill("2h")
    drawer.get_by_role("button", name="Create and start").click()
    expect(page.get_by_text("Workbench bench created")).to_be_visible()
    expect(card(page, "bench").get_by_role("status")).to_be_visible()
    opener = card(page, "bench").get_by_role("link", name="Open Jupyter of bench")
    expect(opener).to_be_visible(timeout=JUPYTER_SECONDS * 1000)
    expect(card(page, "bench")).to_contain_text("1 × A100-80G")
    expect(card(page, "bench")).to_contain_text("stops in")
    with console.context.expect_page() as opened:
        opener.click()
    lab = opened.value
    lab.locator('.jp-LauncherCard[data-category="Notebook"]').first.click(timeout=60_000)
    expect(lab.get_by_role("button", name="| Idle")).to_be_visible(timeout=90_000)
    cell = lab.locator(".jp-Notebook .jp-Cell .cm-content").first
    cell.fill("import os; print('GPUs', len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')), 6 * 7)")
    expect(cell).to_contain_text("6 * 7")
    cell.press("Shift+Enter")
    expect(lab.locator(".jp-OutputArea-output").first).to_contain_text("GPUs 1 42", timeout=60_000)
    assert "token" not in lab.url
    lab.close()


def test_workbench_is_stopped_started_and_removed(visit: Visit, server: CorralServer) -> None:
    with server.http("carl") as http:
        http.post("/workbenches", json={"name": "comes-and-goes", "hold": True}).raise_for_status()
    page = visit("carl").open("/workbenches", "Workbenches")
    mine = card(page, "comes-and-goes")
    mine.get_by_role("button", name="Start comes-and-goes").click()
    expect(mine.get_by_role("button", name="Stop comes-and-goes")).to_be_visible()
    expect(mine.get_by_role("button", name="Remove comes-and-goes")).to_have_attribute("aria-disabled", "true")
    mine.get_by_role("button", name="Stop comes-and-goes").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    until_state(server, "carl", "comes-and-goes", "stopped")
    expect(mine.get_by_role("button", name="Start comes-and-goes")).to_be_visible()
    mine.get_by_role("button", name="Remove comes-and-goes").click()
    expect(page.get_by_role("dialog")).to_contain_text("every file in it")
    page.get_by_role("dialog").get_by_role("button", name="Remove with its files").click()
    expect(mine).to_have_count(0)
    expect(page.get_by_text("No workbench yet")).to_be_visible()


def test_the_ssh_command_is_copied(visit: Visit, server: CorralServer, ssh_programs: None, tmp_path: Path) -> None:
    key = new_key(tmp_path, "carl")
    with server.http("carl") as http:
        body = {"name": "laptop", "public_key": key.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
        workbench = {"name": "by-shell", "ssh": True, "jupyter": False}
        http.post("/workbenches", json=workbench).raise_for_status()
    console = visit("carl")
    console.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = console.open("/workbenches", "Workbenches")
    copy = card(page, "by-shell").get_by_role("button", name="Copy the SSH command of by-shell")
    expect(copy).to_be_visible(timeout=60_000)
    copy.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == look(server, "carl", "by-shell")["ssh"]["command"]
    assert copied.startswith("ssh -p ")
    with server.http("carl") as http:
        http.post("/workbenches/by-shell/stop").raise_for_status()


def test_storage_is_chosen_in_the_form(visit: Visit, server: CorralServer, ssh_programs: None, tmp_path: Path) -> None:
    """If the user has a registered key, both switches are on at first."""
    key = new_key(tmp_path, "carl-2")
    with server.http("carl") as http:
        body = {"name": "second-laptop", "public_key": key.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
    page = visit("carl").open("/workbenches?open=new", "Workbenches")
    drawer = page.get_by_role("dialog", name="A new workbench")
    expect(drawer.get_by_label("JupyterLab in the browser")).to_be_checked()
    expect(drawer.get_by_label("SSH with your registered keys")).to_be_checked()
    drawer.get_by_label("Name", exact=False).first.fill("with-storage")
    drawer.get_by_role("button", name="Local scratch").click()
    drawer.get_by_role("textbox", name="Size").fill("1GiB")
    drawer.get_by_label("Path in the job").fill("/scratch")
    drawer.get_by_label("Only create it; I start it later").check()
    drawer.get_by_role("button", name="Create and start").click()
    expect(page.get_by_text("Workbench with-storage created")).to_be_visible()
    found = look(server, "carl", "with-storage")
    assert [(one["kind"], one["path"]) for one in found["job"]["mounts"]] == [("local", "/scratch")]
    assert found["ssh"] is not None


def test_obstacles_are_shown_before_and_after(visit: Visit, server: CorralServer, tmp_path: Path) -> None:
    page = visit("bob").open("/workbenches?open=new", "Workbenches")
    drawer = page.get_by_role("dialog", name="A new workbench")
    expect(drawer.get_by_text("You have no SSH key registered.")).to_be_visible()
    expect(drawer.get_by_role("link", name="Add one in settings")).to_have_attribute("href", "/settings?tab=keys")
    expect(drawer.get_by_label("SSH with your registered keys")).to_be_disabled()
    drawer.get_by_label("Name", exact=False).first.fill("too-much")
    drawer.get_by_label("GPUs", exact=True).fill("2")
    expect(drawer.get_by_text("You ask for 2, but your quota for workbench leaves 1 of 1")).to_be_visible()
    expect(drawer.get_by_test_id("plan")).to_contain_text("Would be refused")
    drawer.get_by_label("GPUs", exact=True).fill("0")
    (tmp_path / "bin").mkdir()
    drawer.get_by_label("Virtual environment").fill(str(tmp_path))
    drawer.get_by_role("button", name="Add a variable").click()
    drawer.get_by_label("Name of variable 1").fill("PATH")
    drawer.get_by_label("Value of variable 1").fill(str(tmp_path / "bin"))
    drawer.get_by_role("button", name="Create and start").click()
    expect(drawer.get_by_role("alert").first).to_contain_text("pip install jupyterlab")
    expect(drawer.get_by_label("GPUs", exact=True)).to_have_value("0")
    # One that breaks only when it runs says so on its card.
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "jupyter-lab").write_text("#!/bin/sh\nexit 3\n")
    (programs / "jupyter-lab").chmod(0o755)
    with server.http("bob") as http:
        http.post("/workbenches", json={"name": "broken", "venv": str(tmp_path / "venv")}).raise_for_status()
    page.keyboard.press("Escape")
    expect(card(page, "broken")).to_contain_text("It failed: ", timeout=60_000)
    expect(card(page, "broken")).to_contain_text("Jupyter did not start")


def test_waiting_workbench_shows_the_reason(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        body = {"name": "all-of-them", "command": ["sleep", "60"], "gpus": 4, "model": "A100-80G"}
        http.get("/workbenches").raise_for_status()
        running = http.get("/workbenches?state=running").json()["items"]
        for view in running:
            http.post(f"/workbenches/{view['id']}/stop").raise_for_status()
        job = http.post("/jobs", json=body).raise_for_status().json()
        # A workbench that needs one GPU would pass a job that still waits for all of them.
        wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "running", "all GPUs are held")
    with server.http("bob") as http:
        http.post("/workbenches", json={"name": "patient", "gpus": 1}).raise_for_status()
    page = visit("bob").open("/workbenches", "Workbenches")
    expect(card(page, "patient").get_by_role("status")).to_contain_text(re.compile("Waits for its GPUs.*GPU"))
    with server.http() as http:
        http.post(f"/jobs/{job['id']}/stop").raise_for_status()
    with server.http("bob") as http:
        http.post("/workbenches/patient/stop").raise_for_status()


def test_operators_see_everybodys(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        http.post("/workbenches", json={"name": "of-ann", "hold": True}).raise_for_status()
    page = visit().open("/workbenches", "Workbenches")
    expect(card(page, "of-ann")).to_contain_text("of ann")
    page.get_by_text("Mine", exact=True).click()
    expect(page).to_have_url(re.compile("whose=mine"))
    expect(card(page, "of-ann")).to_have_count(0)
