"""The operator's work of the documents 000 and 002 in the console: status of the platform, pools, groups, users,
flavors and the resource panel."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "1x4xA100-80G,1x4xL4", users=("ann", "ben", "eve")) as running:
        yield running


@pytest.fixture
def root(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as http:
        yield http


def test_the_status_page_lists_each_part_with_its_log(visit: Visit) -> None:
    page = visit().open("/cluster", "Cluster status")
    platform = page.get_by_role("table", name="Platform")
    expect(platform.get_by_role("row").filter(has_text="controller").first).to_contain_text("in order")
    cluster = page.get_by_role("table", name="Cluster local")
    expect(cluster).to_contain_text("spawner (local)")
    expect(cluster).to_contain_text("outbox local")
    expect(page.get_by_role("table", name="Workers")).to_contain_text("worker alerting")
    page.get_by_role("button", name="Log of controller").click()
    log = page.get_by_role("dialog", name="Log of controller")
    expect(log).to_be_visible()
    log.get_by_role("button", name="Close").click()
    expect(log).to_be_hidden()
    page.get_by_role("switch", name="Only what does not work").check()
    expect(page.get_by_text("Every part works")).to_be_visible()


def test_scientists_do_not_see_the_status_page(visit: Visit) -> None:
    page = visit("ann").open("/cluster")
    expect(page.get_by_text("This page is for operators")).to_be_visible()


def test_a_pool_is_created_with_its_gpus_and_several_are_deleted_at_once(visit: Visit, root: httpx.Client) -> None:
    page = visit().open("/pools", "Pools")
    page.get_by_role("button", name="Create pool").click()
    page.get_by_role("textbox", name="Name").fill("vision")
    page.get_by_role("button", name=re.compile("All 4 free of .*")).first.click()
    expect(page.get_by_role("status").filter(has_text="4 GPUs chosen")).to_be_visible()
    # A pool has one model: the other node is not offered any more.
    nodes = page.get_by_role("dialog").get_by_role("group", name="GPUs").get_by_role("group")
    expect(nodes).to_have_count(1)
    page.get_by_role("dialog").get_by_role("checkbox").first.uncheck()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="vision").first).to_contain_text("0 of 3")
    assert root.get("/pools/vision").json()["gpus_total"] == 3

    root.post("/pools", json={"name": "spare"}).raise_for_status()
    root.post("/groups", json={"name": "vision", "pool": "vision"}).raise_for_status()
    page.get_by_role("checkbox", name="Select vision").check()
    page.get_by_role("checkbox", name="Select spare").check()
    page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 pools").click()
    result = page.get_by_role("dialog", name="1 of 2 deleted")
    expect(result.get_by_role("row").filter(has_text="spare")).to_contain_text("deleted")
    expect(result.get_by_role("row").filter(has_text="vision")).to_contain_text("belongs to group vision")
    page.keyboard.press("Escape")
    assert {pool["name"] for pool in root.get("/pools").json()["items"]} == {"default", "vision"}


def test_a_group_is_offered_only_free_pools(visit: Visit, root: httpx.Client) -> None:
    root.post("/pools", json={"name": "free-one"}).raise_for_status()
    page = visit().open("/groups?new=yes", "Groups")
    page.get_by_role("combobox", name="Pool").click()
    expect(page.get_by_role("option", name="free-one")).to_be_visible()
    expect(page.get_by_role("option", name="default")).to_have_count(0)


def test_a_role_change_is_confirmed_and_several_users_are_deleted(visit: Visit, root: httpx.Client) -> None:
    page = visit().open("/users?edit=eve", "Users")
    page.get_by_role("dialog").get_by_role("combobox", name="Role").click()
    page.get_by_role("option", name="operator").click()
    page.get_by_role("button", name="Save").click()
    question = page.get_by_role("dialog", name="Make eve an operator?")
    expect(question).to_contain_text("Operators see and manage everything")
    assert root.get("/users/eve").json()["role"] == "scientist"
    question.get_by_role("button", name="Change the role").click()
    expect(page.get_by_text("eve saved")).to_be_visible()
    assert root.get("/users/eve").json()["role"] == "operator"

    page.get_by_role("checkbox", name="Select ben").check()
    page.get_by_role("checkbox", name="Select eve").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 users").click()
    expect(page.get_by_text("ben, eve: deleted")).to_be_visible()
    assert not {user["name"] for user in root.get("/users").json()["items"]} & {"ben", "eve"}


@pytest.mark.parametrize(("path", "heading"), [("/", "Overview"), ("/jobs", "Jobs"), ("/queue", "Queue")])
def test_the_resource_panel_switches_its_scope_and_its_rows(visit: Visit, path: str, heading: str) -> None:
    page = visit().open(path, heading)
    panel = page.get_by_role("region", name="Resources", exact=True)
    expect(panel.get_by_role("columnheader")).to_have_text(
        ["Kind", "Running", "Queued", "Occupied", "Total", "Free", "Gap"]
    )
    expect(panel.get_by_role("row").filter(has_text="training")).to_contain_text("8")
    panel.get_by_text("By model").click()
    expect(panel.get_by_role("row").filter(has_text="L4")).to_contain_text("4")
    panel.get_by_text("Me", exact=True).click()
    expect(panel.get_by_role("row").filter(has_text="L4")).to_contain_text("4")
    panel.get_by_text("Group default").click()
    expect(panel.get_by_role("row").filter(has_text="L4")).to_be_visible()


def test_a_flavor_carries_cpus_and_memory_per_gpu(visit: Visit, root: httpx.Client) -> None:
    page = visit().open("/flavors?new=yes", "Flavors")
    page.get_by_role("textbox", name="Name").fill("balanced")
    page.get_by_role("textbox", name="CPUs per GPU").fill("8")
    page.get_by_role("textbox", name="Memory per GPU").fill("64")
    page.get_by_role("dialog").get_by_role("button", name="New flavor").click()
    expect(page.get_by_role("row").filter(has_text="balanced")).to_contain_text("8 CPU · 64 GiB per GPU")
    flavor = root.get("/flavors/balanced").json()
    assert (flavor["cpus_per_gpu"], flavor["memory_bytes_per_gpu"]) == (8, 64 << 30)
