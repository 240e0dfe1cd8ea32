"""A directory in the console: set up in the settings, tested, and chosen on the sign-in page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.servers.corral_server import PASSWORD, CorralServer
from tests.servers.ldap_server import GROUPS, PEOPLE, SERVICE, SERVICE_PASSWORD, LdapServer, reason_to_skip

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def ldap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapServer]:
    reason = reason_to_skip()
    if reason is not None:
        pytest.skip(reason)
    directory = LdapServer(tmp_path_factory.mktemp("ldap"))
    directory.start()
    directory.add_group("ml", directory.add_person("lea", "lea-Passw0rd"))
    yield directory
    directory.stop()


def test_a_directory_is_set_up_and_people_sign_in_with_it(
    visit: Visit, browser: Browser, server: CorralServer, ldap: LdapServer
) -> None:
    page = visit().open("/settings?tab=sign-in", "Settings")
    page.get_by_role("button", name="New provider").first.click()
    form = page.get_by_role("dialog", name="New provider")
    form.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="LDAP, Active Directory").click()
    form.get_by_label("Id", exact=False).first.fill("lab")
    form.get_by_label("Title").fill("Lab account")
    form.get_by_label("Address", exact=False).first.fill("https://ldap.example.org")
    form.get_by_role("textbox", name="Service account", exact=True).fill(SERVICE)
    expect(form.get_by_text("An address that begins with ldaps://")).to_be_visible()
    form.get_by_label("Address", exact=False).first.fill(ldap.encrypted)
    form.get_by_role("textbox", name="Password of the service account").fill(SERVICE_PASSWORD)
    form.get_by_label("People are searched below").fill(PEOPLE)
    form.get_by_label("Groups are searched below").fill(GROUPS)
    form.get_by_label("Certificate of the authority").fill(ldap.ca)
    form.get_by_placeholder("ml-team=vision").fill("ml=default")
    form.get_by_placeholder("ml-team=vision").press("Enter")
    form.get_by_role("button", name="Create").click()
    made = page.get_by_role("table", name="Sign-in providers").get_by_role("row").filter(has_text="Lab account")
    made.get_by_role("button", name="Test Lab account").click()
    expect(page.get_by_role("status").filter(has_text="Lab account is in order.")).to_contain_text("people are found")
    made.get_by_role("switch").click(force=True)
    expect(page.get_by_text("People can sign in with Lab account.")).to_be_visible()
    assert SERVICE_PASSWORD not in page.content()

    person = Console(browser, server)
    page = person.open("/")
    account = page.get_by_label("Account")
    expect(account).to_have_value("lab")
    page.locator("[name=user]").fill("lea")
    page.locator("[name=password]").fill("a wrong one, certainly")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("password")
    page.locator("[name=password]").fill("lea-Passw0rd")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    person.close()

    operator = Console(browser, server)
    page = operator.open("/")
    page.get_by_label("Account").select_option("Local account")
    page.locator("[name=user]").fill("operator")
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    operator.close()
