"""Signing in with a real directory (OpenLDAP), by command line and API: from its set-up to people who have left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import API, anonymous, problem
from tests.integration.cli_harness import Person, cli_server, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.ldap_server import BASE, GROUPS, PEOPLE, SERVICE, SERVICE_PASSWORD, LdapServer, reason_to_skip

pytestmark = pytest.mark.slow

ANN, BOB = "ann-Passw0rd-31", "bob-Passw0rd-32"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("directory"), "--virtual-gpus", "2xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ldap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapServer]:
    reason = reason_to_skip()
    if reason is not None:
        pytest.skip(reason)
    directory = LdapServer(tmp_path_factory.mktemp("ldap"))
    directory.start()
    ann, bob = directory.add_person("ann", ANN), directory.add_person("bob", BOB)
    directory.add_group("ml", ann)
    directory.add_group("admins", bob)
    yield directory
    directory.stop()


@pytest.fixture(scope="module")
def ca_file(ldap: LdapServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    path.write_text(ldap.ca)
    return path


@pytest.fixture(scope="module")
def lab(operator: Person, ldap: LdapServer, ca_file: Path) -> str:
    """The directory as it is set up at the command line; its id."""
    operator.ok("group", "create", "vision")
    made = operator.run(
        *("provider", "add-ldap", "lab", "--address", ldap.encrypted, "--base", PEOPLE, "--bind-dn", SERVICE),
        *("--bind-password-stdin", "--group-base", GROUPS, "--group-rule", "ml=vision", "--title", "Lab account"),
        *("--group-rule", f"CN=Admins, {GROUPS}=@operator", "--ca-file", str(ca_file)),
        stdin=SERVICE_PASSWORD,
        code=0,
    )
    assert made.out == "Added directory lab (disabled).\n"
    report = operator.ok("provider", "test", "lab")
    assert "fail" not in report
    assert "warn" not in report
    assert operator.ok("provider", "enable", "lab") == "lab: enabled\n"
    return "lab"


def someone(server: CorralServer, home: Path) -> Person:
    home.mkdir(parents=True, exist_ok=True)
    return Person(server=server.url, home=home)


def signed_in(server: CorralServer, login: str, password: str, **more: Any) -> httpx.Response:
    body = {"user": login, "password": password, "provider": "lab", "token_name": "t", **more}
    with anonymous(server) as http:
        return http.post(f"{API}/auth/login", json=body)


def me(server: CorralServer, token: str) -> httpx.Response:
    return httpx.get(f"{server.url}{API}/me", headers={"Authorization": f"Bearer {token}"})


def test_people_of_the_directory_sign_in_at_the_command_line(
    server: CorralServer, operator: Person, lab: str, tmp_path: Path
) -> None:
    ann = someone(server, tmp_path / "ann")
    said = ann.ok("login", "--provider", lab, "--user", "Ann", "--password-stdin", stdin=ANN)
    assert said == f"Signed in to {server.url} as ann (scientist).\n"
    user = operator.read("user", "show", "ann")
    assert (user["group"], user["role"], user["provider"], user["email"]) == (
        "vision",
        "scientist",
        "lab",
        "ann@lab.org",
    )
    bob = someone(server, tmp_path / "bob")
    assert "(operator)" in bob.ok("login", "--provider", lab, "--user", "bob", "--password-stdin", stdin=BOB)
    refused = someone(server, tmp_path / "eve")
    wrong = refused.run("login", "--provider", lab, "--user", "ann", "--password-stdin", stdin=BOB, code=3)
    assert "The user name or the password is wrong" in wrong.err
    local = refused.run("login", "--user", "ann", "--password-stdin", stdin=ANN, code=3)
    assert "The user name or the password is wrong" in local.err


def test_the_sign_in_page_offers_the_directory(server: CorralServer, lab: str) -> None:
    with anonymous(server) as http:
        shown = {item["id"]: item for item in http.get(f"{API}/auth/providers").json()["items"]}
        assert (shown[lab]["kind"], shown[lab]["title"]) == ("ldap", "Lab account")
        assert problem(http.get(f"{API}/auth/{lab}/login"), 404)["status"] == 404
        own = {"Origin": server.url}
        answer = http.post(f"{API}/auth/login", json={"user": "ann", "password": ANN, "provider": lab}, headers=own)
        assert answer.status_code == 200, answer.text
        assert "corral_session" in str(answer.headers["set-cookie"])
        assert http.get(f"{API}/me").json()["provider"] == lab


@pytest.mark.parametrize("login", ["missing", "*", "ann*", "ann)(uid=*", "ann,ou=x", "ａｎｎ"])
def test_wrong_logins_and_wrong_passwords_look_alike(server: CorralServer, lab: str, login: str) -> None:
    for user, password in ((login, ANN), ("ann", BOB)):
        found = problem(signed_in(server, user, password), 401)
        assert (found["type"], found["detail"]) == (
            "/problems/wrong-password",
            "The user name or the password is wrong.",
        )
        assert signed_in(server, "ann", ANN).status_code == 200, "the right one resets the count"


def test_an_empty_password_never_signs_in(server: CorralServer, lab: str) -> None:
    assert signed_in(server, "ann", "").status_code in (401, 422)
    assert signed_in(server, "ann", "\0").status_code in (401, 422)


def test_wrong_passwords_are_slowed_down_whatever_the_capitals(server: CorralServer, lab: str) -> None:
    logins = ["mia", "MIA", "Mia", "miA", "mIa", "mia", "MIa"]
    answers = [signed_in(server, login, f"wrong-{number}-Passw0rd") for number, login in enumerate(logins)]
    assert [answer.status_code for answer in answers[:5]] == [401] * 5
    assert 429 in [answer.status_code for answer in answers[5:]]
    slowed = next(answer for answer in answers if answer.status_code == 429)
    assert int(slowed.headers["retry-after"]) >= 1


def test_failures_and_settings_are_in_the_audit_log_and_secrets_nowhere(
    server: CorralServer, operator: Person, lab: str
) -> None:
    signed_in(server, "ann", "wrong-Passw0rd")
    with server.http() as http:
        wait_until(lambda: "user.sign-in-failed" in http.get("/events", params={"subject": "ann"}).text, "the line")
        events = http.get("/events", params={"limit": 500}).json()["items"]
        failed = next(item for item in events if item["action"] == "user.sign-in-failed" and item["subject"] == "ann")
        assert failed["detail"]["provider"] == lab
        made = next(item for item in events if item["action"] == "provider.created")
        assert made["detail"]["directory"]["base"] == PEOPLE
        shown = http.get("/auth/providers/all").text
        assert '"client_secret_set":true' in shown
        log = http.get("/events", params={"limit": 500}).text
    for text in (shown, log, server.log()):
        assert SERVICE_PASSWORD not in text
        assert ANN not in text
    for file in server.home.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert SERVICE_PASSWORD.encode() not in content, file
            assert ANN.encode() not in content, file


def test_the_stored_password_goes_to_no_new_address(operator: Person, lab: str, ldap: LdapServer) -> None:
    edit = ("provider", "edit-ldap", lab)
    for change in (
        ("--address", "ldaps://ldap.evil.example"),
        ("--address", ldap.encrypted, "--address", "ldaps://ldap.evil.example"),
        ("--no-starttls",),
        ("--allow-plain",),
    ):
        assert "give client_secret again" in operator.run(*edit, *change, code=2).err
    plain = ("--address", "ldap://ldap.example.org", "--no-starttls", "--bind-password-stdin")
    assert "unencrypted" in operator.run(*edit, *plain, stdin="x", code=2).err
    assert "no filter" in operator.run(*edit, "--user-filter", "(uid=*", code=2).err
    assert "no name in a directory" in operator.run(*edit, "--base", "people", code=2).err
    assert operator.ok("provider", "edit-ldap", lab, "--refresh-minutes", "30") == "lab: enabled\n"


def test_people_are_listed_and_on_boarded(operator: Person, lab: str, ldap: LdapServer, server: CorralServer) -> None:
    ldap.add_person("cleo", "cleo-Passw0rd")
    known = problem(signed_in(server, "cleo", "cleo-Passw0rd"), 403)
    assert known["type"] == "/problems/not-on-boarded"
    assert "cleo" in operator.ok("provider", "people", lab, "--refresh")
    assert operator.ok("provider", "onboard", lab, "cleo") == "On-boarded cleo (scientist).\n"
    assert signed_in(server, "cleo", "cleo-Passw0rd").status_code == 200


def test_people_who_leave_the_directory_lose_sessions_and_tokens(
    server: CorralServer, operator: Person, lab: str, ldap: LdapServer
) -> None:
    """Removed, moved to another group, and back again; an operator's own decision is not undone."""
    name = ldap.add_person("dora", "dora-Passw0rd")
    ldap.change(f"dn: cn=admins,{GROUPS}\nchangetype: modify\nadd: member\nmember: {name}\n")
    token = signed_in(server, "dora", "dora-Passw0rd").json()["token"]
    assert me(server, token).json()["role"] == "operator"

    ldap.change(f"dn: cn=admins,{GROUPS}\nchangetype: modify\ndelete: member\nmember: {name}\n")
    operator.ok("provider", "people", lab, "--refresh")
    assert me(server, token).json()["role"] == "scientist"

    ldap.delete(name)
    operator.ok("provider", "people", lab, "--refresh")
    assert me(server, token).status_code == 401
    assert operator.read("user", "show", "dora")["disabled"] is True
    with server.http() as http:
        actions = [item["action"] for item in http.get("/events", params={"subject": "dora"}).json()["items"]]
    assert "user.left-directory" in actions
    assert me(server, server.token()).status_code == 200


