"""Volumes and object stores in the console: made, filled, shared, mounted and deleted, and who may do what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

GIB = 1024**3


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "4xA100-80G", users=("ann", "bob", "dora")) as running:
        with running.http() as http:
            http.put("/users/ann/quota", json={"volumes": {"block": 10 * GIB}}).raise_for_status()
            http.post("/permission-groups", json={"name": "readers", "functions": []}).raise_for_status()
            http.patch("/users/dora", json={"permission_group": "readers"}).raise_for_status()
        yield running
        with running.http() as http:
            for job in http.get("/jobs?state=running&state=queued").json()["items"]:
                http.post(f"/jobs/{job['id']}/stop")


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def made(server: CorralServer, user: str, name: str, kind: str, size: str = "1GiB") -> str:
    """A volume that is there: its id."""
    with server.http(user) as http:
        volume: str = (
            http.post("/volumes", json={"name": name, "type": kind, "size": size}).raise_for_status().json()["id"]
        )
        wait_until(lambda: http.get(f"/volumes/{volume}").json()["state"] == "ready", "the volume is made")
    return volume


def test_a_volume_is_made_grown_shared_and_deleted(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/volumes", "Volumes")
    expect(page.get_by_text("No volumes yet")).to_be_visible()
    page.get_by_role("button", name="New volume").first.click()
    drawer = page.get_by_role("dialog", name="A new volume")
    expect(drawer.get_by_role("radio", name="object")).to_be_disabled()
    expect(drawer.get_by_text("No object store is set up")).to_be_visible()
    drawer.get_by_label("Name").fill("no spaces")
    expect(drawer.get_by_text("2 to 63 letters, digits, - and _ (this has 9)")).to_be_visible()
    drawer.get_by_label("Name").fill("weights")
    drawer.get_by_role("radio", name="block").click()
    drawer.get_by_role("textbox", name="Size").fill("20GiB")
    expect(drawer.get_by_text("You ask for 20 GiB, but your quota leaves 10 GiB of 10 GiB")).to_be_visible()
    drawer.get_by_role("textbox", name="Size").fill("4GiB")
    expect(drawer.get_by_text("0 B held + 4 GiB of 10 GiB")).to_be_visible()
    drawer.get_by_role("button", name="Create").click()
    expect(page.get_by_text("weights created")).to_be_visible()
    expect(row(page, "weights")).to_contain_text("ready", timeout=30_000)
    page.get_by_role("button", name="Actions for weights").click()
    page.get_by_role("menuitem", name="Make larger").click()
    drawer = page.get_by_role("dialog", name="Make weights larger")
    drawer.get_by_role("textbox", name="New size").fill("2GiB")
    expect(drawer.get_by_text("It has 4 GiB: a volume is only made larger")).to_be_visible()
    drawer.get_by_role("textbox", name="New size").fill("6GiB")
    drawer.get_by_role("button", name="Make larger").click()
    expect(page.get_by_text("weights has 6 GiB now")).to_be_visible()
    page.get_by_role("button", name="Actions for weights").click()
    page.get_by_role("menuitem", name="Edit the description").click()
    drawer = page.get_by_role("dialog", name="Description of weights")
    drawer.get_by_label("Description").fill("Pretrained models")
    drawer.get_by_role("button", name="Save").click()
    expect(page.get_by_text("weights was changed")).to_be_visible()
    page.get_by_role("button", name="Actions for weights").click()
    page.get_by_role("menuitem", name="Share").click()
    drawer = page.get_by_role("dialog", name="Share weights")
    drawer.get_by_role("button", name="Add a user or group").click()
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_text("Whom?")).to_be_visible()
    drawer.get_by_label("Name of share 1").fill("bob")
    drawer.get_by_role("button", name="Save").click()
    expect(row(page, "weights")).to_contain_text("shared")
    # Bob reads it, and the page says that he may not change it.
    theirs = visit("bob").open("/volumes", "Volumes")
    theirs.get_by_role("link", name="weights").click()
    expect(theirs.get_by_role("heading", name="weights", level=1)).to_be_visible()
    expect(theirs.get_by_text("corral submit --mount ann/weights:/data:ro")).to_be_visible()
    expect(theirs.get_by_role("button", name="Delete")).to_have_attribute("aria-disabled", "true")
    theirs.get_by_role("button", name="Delete").hover()
    expect(theirs.get_by_role("tooltip")).to_contain_text("only its owner changes it")
    page.get_by_role("button", name="Actions for weights").click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete volume weights?")
    expect(dialog).to_contain_text("shared with 1 user or group")
    dialog.get_by_role("button", name="Delete weights").click()
    expect(row(page, "weights")).to_have_count(0, timeout=30_000)
    with server.http("ann") as http:
        assert http.get("/me/quota").json()["volumes"]["block"]["held"] == 0


def test_files_are_brought_walked_through_and_deleted(visit: Visit, server: CorralServer, tmp_path: Path) -> None:
    volume = made(server, "ann", "papers", "filesystem")
    page = visit("ann").open(f"/volumes/{volume}?tab=files", "papers")
    expect(page.get_by_text("Nothing here yet")).to_be_visible()
    expect(page.get_by_text("corral cp -r ./folder papers:/")).to_be_visible()
    small, large = tmp_path / "notes.txt", tmp_path / "large.bin"
    small.write_text("hello from the browser\n")
    large.write_bytes(bytes(range(256)) * 40_000)
    page.locator("input[type=file]").set_input_files([small, large])
    expect(page.get_by_text("2 files are uploaded")).to_be_visible(timeout=60_000)
    expect(row(page, "large.bin")).to_contain_text("9.8 MiB")
    with server.http("ann") as http:
        sent = http.get(f"/volumes/{volume}/files/content?path=large.bin").content
        http.put(f"/volumes/{volume}/files/directory?path=deep").raise_for_status()
    assert sent == large.read_bytes(), "what arrived is what was sent, over several parts"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download notes.txt").click()
    assert download.value.path().read_text() == "hello from the browser\n"
    page.reload(wait_until="domcontentloaded")
    page.get_by_role("link", name="deep").click()
    expect(page).to_have_url(re.compile("path=deep"))
    expect(page.get_by_text("Nothing here yet")).to_be_visible()
    page.get_by_role("link", name="papers", exact=True).click()
    page.get_by_role("button", name="Delete notes.txt").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete notes.txt").click()
    expect(row(page, "notes.txt")).to_have_count(0)
    with server.http("ann") as http:

        def paths() -> list[str]:
            return [one["path"] for one in http.get(f"/volumes/{volume}/files").json()["items"]]

        wait_until(lambda: paths() == ["deep", "large.bin"], "the file that the page no longer shows is deleted")


def test_a_job_mounts_and_the_one_writer_is_named_everywhere(visit: Visit, server: CorralServer) -> None:
    volume = made(server, "ann", "runs", "block")
    page = visit("ann").open("/jobs/new?volume=runs&step=storage", "New job")
    path = page.get_by_label("Path in the job")
    path.fill("/etc")
    expect(page.get_by_text("The system's own files are there")).to_be_visible()
    path.fill("/runs")
    page.get_by_role("button", name="Local scratch").click()
    size = page.get_by_role("textbox", name="Size")
    size.fill("much")
    expect(page.get_by_text("Not a size: write 16GiB or 500M")).to_be_visible()
    size.fill("1GiB")
    page.get_by_role("button", name="Program", exact=True).click()
    page.get_by_label("Command").fill("sleep 300")
    page.get_by_role("button", name="Kind", exact=True).click()
    page.get_by_label("Name").fill("first-writer")
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.get_by_role("region", name="Storage")).to_contain_text("runs:/runs:rw")
    expect(
        page.locator("code, pre").filter(has_text='mounts: ["runs:/runs:rw", "local:1GiB:/scratch"]').first
    ).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="first-writer", level=1)).to_be_visible()
    facts = page.get_by_role("region", name="About the job")
    expect(facts).to_contain_text("1GiB of the node's disk")
    with server.http("ann") as http:
        job = http.get("/jobs/first-writer").json()["id"]
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "it runs")
    facts.get_by_role("link", name="runs").click()
    expect(row(page, "first-writer")).to_contain_text("writes")
    expect(page.get_by_role("button", name="Delete")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Delete").hover()
    expect(page.get_by_role("tooltip")).to_contain_text(f"first-writer ({job})")
    page.get_by_role("tab", name="Files").click()
    expect(page.get_by_role("button", name="Upload files")).to_have_attribute("aria-disabled", "true")
    # The next job shows the reason before it waits, and while it waits.
    page.goto("/jobs/new?volume=runs&step=storage", wait_until="domcontentloaded")
    expect(page.get_by_text(f"first-writer ({job}) writes runs now")).to_be_visible()
    with server.http("ann") as http:
        body = {"name": "second-writer", "command": ["true"], "mounts": ["runs:/runs:rw"]}
        waiting = http.post("/jobs", json=body).raise_for_status().json()["id"]
    page.goto(f"/jobs/{waiting}", wait_until="domcontentloaded")
    expect(page.get_by_text("A volume is in use")).to_be_visible()
    expect(page.get_by_text("volume runs is written by", exact=False).first).to_be_visible()
    with server.http("ann") as http:
        http.post(f"/jobs/{job}/stop").raise_for_status()
        wait_until(lambda: http.get(f"/jobs/{waiting}").json()["state"] == "completed", "its turn has come")
        assert http.get(f"/volumes/{volume}").json()["jobs"] == []


def test_operators_open_buckets_and_secrets_stay_inside(visit: Visit, server: CorralServer) -> None:
    page = visit().open("/volumes?tab=object-stores", "Volumes")
    page.get_by_role("button", name="Add object store").first.click()
    drawer = page.get_by_role("dialog", name="A new object store")
    drawer.get_by_label("Name").fill("minio")
    drawer.get_by_label("Endpoint").fill("minio.example.org")
    expect(drawer.get_by_text("An address that begins with http:// or https://")).to_be_visible()
    drawer.get_by_label("Endpoint").fill("http://127.0.0.1:9")
    drawer.get_by_role("textbox", name="Bucket", exact=True).fill("datasets")
    drawer.get_by_label("Access key").fill("reader")
    drawer.get_by_role("textbox", name="Secret").fill("a-secret-of-minio")
    drawer.get_by_role("button", name="Save").click()
    expect(row(page, "minio")).to_contain_text("read-only")
    page.get_by_role("button", name="Test minio").click()
    expect(page.get_by_role("alert").filter(has_text="minio does not answer")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Edit minio").click()
    drawer = page.get_by_role("dialog", name="Object store minio")
    expect(drawer.get_by_role("textbox", name="Secret")).to_have_value("")
    expect(drawer.get_by_text("A secret is stored.")).to_be_visible()
    assert "a-secret-of-minio" not in page.content()
    drawer.get_by_role("button", name="Cancel").click()
    with server.http("ann") as http:
        body = {"name": "faces", "type": "object", "object_store": "minio", "prefix": "faces"}
        assert http.post("/volumes", json=body).raise_for_status().json()["read_only"]
    page.reload(wait_until="domcontentloaded")
    page.get_by_role("button", name="Delete minio").hover()
    expect(page.get_by_role("tooltip")).to_contain_text("1 volume is made of it")
    theirs = visit("ann").open("/volumes", "Volumes")
    expect(row(theirs, "faces")).to_contain_text("read-only")
    expect(theirs.get_by_role("tab")).to_have_count(0)


def test_a_user_who_may_not_have_volumes_sees_so(visit: Visit) -> None:
    page = visit("dora").open("/volumes", "Volumes")
    new = page.get_by_role("button", name="New volume").first
    expect(new).to_have_attribute("aria-disabled", "true")
    new.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("readers")
