"""Two clusters in one console, this machine and a real Slurm: the switch, and how each of them is."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT),
]
SLOW = 60_000


def is_running(http: httpx.Client, job: str) -> bool:
    return bool(http.get(f"/jobs/{job}").json()["state"] == "running")


@pytest.fixture(scope="module")
def server(slurm_cluster: SlurmCluster) -> Iterator[CorralServer]:
    """A job of each cluster runs, and one of the far one waits."""
    home = Path(tempfile.mkdtemp(prefix="corral-switch-", dir="/tmp"))
    home.chmod(0o755)
    settings = "local: {virtual_nodes: 2x4xA10, allow_root: true}\n"
    started = server_on(slurm_cluster, home / "home", local=True, settings=settings)
    started.start()
    with started.http() as http:
        wait_until(lambda: len(http.get("/nodes").json()["items"]) == 6, "both are observed", seconds=60)
        for name, cluster, gpus in (("far-one", "hpc", 1), ("near-one", "local", 1)):
            body = {"name": name, "command": ["sleep", "900"], "gpus": gpus, "labels": {"corral.cluster": cluster}}
            http.post("/jobs", json=body).raise_for_status()
        for name in ("far-one", "near-one"):
            wait_until(partial(is_running, http, name), name, seconds=60)
    yield started
    started.stop()
    slurm_cluster.run("scancel", "--user=root", check=False)
    shutil.rmtree(home, ignore_errors=True)


def test_the_switch_narrows_the_pages_and_is_remembered_for_the_user(visit: Visit) -> None:
    page = visit().open("/", "Overview")
    switch = page.get_by_role("combobox", name="Cluster")
    expect(switch).to_have_value("All clusters")
    expect(page.get_by_text("6 nodes · 40 GPUs")).to_be_visible()
    # By keyboard: open, the first cluster below "all", choose.
    switch.focus()
    page.keyboard.press("Enter")
    page.get_by_role("option", name="hpc").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?cluster=hpc"))
    expect(page.get_by_text("4 nodes · 32 GPUs")).to_be_visible()
    page.get_by_role("navigation").get_by_role("button", name="Fleet").click()
    page.get_by_role("link", name="Nodes").click()
    expect(page).to_have_url(re.compile(r"/nodes\?cluster=hpc"))
    nodes = page.get_by_role("table", name="Nodes")
    expect(nodes.get_by_role("link", name=re.compile("^node1"))).to_be_visible()
    expect(nodes.get_by_text("a10-001")).to_have_count(0)
    page.get_by_role("link", name="GPUs").click()
    expect(page.get_by_text("32 GPUs")).to_be_visible()
    page.get_by_role("link", name="Jobs").click()
    jobs = page.get_by_role("table", name="Jobs")
    expect(jobs.get_by_text("far-one")).to_be_visible()
    expect(jobs.get_by_text("near-one")).to_have_count(0)
    page.get_by_role("link", name="Queue", exact=False).first.click()
    running = page.get_by_role("table", name="Running now")
    expect(running.get_by_text("far-one")).to_be_visible()
    expect(running.get_by_text("near-one")).to_have_count(0)
    # Where it would change nothing it is not shown, and an address with a cluster that is gone shows all.
    page = visit().open("/volumes", "Volumes")
    expect(page.get_by_role("combobox", name="Cluster")).to_have_count(0)
    page = visit().open("/nodes?cluster=gone", "Nodes")
    expect(page.get_by_text("6 of 6 ready")).to_be_visible()


def test_a_cluster_that_falls_silent_says_since_when_in_its_engines_words(
    visit: Visit, slurm_cluster: SlurmCluster
) -> None:
    page = visit().open("/", "Overview")
    clusters = page.get_by_role("region", name="Clusters")
    far = clusters.get_by_role("button", name=re.compile("^hpc"))
    expect(far).to_contain_text("answers since")
    expect(far).to_contain_text("4 of 4 nodes ready · 31 of 32 GPUs free")
    slurm_cluster.kill_controller()
    try:
        expect(far).to_contain_text("does not answer since", timeout=SLOW)
        expect(clusters.get_by_role("alert")).to_contain_text("Slurm: ")
        expect(clusters.get_by_role("button", name=re.compile("^local"))).to_contain_text("answers since")
    finally:
        slurm_cluster.start_controller()
    expect(far).to_contain_text("answers since", timeout=SLOW)
    far.press("Enter")
    expect(page).to_have_url(re.compile(r"\?cluster=hpc"))
    expect(far).to_have_attribute("aria-pressed", "true")


def test_on_a_phone_the_switch_is_in_the_navigation(visit: Visit) -> None:
    page = visit(phone=True).open("/nodes", "Nodes")
    page.get_by_role("button", name="Open the navigation").click()
    switch = page.get_by_role("navigation").get_by_role("combobox", name="Cluster")
    switch.click()
    page.get_by_role("option", name="local").click()
    expect(page).to_have_url(re.compile(r"/nodes\?cluster=local"))
    expect(page.get_by_text("2 of 2 ready")).to_be_visible()
