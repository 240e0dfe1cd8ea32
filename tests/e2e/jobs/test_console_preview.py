"""Previews of files in a real browser: text, tables and images are shown, and nothing that a job wrote is run."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from corral.core.storage.checksums import checksum_of
from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

#: 2 × 1 points, red and blue
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAADUlEQVR4nGP4zwAE/wEHAAH/4iOeWQAAAABJRU5ErkJggg=="
)
ATTACK = "<svg xmlns='http://www.w3.org/2000/svg' onload='parent.attacked=1'><script>window.attacked = 1</script></svg>"
FILES = {
    "notes.txt": "first line\n第二行\n",
    "scores.csv": 'name,score\n"Ann, B.",0.9\nBob,0.8\n',
    "page.html": f"<!doctype html><script>window.attacked = 1</script>{ATTACK}",
    "drawing.svg": ATTACK,
    "drawing.png": ATTACK,
    "empty.txt": "",
    "long.log": "0123456789abcde\n" * 20_000,
}
PROGRAM = """
import base64, json, os, pathlib
outputs = pathlib.Path(os.environ["CORRAL_OUTPUT_DIR"])
for name, text in json.loads(os.environ["FILES"]).items():
    (outputs / name).write_text(text, encoding="utf-8")
(outputs / "long.log").write_text("0123456789abcde\\n" * 20_000)
(outputs / "plot").write_bytes(base64.b64decode(os.environ["PNG"]))
(outputs / "weights.bin").write_bytes(bytes(range(256)))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "2xA10", users=("ann",)) as running:
        yield running


@pytest.fixture(scope="module")
def job(server: CorralServer) -> str:
    short = {name: text for name, text in FILES.items() if name != "long.log"}
    env = {"FILES": json.dumps(short), "PNG": base64.b64encode(PNG).decode()}
    with server.http("ann") as http:
        body = {"name": "writes-files", "command": ["python3", "-c", PROGRAM], "env": env}
        found: str = http.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{found}").json()["state"] == "completed", "the files are written")
    return found


def shown(page: Page, name: str) -> Page:
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("dialog", name=name)).to_be_visible()
    return page


def closed(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_texts_tables_and_images_are_shown(visit: Visit, job: str) -> None:
    page = visit("ann").open(f"/jobs/{job}?tab=files", "writes-files")
    shown(page, "notes.txt")
    expect(page.get_by_role("region", name="Content of notes.txt")).to_have_text("first line\n第二行\n")
    expect(page).to_have_url(re.compile("file=notes.txt"))
    # The address leads back to it.
    page.reload(wait_until="domcontentloaded")
    expect(page.get_by_role("dialog", name="notes.txt")).to_be_visible()
    closed(page)
    expect(page).not_to_have_url(re.compile("file="))

    shown(page, "scores.csv")
    table = page.get_by_role("dialog").get_by_role("table", name="scores.csv")
    expect(table.get_by_role("columnheader")).to_have_text(["name", "score"])
    expect(table.get_by_role("row").nth(1).get_by_role("cell")).to_have_text(["Ann, B.", "0.9"])
    page.get_by_role("dialog").get_by_text("Text", exact=True).click()
    expect(page.get_by_role("region", name="Content of scores.csv")).to_have_text(FILES["scores.csv"])
    closed(page)

    # An image without a name that says so.
    shown(page, "plot")
    image = page.get_by_role("img", name="Preview of plot")
    expect(image).to_be_visible()
    page.wait_for_function("document.querySelector('[role=dialog] img')?.naturalWidth === 2")
    closed(page)

    shown(page, "empty.txt")
    expect(page.get_by_text("This file is empty")).to_be_visible()
    closed(page)
    shown(page, "weights.bin")
    expect(page.get_by_text("No preview of this type of file")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("link", name="Download")).to_be_visible()
    closed(page)
    shown(page, "long.log")
    expect(page.get_by_role("dialog")).to_contain_text("The first 256 KiB of 313 KiB")
    closed(page)


def test_nothing_that_a_job_wrote_is_run(visit: Visit, job: str) -> None:
    page = visit("ann").open(f"/jobs/{job}?tab=files", "writes-files")
    for name in ("page.html", "drawing.svg", "drawing.png"):
        shown(page, name)
        expect(page.get_by_role("region", name=f"Content of {name}")).to_have_text(FILES[name])
        assert page.locator("[role=dialog] :is(img, iframe, object, embed, script, svg[onload])").count() == 0
        closed(page)
    assert page.evaluate("window.attacked") is None


def test_a_preview_opens_and_closes_by_keyboard(visit: Visit, job: str) -> None:
    page = visit("ann").open(f"/jobs/{job}?tab=files", "writes-files")
    link = page.get_by_role("link", name="notes.txt", exact=True)
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="notes.txt")).to_be_visible()
    closed(page)
    expect(link).to_be_focused()
    # The text itself can be scrolled by keyboard.
    page.keyboard.press("Enter")
    content = page.get_by_role("region", name="Content of notes.txt")
    content.focus()
    expect(content).to_be_focused()


def test_files_of_volumes_have_the_same_preview(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        body = {"name": "papers", "type": "filesystem", "size": "1GiB"}
        volume = http.post("/volumes", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/volumes/{volume}").json()["state"] == "ready", "the volume is ready")
        content = b"deep text\n"
        headers = {"X-Checksum": checksum_of([content])}
        path = f"/volumes/{volume}/files/content?path=deep/notes.txt"
        http.put(path, content=content, headers=headers).raise_for_status()
    page = visit("ann").open(f"/volumes/{volume}?tab=files&path=deep", "papers")
    shown(page, "notes.txt")
    expect(page.get_by_role("region", name="Content of notes.txt")).to_have_text("deep text\n")
    closed(page)
    expect(page).to_have_url(re.compile("path=deep"))
