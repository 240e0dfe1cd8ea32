"""Settings in the console: one's own account, keys and tokens for everyone, sign-in and the server for operators."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit, new_key
from tests.e2e.console import BUILT, NOT_BUILT
from tests.servers.corral_server import CorralServer, free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

OWN_TABS = ["Profile", "SSH keys", "Tokens", "Secrets", "Inbox", "My quota"]


def row(page: Page, table: str, text: str) -> Locator:
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


def confirm(page: Page, action: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=action, exact=True).click()


def test_a_scientist_sees_only_what_is_theirs(visit: Visit) -> None:
    console = visit("ann")
    page = console.open("/settings", "Settings")
    expect(page.get_by_role("tab")).to_have_text(OWN_TABS)
    console.open("/settings?tab=sign-in", "Settings")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Profile")
    expect(page.get_by_text("Sign-in providers")).to_have_count(0)


def test_a_profile_is_changed_and_a_wrong_address_refused(visit: Visit, server: CorralServer) -> None:
    page = visit("bob").open("/settings", "Settings")
    page.get_by_label("Display name").fill("Bob the Builder")
    page.get_by_label("E-mail").fill("nowhere")
    expect(page.get_by_text("An address such as")).to_be_visible()
    page.get_by_label("E-mail").fill("bob@example.org")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Profile saved.")).to_be_visible()
    with server.http("bob") as http:
        me = http.get("/me").json()
    assert (me["display_name"], me["email"]) == ("Bob the Builder", "bob@example.org")


def test_a_new_password_keeps_the_session(visit: Visit, server: CorralServer) -> None:
    console = visit("carl")
    page = console.open("/settings", "Settings")
    page.get_by_role("textbox", name="Present password").fill("not this one")
    page.get_by_role("textbox", name="New password", exact=True).fill("a-new-password-of-carl")
    page.get_by_role("textbox", name="New password again").fill("a-new-password")
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("The two are not the same.")).to_be_visible()
    page.get_by_role("textbox", name="New password again").fill("a-new-password-of-carl")
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("is not the present password")).to_be_visible()
    page.get_by_role("textbox", name="Present password").fill("password-of-carl")
    page.get_by_role("checkbox", name="Also revoke all my API tokens").check()
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("Your password is changed. You stay signed in here.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Present password")).to_have_value("")
    # The session goes on, for changes too.
    page.get_by_label("Display name").fill("Carl")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Profile saved.")).to_be_visible()
    with server.http("carl") as program:
        assert program.get("/me").status_code == 401, "the token that a program had is revoked"
    login = {"user": "carl", "password": "a-new-password-of-carl"}
    assert httpx.post(f"{server.url}/api/v1/auth/login", json=login).is_success


def test_a_token_is_shown_once_works_and_is_revoked(visit: Visit, server: CorralServer) -> None:
    console = visit("ann")
    page = console.open("/settings?tab=tokens", "Settings")
    page.get_by_role("button", name="New token").click()
    form = page.get_by_role("dialog", name="New token")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_text("Required")).to_be_visible()
    form.get_by_label("Name").fill("nightly-jobs")
    form.get_by_role("radio", name="look", exact=True).check()
    form.get_by_role("button", name="Create").click()
    once = page.get_by_role("status").filter(has_text="nightly-jobs")
    token = once.locator("code").first.inner_text()
    bearer = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{server.url}/api/v1/me", headers=bearer).json()["name"] == "ann"
    refused = httpx.post(f"{server.url}/api/v1/jobs", headers=bearer, json={"name": "nope", "command": ["true"]})
    assert refused.status_code == 403
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
    assert token not in kept

    page.reload()
    mine = row(page, "Tokens", "nightly-jobs")
    expect(mine).to_contain_text("look")
    expect(mine).not_to_contain_text("never")
    assert token not in page.content()
    mine.get_by_role("button", name="Revoke nightly-jobs").click()
    confirm(page, "Revoke the token")
    expect(mine).to_have_count(0)
    expect(page.get_by_text("Token nightly-jobs is revoked.")).to_be_visible()
    assert httpx.get(f"{server.url}/api/v1/me", headers=bearer).status_code == 401


def test_an_ssh_key_is_refused_added_and_removed(visit: Visit, ssh_programs: None, tmp_path: Path) -> None:
    private = new_key(tmp_path, "id_ed25519")
    public = private.with_suffix(".pub").read_text()
    page = visit("ann").open("/settings?tab=keys", "Settings")
    page.get_by_role("button", name="Add a key").click()
    form = page.get_by_role("dialog", name="Add a key")
    form.get_by_label("Public key").fill(private.read_text())
    expect(form.get_by_text("This is a private key")).to_be_visible()
    form.get_by_label("Public key").fill("ssh-ed25519 AAAAnonsense me@here")
    form.get_by_label("Name").fill("laptop")
    form.get_by_role("button", name="Add a key").click()
    expect(form.get_by_label("Public key")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Public key").fill(public)
    form.get_by_role("button", name="Add a key").click()
    mine = row(page, "SSH keys", "laptop")
    expect(mine).to_contain_text("SHA256:")
    mine.get_by_role("button", name="Remove the key: laptop").click()
    confirm(page, "Remove the key")
    expect(page.get_by_text("No key yet")).to_be_visible()


def test_quotas_show_what_is_held(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        limits = {"training": {"gpus": 4, "cpus": 16, "memory_bytes": 2**36}}
        http.put("/users/ann/quota", json=limits).raise_for_status()
    with server.http("ann") as http:
        job = http.post("/jobs", json={"name": "held-by-ann", "command": ["sleep", "600"], "gpus": 1}).json()["id"]
    page = visit("ann").open("/settings?tab=quota", "Settings")
    expect(row(page, "By kind of job", "training")).to_contain_text("1 / 4")
    with server.http("ann") as http:
        http.post(f"/jobs/{job}/stop").raise_for_status()
    expect(row(page, "By kind of job", "training")).to_contain_text("0 / 4")


def test_a_provider_with_a_wrong_address_shows_why(visit: Visit, server: CorralServer) -> None:
    secret = "a-client-secret-to-keep"
    page = visit().open("/settings?tab=sign-in", "Settings")
    page.get_by_role("button", name="New provider").click()
    form = page.get_by_role("dialog", name="New provider")
    form.get_by_label("Id", exact=False).first.fill("company")
    form.get_by_label("Title").fill("Our Company")
    form.get_by_label("Address").fill("nowhere")
    form.get_by_label("Client id").fill("corral")
    expect(form.get_by_text("An address that begins with https://")).to_be_visible()
    form.get_by_label("Address").fill(f"http://127.0.0.1:{free_port()}")
    form.get_by_role("textbox", name="Client secret").fill(secret)
    form.get_by_role("button", name="Create").click()
    made = row(page, "Sign-in providers", "Our Company")
    made.get_by_role("button", name="Test Our Company").click()
    result = page.get_by_role("status").filter(has_text="Our Company would not work.")
    expect(result).to_contain_text("cannot be reached")
    expect(result).to_contain_text("Check the address, DNS, the firewall and certificates.")

    made.get_by_role("button", name="Our Company", exact=False).first.click()
    form = page.get_by_role("dialog", name="Provider company")
    expect(form.get_by_role("textbox", name="Client secret")).to_have_value("")
    expect(form).to_contain_text("/api/v1/auth/company/callback")
    assert secret not in page.content()
    form.get_by_label("Title").fill("Our Firm")
    form.get_by_role("button", name="Save").click()
    renamed = row(page, "Sign-in providers", "Our Firm")
    renamed.get_by_role("switch").click(force=True)
    expect(page.get_by_text("People can sign in with Our Firm.")).to_be_visible()
    with server.http() as http:
        (provider,) = http.get("/auth/providers/all").json()["items"]
    assert (provider["title"], provider["enabled"], provider["client_secret_set"]) == ("Our Firm", True, True)
    renamed.get_by_role("button").first.click()
    page.get_by_role("dialog", name="Provider company").get_by_role("button", name="Delete").click()
    confirm(page, "Delete the provider")
    expect(page.get_by_text("Only local accounts")).to_be_visible()


def test_about_shows_the_state_of_the_server(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        about = http.get("/about").json()
    page = visit().open("/settings?tab=about", "Settings")
    expect(page.get_by_role("group", name="Version")).to_contain_text(about["version"])
    for part in about["parts"]:
        expect(row(page, "Parts", part["name"])).to_contain_text("healthy")
    # Servers of tests give jobs their own account.
    isolation = page.get_by_role("region", name="Isolation of jobs")
    expect(isolation.get_by_role("note")).to_contain_text("Single user")
    expect(isolation).to_contain_text(about["isolation"]["detail"])
    shares = page.get_by_role("region", name="Shares of GPUs")
    expect(shares).to_contain_text("Not enforced")
    expect(shares).to_contain_text(about["gpu_shares"]["detail"])
    page.get_by_label("Licence token").fill("no licence at all")
    page.get_by_role("button", name="Set the licence").click()
    expect(page.get_by_text(re.compile("a licence token begins with"))).to_be_visible()


def test_the_configuration_marks_what_is_not_as_it_came(visit: Visit, server: CorralServer) -> None:
    with server.http() as http:
        settings = http.get("/settings").json()
    changed = {one["key"] for section in settings["sections"] for one in section["settings"] if not one["is_default"]}
    page = visit().open("/settings?tab=configuration", "Settings")
    expect(row(page, "monitoring", "interval_seconds")).to_contain_text("default")
    page.get_by_role("switch", name="Only what differs from the defaults").click(force=True)
    expect(page).to_have_url(re.compile("changed=1"))
    for key in changed:
        expect(page.get_by_role("table").get_by_text(key, exact=True).first).to_be_visible()
    expect(page.get_by_role("table").get_by_text("interval_seconds", exact=True)).to_have_count(0)


def test_language_and_theme_are_chosen_here_too(visit: Visit) -> None:
    page = visit("ann").open("/settings", "Settings")
    page.get_by_role("radiogroup").get_by_text("Dark").click()
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    page.get_by_role("combobox", name="Language").click()
    page.get_by_role("option", name="简体中文").click()
    expect(page.get_by_role("heading", name="设置", level=1)).to_be_visible()
