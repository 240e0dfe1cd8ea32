"""Images, logins to registries and presets in the console: add, change, share, remove, run; and who may do what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.listed_registry import ListedRegistry

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

ADDRESS = "registry.example.org/team/train:1.4"
PRESET = """\
name: greeting
title: A greeting
description: Says hello to a user.
parameters:
  - {name: whom, type: text, help: Who is greeted.}
request: {gpus: 0, time: 5m}
command: [echo, "hello {whom}"]
"""


@pytest.fixture(scope="module")
def registry() -> Iterator[ListedRegistry]:
    made = ListedRegistry()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(registry: ListedRegistry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    file = tmp_path_factory.mktemp("console-images") / "corral.yaml"
    file.write_text(f'images: {{registries: ["http://{registry.host}"]}}\n')
    args = ("--virtual-gpus", "4xA100-80G", "--config", str(file))
    with api_server(*args, users=("ann", "bob", "dora")) as running:
        with running.http() as http:
            body: dict[str, Any] = {
                "name": "pytorch",
                "address": "docker.io/pytorch/pytorch:2.4.0",
                "visibility": "public",
            }
            http.post("/images", json=body).raise_for_status()
            http.post("/permission-groups", json={"name": "readers", "functions": []}).raise_for_status()
            http.patch("/users/dora", json={"permission_group": "readers"}).raise_for_status()
        yield running


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name)


# ------------------------------------------------------------------------------------------------ images


def test_an_image_is_added_changed_shared_and_removed(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/images", "Images")
    expect(row(page, "pytorch")).to_contain_text("public")
    page.get_by_role("button", name="Add image").click()
    drawer = page.get_by_role("dialog", name="A new image")
    drawer.get_by_label("Name").fill("Not Good")
    expect(drawer.get_by_text("Up to 63 small letters")).to_be_visible()
    drawer.get_by_label("Name").fill("train")
    drawer.get_by_label("Address").fill("no address!")
    expect(drawer.get_by_text("Not an address such as")).to_be_visible()
    drawer.get_by_label("Address").fill(ADDRESS)
    expect(drawer.get_by_role("radio", name="public")).to_be_disabled()
    expect(drawer.get_by_text("Only operators offer public images")).to_be_visible()
    drawer.get_by_role("button", name="Save").click()
    expect(page.get_by_text("train added")).to_be_visible()
    expect(row(page, ADDRESS)).to_contain_text("only you")
    page.get_by_role("button", name="Edit train").click()
    drawer = page.get_by_role("dialog", name="Image train")
    expect(drawer.get_by_label("Name")).to_be_disabled()
    drawer.get_by_text("shared", exact=True).click()
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_text("Name at least one user or group")).to_be_visible()
    users = drawer.get_by_role("combobox", name="Users")
    users.fill("not-here")
    users.press("Enter")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_text("there is no user 'not-here'")).to_be_visible()
    users.press("Backspace")
    users.fill("bob")
    users.press("Enter")
    drawer.get_by_role("button", name="Save").click()
    expect(row(page, ADDRESS)).to_contain_text("shared")
    with server.http("bob") as http:
        seen = {image["name"]: image["owner"] for image in http.get("/images").json()["items"]}
        body = {"name": "uses-it", "command": ["true"], "image": "ann/train", "hold": True}
        http.post("/jobs", json=body).raise_for_status()
    assert seen == {"pytorch": "", "train": "ann"}
    # Bob uses it, but it is not his.
    theirs = visit("bob").open("/images", "Images")
    expect(row(theirs, "train")).to_contain_text("1 job")
    expect(theirs.get_by_role("button", name="Edit train")).to_have_attribute("aria-disabled", "true")
    theirs.get_by_role("button", name="Remove train").hover()
    expect(theirs.get_by_role("tooltip")).to_contain_text("only its owner changes it")
    page.get_by_role("button", name="Remove train").click()
    expect(page.get_by_role("dialog")).to_contain_text("Only the name goes")
    page.get_by_role("dialog").get_by_role("button", name="Remove train").click()
    expect(row(page, ADDRESS)).to_have_count(0)
    theirs.reload(wait_until="domcontentloaded")
    expect(row(theirs, "pytorch")).to_be_visible()
    expect(row(theirs, "train")).to_have_count(0)


def test_an_image_is_chosen_in_the_wizard(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        http.post("/images", json={"name": "mine", "address": ADDRESS}).raise_for_status()
    page = visit("ann").open("/jobs/new?step=image", "New job")
    page.get_by_role("radio", name="An image from the list").click()
    page.get_by_role("combobox", name="Image").click()
    page.get_by_role("option", name=re.compile("^mine")).click()
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.get_by_role("region", name="Image")).to_contain_text("mine")
    expect(page.locator("pre, code").filter(has_text="image: mine").first).to_be_visible()


def test_an_operator_offers_an_image_to_everybody(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/images?open=new", "Images")
    drawer = page.get_by_role("dialog", name="A new image")
    drawer.get_by_label("Name").fill("for-all")
    drawer.get_by_label("Address").fill("registry.example.org/all:1")
    drawer.get_by_text("public", exact=True).click()
    drawer.get_by_role("button", name="Save").click()
    expect(row(page, "for-all")).to_contain_text("platform")
    with server.http("bob") as http:
        assert "for-all" in [image["name"] for image in http.get("/images").json()["items"]]
    page.get_by_role("button", name="Edit for-all").click()
    expect(page.get_by_role("dialog").get_by_role("radio", name="only you")).to_be_disabled()


def test_a_user_who_may_not_have_images_sees_so(visit: Visit) -> None:
    page = visit("dora").open("/images", "Images")
    add = page.get_by_role("button", name="Add image")
    expect(add).to_have_attribute("aria-disabled", "true")
    add.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("readers")


def test_the_images_of_a_registry_are_listed_beside_its_login(
    visit: Visit, server: CorralServer, registry: ListedRegistry
) -> None:
    with server.http("ann") as http:
        for name, host in (("work", registry.host), ("elsewhere", "registry.example.org")):
            body = {"registry": host, "username": "ada", "secret": "secret"}
            http.put(f"/registry-logins/{name}", json=body).raise_for_status()
    page = visit("ann").open("/images?tab=logins", "Images")
    page.get_by_role("button", name=f"Images of {registry.host}").click()
    drawer = page.get_by_role("dialog", name=f"Images of {registry.host}")
    expect(drawer.get_by_text(f"{registry.host}/team/train:2.0")).to_be_visible()
    expect(drawer.get_by_role("row").nth(1)).to_contain_text("31")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Images of registry.example.org").click()
    expect(page.get_by_role("dialog").get_by_text("an operator adds it to images.registries")).to_be_visible()
    with server.http("ann") as http:
        for name in ("work", "elsewhere"):
            http.delete(f"/registry-logins/{name}").raise_for_status()


def test_a_login_is_kept_and_its_secret_never_shown(visit: Visit, server: CorralServer) -> None:
    console = visit("bob")
    page = console.open("/images?tab=logins", "Images")
    expect(page.get_by_text("No logins")).to_be_visible()
    page.get_by_role("button", name="Add login").first.click()
    drawer = page.get_by_role("dialog", name="A login to a registry")
    drawer.get_by_label("Name", exact=False).first.fill("team")
    drawer.get_by_label("Registry").fill("not a host")
    expect(drawer.get_by_text("A host such as")).to_be_visible()
    drawer.get_by_label("Registry").fill("registry.example.org")
    drawer.get_by_label("User name").fill("bob-there")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_text("Required")).to_be_visible()
    drawer.get_by_role("textbox", name="Password or token").fill("a-secret-of-bob")
    drawer.get_by_role("button", name="Save").click()
    expect(row(page, "team")).to_contain_text("bob-there")
    page.reload(wait_until="domcontentloaded")
    expect(row(page, "team")).to_contain_text("registry.example.org")
    page.get_by_role("button", name="Replace team").click()
    replacing = page.get_by_role("dialog", name="Replace login team")
    expect(replacing.get_by_role("textbox", name="Password or token")).to_have_value("")
    assert "a-secret-of-bob" not in page.content()
    assert "a-secret-of-bob" not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    replacing.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Remove team").click()
    expect(page.get_by_role("dialog")).to_contain_text("can't be pulled any more")
    page.get_by_role("dialog").get_by_role("button", name="Remove team").click()
    expect(page.get_by_text("No logins")).to_be_visible()
    with server.http("bob") as http:
        # The page shows the removal before the server has done it.
        wait_until(lambda: http.get("/registry-logins").json()["items"] == [], "the login is removed")


# ------------------------------------------------------------------------------------------------ presets


def test_a_preset_is_read_used_and_run(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/presets", "Presets")
    expect(card(page, "classification")).to_contain_text("comes with corral")
    card(page, "classification").get_by_role("button", name="Template of classification").click()
    template = page.get_by_role("dialog", name="Preset classification")
    expect(template.get_by_role("row").filter(has_text="epochs")).to_contain_text("1 … 100000")
    expect(template).to_contain_text("corral.presets.classification")
    page.keyboard.press("Escape")
    expect(card(page, "classification").get_by_role("link", name="Use classification")).to_have_attribute(
        "href", "/jobs/new?preset=classification"
    )
    card(page, "classification").get_by_role("button", name="Quick run of classification").click()
    drawer = page.get_by_role("dialog", name="Run Image classification")
    drawer.get_by_label("epochs").fill("none")
    expect(drawer.get_by_text("A number")).to_be_visible()
    drawer.get_by_label("epochs").fill("1")
    drawer.get_by_label("images", exact=True).fill("40")
    drawer.get_by_label("Name", exact=False).first.fill("quick-one")
    drawer.get_by_label("GPUs", exact=True).fill("0")
    expect(drawer.get_by_test_id("plan")).to_contain_text("Would start now")
    drawer.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))

    def is_done() -> bool:
        with server.http("ann") as http:
            job = http.get("/jobs/quick-one").json()
        assert job["state"] != "failed", job
        return bool(job["state"] == "completed" and job["parameters"]["epochs"] == "1")

    wait_until(is_done, "it has learned", 60)


def test_an_operator_adds_a_preset_and_sees_what_is_wrong(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/presets", "Presets")
    expect(page.get_by_role("button", name="Remove classification")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Add preset").click()
    drawer = page.get_by_role("dialog", name="A new preset")
    drawer.get_by_label("YAML").fill(PRESET.replace("type: text", "type: poem"))
    drawer.get_by_role("button", name="Add preset").click()
    expect(drawer.get_by_text("line 5: parameters[0].type")).to_be_visible()
    drawer.get_by_label("YAML").fill(PRESET)
    drawer.get_by_role("button", name="Add preset").click()
    expect(card(page, "greeting")).to_contain_text("by operator")
    # A parameter without a default must be given before it runs.
    page.get_by_role("button", name="Quick run of greeting").click()
    run = page.get_by_role("dialog", name="Run A greeting")
    run.get_by_role("button", name="Run", exact=True).click()
    expect(run.get_by_label("whom")).to_be_focused()
    run.get_by_label("whom").fill("the world")
    run.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))
    job = page.url.rpartition("/")[2]

    def greets() -> bool:
        with server.http() as http:
            return "hello the world" in http.get(f"/jobs/{job}/logs").text

    wait_until(greets, "it greets")
    page.goto("/presets", wait_until="domcontentloaded")
    page.get_by_role("button", name="Remove greeting").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove greeting").click()
    expect(card(page, "greeting")).to_have_count(0)
