"""Numbers that a program reports are curves on its job's page; jobs are compared side by side."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

#: Reports by the helper, and writes the first bytes of a TensorBoard event file with one scalar.
PROGRAM = """
import os, struct, sys
from corral import checkpoint

rate = float(os.environ["RATE"])
for step in range(50):
    checkpoint.log(step, loss=rate / (step + 1))

value = b"\\x0a\\x08val/loss\\x15" + struct.pack("<f", rate)
summary = b"\\x0a" + bytes([len(value)]) + value
event = b"\\x09" + struct.pack("<d", 1.7e9) + b"\\x10\\x07\\x2a" + bytes([len(summary)]) + summary
with open(os.environ["CORRAL_OUTPUT_DIR"] + "/events.out.tfevents.1.host", "wb") as file:
    file.write(struct.pack("<QI", len(event), 0) + event + struct.pack("<I", 0))
"""


@pytest.fixture(scope="module")
def jobs(server: CorralServer) -> list[str]:
    ids = []
    with server.http("ann") as http:
        for name, rate in (("gentle", "1.5"), ("steep", "4")):
            body = {"name": name, "cpus": 1, "command": ["python3", "-c", PROGRAM], "env": {"RATE": rate}}
            answer = http.post("/jobs", json=body)
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["id"])
        for job in ids:
            wait_until(
                lambda job=job: http.get(f"/jobs/{job}").json()["state"] == "completed",  # type: ignore[misc]
                f"{job} completes",
            )
        found = http.get(f"/jobs/{ids[0]}/curves").raise_for_status().json()
    assert [(curve["name"], curve["count"]) for curve in found["curves"]] == [("loss", 50), ("val/loss", 1)]
    return ids


def test_a_job_shows_the_curves_of_its_program(visit: Visit, jobs: list[str]) -> None:
    page = visit("ann").open(f"/jobs/{jobs[0]}?tab=curves", "gentle")
    expect(page.get_by_role("figure", name=f"loss by step: {jobs[0]} 0.03", exact=True)).to_be_visible()
    expect(page.get_by_role("figure", name=f"val/loss by step: {jobs[0]} 1.5", exact=True)).to_be_visible()
    page.get_by_text("Strong", exact=True).click()
    expect(page.get_by_role("figure", name=f"loss by step: {jobs[0]} 0.03", exact=True)).to_have_count(0)


def test_chosen_jobs_are_compared(visit: Visit, jobs: list[str]) -> None:
    page = visit("ann").open("/jobs", "Jobs")
    for job in jobs:
        page.get_by_role("checkbox", name=f"Select {job}", exact=True).check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Compare jobs", level=1)).to_be_visible()
    differences = page.get_by_role("table", name="What differs")
    row = differences.get_by_role("row", name="env.RATE")
    # The newest job is first in the list, and so in the comparison.
    expect(row.get_by_role("cell")).to_have_text(["4", "1.5"])
    expect(page.get_by_role("figure", name=f"loss by step: {jobs[1]} 0.08, {jobs[0]} 0.03", exact=True)).to_be_visible()


def test_jobs_of_others_show_no_curves(server: CorralServer, jobs: list[str]) -> None:
    with server.http("bob") as http:
        assert http.get(f"/jobs/{jobs[0]}/curves").status_code == 404
