"""Datasets in the console: made, committed, tagged, compared and traced to the jobs that used them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from corral.core.storage.checksums import checksum_of
from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

FILES = {"labels.csv": b"cat,1\ndog,2\n", "images/cat.txt": b"meow", "images/dog.txt": b"woof"}


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "4xA100-80G", users=("ann", "bob", "dora")) as running:
        with running.http() as http:
            http.post("/permission-groups", json={"name": "readers", "functions": []}).raise_for_status()
            http.patch("/users/dora", json={"permission_group": "readers"}).raise_for_status()
        with running.http("ann") as http:
            body = {"name": "raw", "type": "filesystem", "size": "1GiB"}
            volume = http.post("/volumes", json=body).raise_for_status().json()["id"]
            wait_until(lambda: http.get(f"/volumes/{volume}").json()["state"] == "ready", "the volume is made")
            for path, content in FILES.items():
                put(http, path, content)
        yield running


def put(http: httpx.Client, path: str, content: bytes) -> None:
    checksum = {"X-Checksum": checksum_of([content])}
    http.put(f"/volumes/raw/files/content?path={path}", content=content, headers=checksum).raise_for_status()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def commit(page: Page, message: str) -> None:
    page.get_by_role("button", name="Commit", exact=True).click()
    drawer = page.get_by_role("dialog", name=re.compile("A new version of"))
    drawer.get_by_role("combobox", name="Volume").click()
    page.get_by_role("option", name="raw").click()
    drawer.get_by_label("What is new").fill(message)
    drawer.get_by_role("button", name="Commit").click()
    expect(page.get_by_text("has a new version")).to_be_visible(timeout=60_000)
    expect(row(page, message)).to_be_visible()


def test_versions_are_made_tagged_read_and_compared(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/datasets", "Datasets")
    expect(page.get_by_text("No datasets yet")).to_be_visible()
    page.get_by_role("button", name="New dataset").first.click()
    drawer = page.get_by_role("dialog", name="New dataset")
    drawer.get_by_label("Name").fill("a b")
    expect(drawer.get_by_text("(this has 3)")).to_be_visible()
    drawer.get_by_label("Name").fill("animals")
    drawer.get_by_label("Description").fill("photos of animals")
    drawer.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="animals", level=1)).to_be_visible()
    expect(page.get_by_text("No version yet")).to_be_visible()
    expect(page.get_by_role("button", name="New job with this dataset")).to_have_attribute("aria-disabled", "true")
    commit(page, "as it came")
    with server.http("ann") as http:
        put(http, "labels.csv", b"cat,1\ndog,2\nfox,3\n")
        put(http, "images/fox.txt", b"ring")
        http.delete("/volumes/raw/files?path=images/dog.txt").raise_for_status()
    commit(page, "with a fox")
    first = row(page, "as it came")
    expect(first).to_contain_text("3")
    first.get_by_role("button", name=re.compile("^Tag ")).click()
    drawer = page.get_by_role("dialog", name=re.compile("^Tag "))
    drawer.get_by_label("Tag").fill("not good")
    expect(drawer.get_by_text("letters, digits, '.', '_' and '-'")).to_be_visible()
    drawer.get_by_label("Tag").fill("v1")
    drawer.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Tag v1 set")).to_be_visible()
    expect(first).to_contain_text("v1")
    # What is in it, and what became of it.
    page.get_by_role("button", name="Files of v1").click()
    expect(row(page, "labels.csv")).to_contain_text("12 B")
    page.get_by_role("link", name="images", exact=True).click()
    expect(row(page, "dog.txt")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download dog.txt").click()
    assert download.value.path().read_bytes() == b"woof"
    page.get_by_role("tab", name="Compare").click()
    expect(row(page, "images/fox.txt")).to_contain_text("added")
    expect(row(page, "images/dog.txt")).to_contain_text("removed")
    expect(row(page, "labels.csv")).to_contain_text("changed")
    expect(page.get_by_text("1 added")).to_be_visible()


def test_a_version_is_mounted_and_its_use_is_shown_on_both_pages(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        dataset = http.post("/datasets", json={"name": "texts"}).raise_for_status().json()["id"]
        body = {"from": {"volume": "raw", "path": "images"}, "message": "only images"}
        operation = http.post(f"/datasets/{dataset}/commits", json=body).raise_for_status().json()["id"]
        wait_until(
            lambda: http.get(f"/datasets/{dataset}/commits/{operation}").json()["state"] == "ready", "it is there"
        )
        http.put(f"/datasets/{dataset}/tags/v1", json={"version": "latest"}).raise_for_status()
    page = visit("ann").open("/jobs/new?dataset=texts&step=storage", "New job")
    expect(page.get_by_role("combobox", name="Dataset")).to_have_value("texts")
    page.get_by_role("combobox", name="Version").click()
    page.get_by_role("option", name="v1", exact=True).click()
    page.get_by_label("Path in the job").fill("/texts")
    page.get_by_role("button", name="Program", exact=True).click()
    page.get_by_label("Command").fill('ls "$CORRAL_MOUNT_TEXTS"')
    page.get_by_role("button", name="Kind", exact=True).click()
    page.get_by_label("Name").fill("reads-texts")
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.locator("code, pre").filter(has_text="dataset:texts@v1:/texts:ro").first).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="reads-texts", level=1)).to_be_visible()
    with server.http("ann") as http:
        wait_until(lambda: http.get("/jobs/reads-texts").json()["state"] == "completed", "it has read it")
    page.get_by_role("region", name="About the job").get_by_role("link", name=re.compile("dataset texts")).click()
    expect(page.get_by_role("heading", name="texts", level=1)).to_be_visible()
    page.get_by_role("tab", name="Lineage").click()
    expect(row(page, "only images")).to_contain_text("reads-texts")
    expect(row(page, "only images")).to_contain_text("committed by hand")


def test_sharing_targets_and_rights_are_explained(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        dataset = http.post("/datasets", json={"name": "shared"}).raise_for_status().json()["id"]
        share = {"kind": "user", "name": "bob", "mode": "ro"}
        http.put(f"/datasets/{dataset}/shares", json={"shares": [share]}).raise_for_status()
    theirs = visit("bob").open("/datasets", "Datasets")
    theirs.get_by_role("link", name="shared").click()
    button = theirs.get_by_role("button", name="Commit", exact=True)
    expect(button).to_have_attribute("aria-disabled", "true")
    button.hover()
    expect(theirs.get_by_role("tooltip")).to_contain_text("You have read access only; the owner is ann")
    reader = visit("dora").open("/datasets", "Datasets")
    expect(reader.get_by_role("button", name="New dataset").first).to_have_attribute("aria-disabled", "true")
    page = visit().open("/datasets?tab=targets", "Datasets")
    expect(row(page, "default")).to_contain_text("corral's own store")
    expect(page.get_by_role("button", name="Delete default")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Test default").click()
    expect(page.get_by_text(re.compile("default answers"))).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Add target").click()
    drawer = page.get_by_role("dialog", name="New target")
    drawer.get_by_label("Name").fill("archive")
    drawer.get_by_role("textbox", name="Directory").fill("relative")
    expect(drawer.get_by_text("A path that begins with /")).to_be_visible()
    drawer.get_by_role("textbox", name="Directory").fill(str(server.home / "archive"))
    drawer.get_by_role("button", name="Save").click()
    expect(row(page, "archive")).to_be_visible()