def test_people_who_are_back_sign_in_again_unless_an_operator_has_disabled_them(
    server: CorralServer, operator: Person, lab: str, ldap: LdapServer
) -> None:
    name = ldap.add_person("emil", "emil-Passw0rd")
    operator.ok("provider", "edit", lab, "--allow", "emil")
    assert signed_in(server, "emil", "emil-Passw0rd").status_code == 200
    expired = f"dn: {name}\nchangetype: modify\nadd: pwdAccountLockedTime\npwdAccountLockedTime: 000001010000Z\n"
    unlocked = f"dn: {name}\nchangetype: modify\ndelete: pwdAccountLockedTime\n"
    ldap.change(expired)
    operator.ok("provider", "people", lab, "--refresh")
    assert operator.read("user", "show", "emil")["disabled"] is True
    ldap.change(unlocked)
    assert signed_in(server, "emil", "emil-Passw0rd").status_code == 200
    assert operator.read("user", "show", "emil")["disabled"] is False

    ldap.change(expired)
    operator.ok("provider", "people", lab, "--refresh")
    with server.http() as http:
        http.patch("/users/emil", json={"disabled": False}).raise_for_status()
        http.patch("/users/emil", json={"disabled": True}).raise_for_status()
    ldap.change(unlocked)
    assert problem(signed_in(server, "emil", "emil-Passw0rd"), 403)["type"] == "/problems/user-disabled"


