"""Operators' pages about people: users, groups, permission groups, quotas, and the whole story of a beginning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.e2e.dragging import carry_right, drag
from tests.integration.api import api_server
from tests.servers.corral_server import PASSWORD, CorralServer
from tests.servers.forge_server import API_TOKEN, CLIENT_ID, CLIENT_SECRET, ForgeServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

GIB = 2**30


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "1x4xA100-80G", users=("ann", "bob", "carl")) as running:
        yield running


@pytest.fixture
def operator(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as http:
        yield http


def sign_in(page: Page, user: str, password: str) -> None:
    """Signs in with the form."""
    page.locator("[name=user]").fill(user)
    page.locator("[name=password]").fill(password)
    page.get_by_role("button", name="Sign in").click()


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def choose(page: Page, label: str, option: str) -> None:
    """In one of the form's selects."""
    page.get_by_role("dialog").get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def user(operator: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = operator.get(f"/users/{name}").raise_for_status().json()
    return found


def test_the_first_operator_makes_a_user_a_pool_a_group_and_a_quota(
    browser: Browser, server: CorralServer, operator: httpx.Client
) -> None:
    console = Console(browser, server)
    page = console.open("/users")
    sign_in(page, "operator", PASSWORD)
    expect(page.get_by_role("heading", name="Users", level=1)).to_be_visible()

    # A user, with a password that is shown once.
    page.get_by_role("button", name="Create user").click()
    name = page.get_by_role("textbox", name="Name", exact=True)
    name.fill("Eve Adams")
    expect(page.get_by_text("begins with a letter or _")).to_be_visible()
    name.fill("eve")
    page.get_by_role("textbox", name="Full name").fill("Eve Adams")
    page.get_by_role("button", name="Create", exact=True).click()
    once = page.get_by_role("dialog", name="One-time password of eve")
    password = once.locator("code").inner_text()
    once.get_by_role("button", name="I have copied it").click()
    expect(once).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="Eve Adams")).to_contain_text("one-time password")

    # Eve signs in in her own browser and replaces it.
    other = Console(browser, server, "eve")
    hers = other.open("/")
    sign_in(hers, "eve", password)
    hers.locator("[name=old]").fill(password)
    hers.locator("[name=new]").fill("a-password-of-my-own")
    hers.locator("[name=again]").fill("a-password-of-my-own")
    hers.get_by_role("button", name="Change and go on").click()
    expect(hers.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    other.close()

    # A pool, with two GPUs by mouse.
    console.open("/pools", "Pools")
    page.get_by_role("button", name="Create pool").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("vision")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("button", name="vision", exact=True)).to_be_visible()
    page.get_by_text("Move GPUs", exact=True).click()
    tiles = column(page, "default").get_by_role("button", name=re.compile("^GPU .* free"))
    tiles.nth(0).click()
    tiles.nth(1).click(modifiers=["Shift"])
    drag(page, tiles.nth(0), column(page, "vision"))
    page.get_by_role("dialog", name="Move 2 GPUs to vision?").get_by_role("button", name="Move", exact=True).click()
    expect(column(page, "vision")).to_contain_text("2 GPUs, 2 free")

    # A group that has it, and Eve in the group by keyboard.
    console.open("/groups", "Groups")
    page.get_by_role("button", name="Create group").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("vision-team")
    choose(page, "Pool", "vision")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("button", name="vision-team", exact=True)).to_be_visible()
    console.open("/groups?view=board", "Groups")
    column(page, "default").get_by_role("button", name=re.compile("^eve ")).focus()
    page.keyboard.press("Enter")
    expect(column(page, "vision-team")).to_contain_text("Drop here")
    carry_right(page, column(page, "vision-team"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Move 1 user to vision-team?")
    expect(dialog).to_contain_text("New jobs go to pool vision")
    expect(dialog).to_contain_text("Running jobs continue")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(column(page, "vision-team").get_by_role("button", name=re.compile("^eve "))).to_be_visible()

    # A quota in place.
    console.open("/quotas?q=eve", "Quotas")
    page.get_by_role("button", name=re.compile("^GPUs of eve for training")).click()
    field = page.get_by_role("textbox", name="GPUs of eve for training")
    field.fill("2")
    field.press("Enter")
    expect(page.get_by_role("button", name="GPUs of eve for training: 0 / 2. Edit")).to_be_visible()
    expect(page.get_by_text("Quota of eve saved")).to_be_visible()
    console.close()

    assert user(operator, "eve")["group"] == "vision-team"
    assert user(operator, "eve")["role"] == "scientist"
    assert not user(operator, "eve")["must_change_password"]
    pool = operator.get("/pools/vision").json()
    assert (pool["group"], pool["gpus_total"], pool["queues"]) == ("vision-team", 2, ["vision"])
    assert operator.get("/groups/vision-team").json()["users"] == ["eve"]
    quota = operator.get("/users/eve/quota").json()["kinds"]
    assert quota["training"]["gpus"]["limit"] == 2
    assert quota["training"]["cpus"]["limit"] is None
    assert quota["distributed"]["gpus"]["limit"] is None


def test_forbidden_actions_are_explained_before_the_click(
    visit: Visit, server: CorralServer, operator: httpx.Client
) -> None:
    with server.http("bob") as bob:
        job = {"name": "keeps-bob-busy", "command": ["sleep", "600"], "gpus": 1}
        job_id = bob.post("/jobs", json=job).raise_for_status().json()["id"]
    operator.post("/groups", json={"name": "crew"}).raise_for_status()
    operator.patch("/groups/default", json={"remove_users": ["carl"]}).raise_for_status()
    operator.patch("/groups/crew", json={"add_users": ["carl"]}).raise_for_status()
    page = visit().open("/users", "Users")

    def delete_item(name: str) -> Locator:
        page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
        return page.get_by_role("menuitem", name=re.compile("^Delete"))

    expect(delete_item("operator")).to_contain_text("the last operator who can sign in")
    expect(page.get_by_role("menuitem", name=re.compile("^Disable"))).to_be_disabled()
    expect(page.get_by_role("menuitem", name=re.compile("^Reset"))).to_contain_text("your own account")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(delete_item("bob")).to_contain_text("1 active job: stop it first")
    expect(page.get_by_role("menuitem", name=re.compile("^Delete"))).to_be_disabled()

    operator.patch("/users/ann", json={"role": "operator"}).raise_for_status()
    page = visit().open("/users", "Users")
    expect(delete_item("operator")).to_contain_text("your own account: another operator must do that")
    operator.patch("/users/ann", json={"role": "scientist"}).raise_for_status()

    page.goto("/groups")
    page.get_by_role("button", name="Actions for crew").click()
    expect(page.get_by_role("menuitem", name=re.compile("^Delete"))).to_contain_text("It has 1 user: move that one out")
    page.goto("/permission-groups")
    page.get_by_role("button", name="Actions for everyone").click()
    expect(page.get_by_role("menuitem", name=re.compile("^Delete"))).to_contain_text("new users belong to it")
    operator.post(f"/jobs/{job_id}/stop")


def test_the_servers_refusal_is_shown_in_words(visit: Visit, operator: httpx.Client) -> None:
    operator.post("/pools", json={"name": "wanted"}).raise_for_status()
    page = visit().open("/groups", "Groups")
    page.get_by_role("button", name="Create group").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("too-late")
    choose(page, "Pool", "wanted")
    # Another operator assigns the pool while the form is open.
    operator.post("/groups", json={"name": "faster", "pool": "wanted"}).raise_for_status()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("pool wanted belongs to group faster: detach it there first")
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("too-late")
    assert operator.get("/groups/too-late").status_code == 404


def test_accounts_are_reset_disabled_and_deleted(visit: Visit, server: CorralServer, operator: httpx.Client) -> None:
    operator.post("/users", json={"name": "temp", "password": "first-of-temp"}).raise_for_status()
    page = visit().open("/users?q=temp", "Users")
    page.get_by_role("button", name="Actions for temp").click()
    page.get_by_role("menuitem", name="Reset password").click()
    page.get_by_role("dialog", name="Reset the password of temp?").get_by_role("button", name="Reset the").click()
    once = page.get_by_role("dialog", name="One-time password of temp")
    password = once.locator("code").inner_text()
    once.get_by_role("button", name="I have copied it").click()
    login = {"user": "temp", "password": password}
    answer = httpx.post(f"{server.url}/api/v1/auth/login", json=login)
    assert answer.status_code == 200
    assert answer.json()["must_change_password"]
    page.get_by_role("button", name="Actions for temp").click()
    page.get_by_role("menuitem", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable the account").click()
    expect(page.get_by_role("row").filter(has_text="temp")).to_contain_text("disabled")
    page.get_by_role("button", name="Actions for temp").click()
    page.get_by_role("menuitem", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete temp?")
    expect(question).to_contain_text("quota, SSH keys, tokens and images are deleted permanently")
    question.get_by_role("button", name="Delete 1 user").click()
    expect(page.get_by_text("No user matches")).to_be_visible()
    expect(page.get_by_text("temp: deleted")).to_be_visible()
    assert operator.get("/users/temp").status_code == 404


def test_a_user_at_a_glance_and_many_at_once(visit: Visit, operator: httpx.Client) -> None:
    operator.put("/users/ann/quota", json={"training": {"gpus": 3}}).raise_for_status()
    operator.post("/groups", json={"name": "speech"}).raise_for_status()
    page = visit().open("/users?open=ann", "Users")
    drawer = page.get_by_role("dialog", name="ann")
    expect(drawer).to_contain_text("training: GPUs")
    expect(drawer).to_contain_text("0 / 3")
    expect(drawer.get_by_role("link", name="Show their jobs")).to_have_attribute("href", "/jobs?user=ann")
    expect(drawer.get_by_role("table", name="Recent events")).to_contain_text("user.created")
    drawer.get_by_role("button", name="Close").click()
    page.get_by_role("textbox", name="Search name or address").fill("ann")
    expect(page).to_have_url(re.compile("q=ann"))
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("checkbox", name="Select ann").check()
    page.get_by_role("button", name="Move to group").click()
    page.get_by_role("menuitem", name="speech").click()
    dialog = page.get_by_role("dialog", name="Move 1 user to speech?")
    expect(dialog).to_contain_text("Without a pool, new jobs wait")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="ann")).to_contain_text("speech")
    expect(page.get_by_text("1 user moved to speech")).to_be_visible()
    assert user(operator, "ann")["group"] == "speech"


def test_people_of_a_provider_are_on_boarded(visit: Visit, operator: httpx.Client) -> None:
    console = visit()
    page = console.open("/users?new=people", "Users")
    expect(page.get_by_role("dialog")).to_contain_text("There is no sign-in provider yet")
    expect(page.get_by_role("button", name="On-board 0")).to_be_disabled()
    forge = ForgeServer()
    try:
        body = {"id": "forge", "kind": "github", "issuer": forge.url, "client_id": CLIENT_ID, "organisation": "lab"}
        secrets = {"client_secret": CLIENT_SECRET, "api_token": API_TOKEN, "enabled": True}
        operator.post("/auth/providers", json={**body, **secrets}).raise_for_status()
        operator.post("/permission-groups", json={"name": "guests", "functions": ["train"]}).raise_for_status()
        console.open("/users?new=people", "Users")
        page.get_by_role("button", name="Ask the provider now").click()
        page.get_by_role("checkbox", name="Select Ann-Lee").check()
        choose(page, "Permission group", "guests")
        page.get_by_role("button", name="On-board 1").click()
        expect(page.get_by_text("On-boarded: ann-lee")).to_be_visible()
        row = page.get_by_role("row").filter(has_text="ann-lee")
        expect(row).to_contain_text("guests")
        expect(row).to_contain_text("forge")
    finally:
        forge.close()
    made = user(operator, "ann-lee")
    assert (made["provider"], made["permission_group"], made["group"]) == ("forge", "guests", "default")


def test_permission_groups_are_made_and_users_assigned(
    visit: Visit, server: CorralServer, operator: httpx.Client
) -> None:
    page = visit().open("/permission-groups", "Permission groups")
    page.get_by_role("button", name="Create permission group").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("notebooks-only")
    page.get_by_role("checkbox", name="Workbenches").check()
    expect(page.get_by_role("dialog")).to_contain_text("See the jobs of other users, with their logs")
    page.get_by_role("button", name="Create", exact=True).click()
    row = page.get_by_role("row").filter(has_text="notebooks-only")
    expect(row).to_contain_text("Workbenches")
    row.get_by_role("button", name="Actions for notebooks-only").click()
    page.get_by_role("menuitem", name="Assign users").click()
    page.get_by_role("combobox", name="Users").click()
    page.get_by_role("option", name="carl (in everyone)").click()
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Assign users").click()
    expect(row).to_contain_text("carl")
    with server.http("carl") as carl:
        assert carl.get("/me").json()["functions"] == ["workbench"]
        refused = carl.post("/jobs", json={"name": "not-allowed", "command": ["true"]})
        assert refused.status_code == 403
    row.get_by_role("button", name="Actions for notebooks-only").click()
    expect(page.get_by_role("menuitem", name=re.compile("^Delete"))).to_contain_text("It has 1 user")
    operator.post("/permission-groups/everyone/users", json={"users": ["carl"]}).raise_for_status()


def test_a_quota_that_is_refused_is_reported_and_taken_back(visit: Visit, operator: httpx.Client) -> None:
    operator.put("/users/bob/quota", json={"training": {"gpus": 4}}).raise_for_status()
    page = visit().open("/quotas?q=bob", "Quotas")
    cell = page.get_by_role("button", name=re.compile("^GPUs of bob for training"))
    cell.click()
    field = page.get_by_role("textbox", name="GPUs of bob for training")
    field.fill("-1")
    expect(page.get_by_text("A number from 0, or nothing for no limit")).to_be_visible()
    field.fill("9000000")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("1000000")
    expect(cell).to_have_accessible_name(re.compile("/ 4. Edit"))
    cell.click()
    field.fill("")
    field.press("Enter")
    expect(cell).to_have_accessible_name(re.compile("/ unlimited. Edit"))
    expect(page.get_by_text("Quota of bob saved")).to_be_visible()
    assert operator.get("/users/bob/quota").json()["kinds"]["training"]["gpus"]["limit"] is None


def test_quotas_are_set_for_many_users_at_once(visit: Visit, operator: httpx.Client) -> None:
    operator.put("/users/bob/quota", json={"workbench": {"gpus": 7}}).raise_for_status()
    page = visit().open("/quotas?of=memory_bytes", "Quotas")
    expect(page.get_by_role("region", name="Limits for all users")).to_contain_text("GPUs per user")
    for name in ("bob", "carl"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    page.get_by_role("button", name="Set for 2 chosen").click()
    drawer = page.get_by_role("dialog")
    for kind in ("distributed", "preset", "workbench"):
        drawer.get_by_role("checkbox", name=kind).uncheck()
    drawer.get_by_role("checkbox", name="Change Memory (GiB)").check()
    drawer.get_by_role("textbox", name="New limit: Memory (GiB)").fill("64")
    drawer.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Memory of carl for training: 0 B / 64 GiB. Edit")).to_be_visible()
    for name in ("bob", "carl"):
        kinds = operator.get(f"/users/{name}/quota").json()["kinds"]
        assert kinds["training"]["memory_bytes"]["limit"] == 64 * GIB
    assert kinds["distributed"]["memory_bytes"]["limit"] is None
    assert operator.get("/users/bob/quota").json()["kinds"]["workbench"]["gpus"]["limit"] == 7
