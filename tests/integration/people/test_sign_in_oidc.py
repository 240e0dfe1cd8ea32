"""Signing in with a real OpenID Connect provider, as people in browsers do it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from tests.integration.api import anonymous, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.oidc_server import CLIENT_ID, CLIENT_SECRET, Browser, OidcServer, reason_to_skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    started = CorralServer(tmp_path_factory.mktemp("sign-in") / "home", "--virtual-gpus", "4xA100-80G")
    started.start()
    yield started
    started.kill()


@pytest.fixture(scope="module")
def oidc(server: CorralServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    reason = reason_to_skip()
    if reason is not None:
        pytest.skip(reason)
    started = OidcServer(tmp_path_factory.mktemp("oidc"))
    started.start(*(f"{server.url}/api/v1/auth/{name}/callback" for name in ("lab", "second")))
    yield started
    started.stop()


@pytest.fixture
def operator(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as http:
        yield http


@pytest.fixture(autouse=True)
def lab(operator: httpx.Client, oidc: OidcServer) -> dict[str, Any]:
    """The provider `lab`, as every test expects it."""
    known = {item["id"] for item in operator.get("/auth/providers/all").json()["items"]}
    wanted = {"title": "The Lab", "enabled": True, "allow": ["ann"], "group": "default"}
    if "lab" not in known:
        made = {"id": "lab", "kind": "oidc", "issuer": oidc.issuer, "client_id": CLIENT_ID}
        answer = operator.post("/auth/providers", json={**made, **wanted, "client_secret": CLIENT_SECRET})
        assert answer.status_code == 201, answer.text
    else:
        answer = operator.patch("/auth/providers/lab", json=wanted)
    body: dict[str, Any] = answer.raise_for_status().json()
    return body


@pytest.fixture
def browser(server: CorralServer) -> Browser:
    return Browser(server.url)


def offered(server: CorralServer) -> dict[str, str]:
    """The providers on the sign-in page, by id."""
    items = httpx.get(f"{server.url}/api/v1/auth/providers").json()["items"]
    return {item["id"]: item["title"] for item in items}


def text_of(page: httpx.Response) -> str:
    assert page.headers["content-type"].startswith("text/html"), page.text
    return page.text


def test_a_person_on_the_allow_list_signs_in_and_becomes_a_user(
    server: CorralServer, operator: httpx.Client, oidc: OidcServer, browser: Browser
) -> None:
    assert offered(server)["lab"] == "The Lab"
    done = browser.sign_in("lab", login="ann")
    assert (done.status_code, done.headers["location"]) == (302, "/")
    assert browser.signed_in_as() == "ann"
    assert browser.get("/api/docs").status_code == 200
    me = browser.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["group"], me["provider"]) == ("ann", "scientist", "default", "lab")
    assert (me["display_name"], me["email"]) == ("ann the Tester", "ann@example.org")

    seen = oidc.seen()
    asked = seen["requests"][-1]
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["code_challenge"]) == 43
    assert len(asked["nonce"]) >= 32
    assert seen["exchanges"][-1] == {"ok": True, "verifier": True}

    again = Browser(server.url)
    again.sign_in("lab", login="ann")
    assert again.signed_in_as() == "ann"
    names = [user["name"] for user in operator.get("/users").json()["items"]]
    assert names.count("ann") == 1
    actions = [event["action"] for event in operator.get("/events", params={"subject": "ann"}).json()["items"]]
    assert {"user.created", "user.on-boarded", "user.signed-in"} <= set(actions)


def test_a_session_makes_a_token_for_the_command_line_and_ends(browser: Browser) -> None:
    """A user who comes from a provider has no password to sign in with at a terminal."""
    browser.sign_in("lab", login="ann")
    forged = {"X-CSRF-Token": "guessed"}
    refused = browser.http.post(f"{browser.server}/api/v1/me/tokens", json={"name": "x"}, headers=forged)
    assert problem(refused, 403)["type"] == "/problems/csrf"
    made = browser.change("POST", "/api/v1/me/tokens", {"name": "my laptop"})
    assert made.status_code == 201, made.text
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    assert httpx.get(f"{browser.server}/api/v1/me", headers=bearer).json()["name"] == "ann"
    browser.http.post(f"{browser.server}/api/v1/auth/logout", headers=forged)
    assert browser.signed_in_as() == "ann", "a forged sign-out"
    assert browser.change("POST", "/api/v1/auth/logout").status_code == 204
    assert browser.signed_in_as() is None


def test_a_wrong_missing_or_foreign_state_is_refused_readably(server: CorralServer, browser: Browser) -> None:
    back = browser.at_provider(browser.to_provider("lab"), login="ann")
    query = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
    callback = f"{server.url}/api/v1/auth/lab/callback"
    for state in ("forged", "", None):
        tampered = {name: value for name, value in {**query, "state": state}.items() if value is not None}
        fresh = Browser(server.url)
        fresh.http.cookies = httpx.Cookies(browser.http.cookies)
        page = fresh.http.get(f"{callback}?{urlencode(tampered)}")
        assert page.status_code == 400
        assert "does not belong to the sign-in" in text_of(page)
        assert 'href="/signin"' in page.text
        assert "<script" not in page.text
        assert fresh.signed_in_as() is None
    # the right state in a browser that did not begin the sign-in: another user's code
    with anonymous(server) as other:
        refused = problem(other.get(back), 400)
        assert refused["type"] == "/problems/sign-in-state"
        forged = other.get(back, headers={"Cookie": "corral_ticket=gAAAAABmadeup"})
        assert problem(forged, 400)["type"] == "/problems/sign-in-state"
    assert browser.http.get(back).status_code == 302, "the honest one still works"
    assert browser.signed_in_as() == "ann"


def test_an_answer_counts_once(server: CorralServer, browser: Browser) -> None:
    start = browser.to_provider("lab")
    ticket = browser.http.cookies["corral_ticket"]
    back = browser.at_provider(start, login="ann")
    assert browser.http.get(back).status_code == 302
    for cookies in ({}, {"corral_ticket": ticket}):
        with anonymous(server) as thief:
            header = "; ".join(f"{name}={value}" for name, value in cookies.items())
            answer = thief.get(back, headers={"Cookie": header} if header else {})
            assert problem(answer, 400)["type"] in ("/problems/sign-in-state", "/problems/sign-in-replayed")
            assert "corral_session" not in answer.headers.get("set-cookie", "")


def test_a_code_that_has_expired_is_refused(oidc: OidcServer, browser: Browser) -> None:
    oidc.set_code_seconds(1)
    try:
        back = browser.at_provider(browser.to_provider("lab"), login="ann")
        made_at = time.time()
        wait_until(lambda: time.time() > made_at + 2.1, "the code has expired")
        page = browser.http.get(back)
    finally:
        oidc.set_code_seconds(60)
    assert page.status_code == 400
    assert "expired or was used before" in text_of(page)
    assert oidc.seen()["exchanges"][-1] == {"ok": False, "error": "invalid_grant"}
    assert browser.signed_in_as() is None


def test_new_keys_of_the_provider_are_found(oidc: OidcServer, browser: Browser) -> None:
    browser.sign_in("lab", login="ann")
    oidc.rotate_keys()
    second = Browser(browser.server)
    assert second.sign_in("lab", login="ann").status_code == 302
    assert second.signed_in_as() == "ann"


def test_a_refusal_at_the_provider_is_reported_without_its_text(browser: Browser) -> None:
    back = browser.at_provider(browser.to_provider("lab"), deny="yes")
    assert "error=access_denied" in back
    page = browser.http.get(back)
    assert page.status_code == 403
    assert "The Lab was refused there" in text_of(page)
    assert "<b>" not in page.text
    assert browser.signed_in_as() is None


def test_an_answer_of_another_provider_is_refused(browser: Browser) -> None:
    back = browser.at_provider(browser.to_provider("lab"), login="ann")
    page = browser.http.get(re.sub(r"iss=[^&]*", "iss=https%3A%2F%2Fevil.example", back))
    assert page.status_code == 400
    assert "another provider" in text_of(page)


def test_a_stranger_is_remembered_and_on_boarded_by_an_operator(operator: httpx.Client, browser: Browser) -> None:
    page = browser.sign_in("lab", login="Zoë Q")
    assert page.status_code == 403
    assert "Ask an operator" in text_of(page)
    assert browser.signed_in_as() is None

    people = operator.get("/auth/providers/lab/people").json()["items"]
    (zoe,) = [person for person in people if person["login"] == "Zoë Q"]
    assert (zoe["user"], zoe["allowed"], zoe["subject"]) == (None, False, "sub-Zoë Q")
    assert zoe["seen_at"] is not None
    operator.post("/groups", json={"name": "vision"}).raise_for_status()
    body = {"provider": "lab", "subjects": [zoe["subject"]], "group": "vision"}
    made = operator.post("/users:onboard", json=body)
    assert made.status_code == 201, made.text
    (user,) = made.json()["items"]
    assert (user["name"], user["group"], user["provider"], user["role"]) == ("zo-q", "vision", "lab", "scientist")

    assert browser.sign_in("lab", login="Zoë Q").status_code == 302
    assert browser.signed_in_as() == "zo-q"
    again = problem(operator.post("/users:onboard", json=body), 409)
    assert "Zoë Q is user zo-q" in again["detail"]
    unknown = problem(operator.post("/users:onboard", json={**body, "subjects": ["nobody"]}), 404)
    assert "nobody" in unknown["detail"]


def test_an_address_counts_for_the_allow_list_only_when_it_is_verified(
    server: CorralServer, operator: httpx.Client
) -> None:
    operator.patch("/auth/providers/lab", json={"allow": ["@EXAMPLE.org"]}).raise_for_status()
    honest, other = Browser(server.url), Browser(server.url)
    assert honest.sign_in("lab", login="carl").status_code == 302
    assert honest.signed_in_as() == "carl"
    assert other.sign_in("lab", login="mallory-unverified").status_code == 403
    operator.patch("/auth/providers/lab", json={"allow": ["*"]}).raise_for_status()
    assert other.sign_in("lab", login="mallory-unverified").status_code == 302


def test_a_login_never_takes_over_a_user_of_the_same_name(server: CorralServer, operator: httpx.Client) -> None:
    operator.patch("/auth/providers/lab", json={"allow": ["operator"]}).raise_for_status()
    browser = Browser(server.url)
    assert browser.sign_in("lab", login="operator").status_code == 302
    assert browser.signed_in_as() == "operator-2"
    assert browser.get("/api/v1/me").json()["role"] == "scientist"


def test_a_disabled_user_stays_outside(server: CorralServer, operator: httpx.Client) -> None:
    operator.patch("/auth/providers/lab", json={"allow": ["dora"]}).raise_for_status()
    browser = Browser(server.url)
    browser.sign_in("lab", login="dora")
    operator.patch("/users/dora", json={"disabled": True}).raise_for_status()
    assert browser.signed_in_as() is None
    page = browser.sign_in("lab", login="dora")
    assert page.status_code == 403
    assert "dora is disabled" in text_of(page)


def test_a_provider_that_is_switched_off_signs_no_user_in(
    server: CorralServer, operator: httpx.Client, browser: Browser
) -> None:
    back = browser.at_provider(browser.to_provider("lab"), login="ann")
    operator.patch("/auth/providers/lab", json={"enabled": False}).raise_for_status()
    assert browser.to_provider("lab").status_code == 404
    assert browser.http.get(back).status_code == 404
    assert browser.signed_in_as() is None
    assert list(offered(server)) == ["local"]


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "evil", "/x\\y", "/\t/evil.example"],
)
def test_no_redirect_leads_to_another_server(browser: Browser, target: str) -> None:
    refused = browser.to_provider("lab", next=target)
    assert refused.status_code == 422
    assert "location" not in refused.headers
    assert "corral_ticket" not in browser.http.cookies
    own_links = r'href="/(signin|favicon\.svg|static/corral\.css)"'
    assert "href" not in re.sub(own_links, "", text_of(refused)), "no link leads there"


def test_the_way_back_ends_where_it_was_meant_to(browser: Browser) -> None:
    start = browser.to_provider("lab", next="/api/docs")
    done = browser.http.get(browser.at_provider(start, login="ann"))
    assert (done.status_code, done.headers["location"]) == (302, "/api/docs")


def test_secrets_are_nowhere_to_be_seen(server: CorralServer, operator: httpx.Client, browser: Browser) -> None:
    browser.sign_in("lab", login="ann")
    shown = operator.get("/auth/providers/all").json()["items"]
    assert next(item for item in shown if item["id"] == "lab")["client_secret_set"] is True
    assert CLIENT_SECRET not in str(shown)
    assert CLIENT_SECRET not in operator.get("/events", params={"limit": 500}).text
    for file in server.home.rglob("*"):
        if file.is_file():
            assert CLIENT_SECRET.encode() not in file.read_bytes(), file
    key_file = server.home / "secrets.key"
    assert key_file.stat().st_mode & 0o777 == 0o600


def test_an_edit_keeps_the_secret_that_it_does_not_name(operator: httpx.Client, browser: Browser) -> None:
    edited = operator.patch("/auth/providers/lab", json={"title": "Our Lab"}).json()
    assert (edited["title"], edited["client_secret_set"]) == ("Our Lab", True)
    assert browser.sign_in("lab", login="ann").status_code == 302

    moved = problem(operator.patch("/auth/providers/lab", json={"issuer": "https://evil.example"}), 409)
    assert "Create a second provider" in moved["detail"]


def test_the_test_button_says_what_is_wrong(operator: httpx.Client, oidc: OidcServer, lab: dict[str, Any]) -> None:
    report = operator.post("/auth/providers/lab/test").json()
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert report["ok"], report
    wanted = ("discovery", "keys", "signatures", "pkce", "client-id", "client", "clock", "redirect")
    assert states == dict.fromkeys(wanted, "ok")
    assert lab["redirect_uri"].endswith("/api/v1/auth/lab/callback")

    body = {
        "id": "second",
        "kind": "oidc",
        "issuer": oidc.issuer + "/",
        "client_id": CLIENT_ID,
        "client_secret": "wrong",
    }
    operator.post("/auth/providers", json=body).raise_for_status()
    report = operator.post("/auth/providers/second/test").json()
    (found,) = [check for check in report["checks"] if check["state"] == "fail"]
    assert not report["ok"]
    assert found["name"] == "discovery"
    assert f"exactly {oidc.issuer}." in found["hint"]
    fixed = {"issuer": oidc.issuer, "client_secret": "wrong"}
    operator.patch("/auth/providers/second", json=fixed).raise_for_status()
    (found,) = [c for c in operator.post("/auth/providers/second/test").json()["checks"] if c["state"] == "fail"]
    assert (found["name"], "not accepted" in found["detail"]) == ("client", True)
    assert operator.delete("/auth/providers/second").status_code == 204


def test_the_last_operator_is_not_locked_out(server: CorralServer, operator: httpx.Client) -> None:
    """The only operators left come from the provider: it can neither go nor be switched off."""
    operator.patch("/auth/providers/lab", json={"allow": ["boss"]}).raise_for_status()
    browser = Browser(server.url)
    browser.sign_in("lab", login="boss")
    operator.patch("/users/boss", json={"role": "operator"}).raise_for_status()
    operator.patch("/users/operator", json={"disabled": True}).raise_for_status()
    me = browser.get("/api/v1/me").json()
    assert (me["name"], me["role"]) == ("boss", "operator")
    headers = {"X-CSRF-Token": me["csrf_token"]}
    api = f"{server.url}/api/v1"
    try:
        for answer in (
            browser.http.patch(f"{api}/auth/providers/lab", json={"enabled": False}, headers=headers),
            browser.http.delete(f"{api}/auth/providers/lab", headers=headers),
        ):
            refused = problem(answer, 409)
            assert "corral user password boss" in refused["detail"]
            assert refused["operators"] == ["boss"]
    finally:
        browser.http.patch(f"{api}/users/operator", json={"disabled": False}, headers=headers).raise_for_status()
    server._tokens.clear()  # disabling signed the operator out everywhere
    with server.http() as back:
        back.patch("/auth/providers/lab", json={"enabled": False}).raise_for_status()
        assert back.delete("/auth/providers/lab").status_code == 204
        boss = back.get("/users/boss").json()
        assert boss["provider"] == "local"
    assert browser.signed_in_as() is None


def test_groups_of_the_provider_decide_about_group_and_role(
    server: CorralServer, operator: httpx.Client, oidc: OidcServer
) -> None:
    operator.post("/groups", json={"name": "optics"}).raise_for_status()
    rules = {"group_rules": ["ml=optics", "admins=@operator"], "groups_claim": "resource_access.roles"}
    changed = operator.patch("/auth/providers/lab", json=rules)
    assert changed.json()["group_rules"] == rules["group_rules"], changed.text
    stranger = Browser(server.url).sign_in("lab", login="gil")
    assert stranger.status_code == 403, "gil is on no allow-list and in no group"

    oidc.set_groups({"gil": ["ml", "admins"]})
    first = Browser(server.url)
    first.sign_in("lab", login="gil")
    me = first.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["group"]) == ("gil", "operator", "optics")
    assert "groups" in str(oidc.seen()["requests"][-1]["scope"]), "a provider that offers the scope is asked for groups"

    oidc.set_groups({"gil": ["ml"]})
    Browser(server.url).sign_in("lab", login="gil")
    assert first.get("/api/v1/me").json()["role"] == "scientist", "open sessions lose the role, too"
    operator.patch("/auth/providers/lab", json={"group_rules": [], "groups_claim": "groups"}).raise_for_status()