def test_a_directory_that_is_away_is_no_wrong_password_and_ends_no_session(
    server: CorralServer, operator: Person, lab: str, ldap: LdapServer
) -> None:
    token = signed_in(server, "ann", ANN).json()["token"]
    ldap.stop()
    try:
        for _ in range(8):
            assert problem(signed_in(server, "ann", ANN), 502)["type"] == "/problems/provider-failed"
        assert "cannot be reached" in operator.run("provider", "people", lab, "--refresh", code=1).err
        assert "cannot be reached" in operator.run("provider", "test", lab, code=1).out
        assert me(server, token).status_code == 200
    finally:
        ldap.start()
    assert signed_in(server, "ann", ANN).status_code == 200, "the attempts did not count"


def test_the_provider_and_its_settings_go_together(operator: Person, ldap: LdapServer, ca_file: Path) -> None:
    create = ("provider", "add-ldap", "second", "--base", BASE, "--ca-file", str(ca_file))
    operator.ok(*create, "--address", ldap.encrypted, "--like", "active-directory")
    shown = next(item for item in operator.read("provider", "ls")["items"] if item["id"] == "second")
    assert (shown["directory"]["login_attribute"], shown["directory"]["nested"]) == ("sAMAccountName", True)
    assert shown["groups_claim"] == "memberOf"
    assert re.search(r"people +fail", operator.run("provider", "test", "second", code=1).out)
    operator.ok("provider", "rm", "second", "-y")
