"""Signing in with GitHub and GitLab, and with providers that lie.

Against a small server that speaks the documented parts of their APIs, not against the real services: those cannot be
reached from a test. What is proven is that corral asks what is documented, and believes only what can be verified.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography.fernet import Fernet
from joserfc.jwk import OctKey, RSAKey

from tests.integration.api import api_server, dump, problem
from tests.servers.corral_server import CorralServer
from tests.servers.forge_server import API_TOKEN, CLIENT_ID, CLIENT_SECRET, MEMBERS, ForgeServer
from tests.servers.oidc_server import Browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def started() -> Iterator[ForgeServer]:
    forge = ForgeServer()
    yield forge
    forge.close()


@pytest.fixture
def forge(started: ForgeServer) -> ForgeServer:
    started.honest()
    started.requests.clear()
    return started


@pytest.fixture(scope="module")
def server(started: ForgeServer) -> Iterator[CorralServer]:
    with api_server() as corral, corral.http() as operator:
        shared = {"issuer": started.url, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "enabled": True}
        for kind, organisation in (("github", "lab"), ("gitlab", "lab/gpu")):
            body = {**shared, "id": kind, "kind": kind, "api_token": API_TOKEN, "organisation": organisation}
            operator.post("/auth/providers", json=body).raise_for_status()
        yield corral


@pytest.fixture
def operator(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as http:
        yield http


def allow(operator: httpx.Client, provider: str, *entries: str) -> None:
    operator.patch(f"/auth/providers/{provider}", json={"allow": list(entries)}).raise_for_status()


@pytest.mark.parametrize(("provider", "name"), [("github", "ann-lee"), ("gitlab", "ann-lee-2")])
def test_a_user_signs_in(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer, provider: str, name: str
) -> None:
    """The same login at both forges: two people, because corral cannot know that they are one."""
    allow(operator, provider, "ann-lee@example.org")
    browser = Browser(server.url)
    assert browser.sign_in(provider).status_code == 302
    assert browser.signed_in_as() == name
    me = browser.get("/api/v1/me").json()
    assert (me["display_name"], me["email"], me["provider"]) == ("Ann Lee", "ann-lee@example.org", provider)


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_an_unverified_address_opens_nothing(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer, provider: str
) -> None:
    allow(operator, provider, "@example.org", "x@evil.example")
    forge.who, forge.email_verified = (777, "eve", "Eve"), False
    assert Browser(server.url).sign_in(provider).status_code == 403
    (eve,) = [p for p in operator.get(f"/auth/providers/{provider}/people").json()["items"] if p["login"] == "eve"]
    assert (eve["email"], eve["user"]) == ("", None)


@pytest.mark.parametrize(
    ("provider", "asked"),
    [
        ("github", "/api/v3/orgs/lab/members?per_page=100"),
        ("gitlab", "/api/v4/groups/lab%2Fgpu/members/all?per_page=100"),
    ],
)
def test_members_are_listed_and_on_boarded(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer, provider: str, asked: str
) -> None:
    listed = operator.get(f"/auth/providers/{provider}/people", params={"refresh": True}).json()["items"]
    assert ("GET", asked) in forge.requests
    assert {str(member[0]) for member in MEMBERS} <= {person["subject"] for person in listed}
    bob, other = (next(p for p in listed if p["subject"] == subject) for subject in ("102", "103"))
    assert (bob["login"], bob["user"], bob["seen_at"]) == ("bob", None, None)
    body = {"provider": provider, "subjects": ["102", "103"], "group": None}
    made = operator.post("/users:onboard", json=body)
    assert made.status_code == 201, made.text
    names = [user["name"] for user in made.json()["items"]]
    suffixes = {"github": ["bob", "operator-2"], "gitlab": ["bob-2", "operator-3"]}
    assert names == suffixes[provider]
    assert all(user["group"] is None and user["role"] == "scientist" for user in made.json()["items"])
    forge.who = MEMBERS[1]
    browser = Browser(server.url)
    browser.sign_in(provider)
    assert browser.signed_in_as() == names[0]
    again = operator.get(f"/auth/providers/{provider}/people", params={"refresh": True}).json()["items"]
    assert next(p for p in again if p["subject"] == "102")["user"] == names[0]
    assert next(p for p in again if p["subject"] == other["subject"])["user"] == names[1]


def test_a_token_that_is_not_accepted_is_reported(operator: httpx.Client, forge: ForgeServer) -> None:
    operator.patch("/auth/providers/github", json={"api_token": "wrong"}).raise_for_status()
    refused = problem(operator.get("/auth/providers/github/people", params={"refresh": True}), 502)
    assert "give another one" in refused["detail"]
    assert "wrong" not in refused["detail"]
    operator.patch("/auth/providers/github", json={"api_token": API_TOKEN}).raise_for_status()


def test_without_a_token_those_who_tried_are_listed(operator: httpx.Client, forge: ForgeServer) -> None:
    edited = operator.patch("/auth/providers/gitlab", json={"api_token": None}).json()
    assert edited["api_token_set"] is False
    before = len(forge.requests)
    listed = operator.get("/auth/providers/gitlab/people", params={"refresh": True})
    assert listed.status_code == 200
    assert len(forge.requests) == before, "there is no provider to ask"
    operator.patch("/auth/providers/gitlab", json={"api_token": API_TOKEN}).raise_for_status()


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_the_test_button(operator: httpx.Client, forge: ForgeServer, provider: str) -> None:
    report = operator.post(f"/auth/providers/{provider}/test").json()
    assert report["ok"], report
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert (states["client"], states["redirect"], states["clock"]) == ("ok", "ok", "ok")
    assert states["client-id"] == "warn", "it does not look like one of theirs"


# ------------------------------------------------------------------------------------------------ lies


def _change(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda claims: claims.update(values)


def _drop(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda claims: claims.pop(name) and None


@pytest.mark.parametrize(
    ("lie", "reported"),
    [
        (_change(nonce="of-another-sign-in"), "nonce"),
        (_drop("nonce"), "nonce"),
        (_change(iss="https://evil.example"), "iss"),
        (_change(aud="another-client"), "aud"),
        (_change(aud=[CLIENT_ID, "another"], azp="another"), "another client"),
        (_change(exp=1), "expired"),
        (_drop("exp"), "exp"),
        (_drop("sub"), "sub"),
        (_change(sub="999"), "another account"),
        (_change(sub=""), "sub"),
    ],
)
def test_an_id_token_that_lies_is_not_believed(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer, lie: Any, reported: str
) -> None:
    allow(operator, "gitlab", "*")
    forge.lie = lie
    browser = Browser(server.url)
    page = browser.sign_in("gitlab")
    assert page.status_code == 502
    assert reported in page.text
    assert browser.signed_in_as() is None


def test_a_signature_counts_only_with_the_providers_own_key(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer
) -> None:
    allow(operator, "gitlab", "*")
    browser = Browser(server.url)
    forge.signer = RSAKey.generate_key(2048, {"kid": "k1"})
    assert browser.sign_in("gitlab").status_code == 502
    forge.signer = RSAKey.generate_key(2048, {"kid": "k9"})
    forge.header = {"alg": "RS256", "kid": "k9"}
    assert browser.sign_in("gitlab").status_code == 502
    # the client's secret is known to both sides, and the public key to everybody: neither may sign
    forge.header = {"alg": "HS256", "kid": "k1"}
    for secret in (CLIENT_SECRET, json.dumps(forge.key.as_dict(private=False))):
        forge.signer = OctKey.import_key(secret)
        assert browser.sign_in("gitlab").status_code == 502
    assert browser.signed_in_as() is None


def test_an_unreachable_provider_is_reported_and_not_a_500(server: CorralServer, operator: httpx.Client) -> None:
    body = {"id": "gone", "kind": "oidc", "issuer": "http://127.0.0.1:9", "client_id": "x", "enabled": True}
    operator.post("/auth/providers", json=body).raise_for_status()
    page = Browser(server.url).to_provider("gone")
    assert page.status_code == 502
    assert "cannot be reached" in page.text
    report = operator.post("/auth/providers/gone/test").json()
    assert not report["ok"]
    assert report["checks"][0]["hint"]
    operator.delete("/auth/providers/gone").raise_for_status()


def test_a_one_time_password_is_replaced_in_the_browser(server: CorralServer, operator: httpx.Client) -> None:
    server.add_user("otto")
    operator.patch("/users/otto", json={"password": "for-one-use-only"}).raise_for_status()
    browser, elsewhere = Browser(server.url), Browser(server.url)
    for one in (browser, elsewhere):
        body = {"user": "otto", "password": "for-one-use-only"}
        sent = one.http.post(f"{server.url}/api/v1/auth/login", json=body)
        assert (sent.status_code, sent.json()["must_change_password"]) == (200, True)
    assert browser.get("/api/docs").status_code == 403
    path, right = "/api/v1/me/password", {"old": "for-one-use-only", "new": "a-new-password"}
    assert problem(browser.change("POST", path, {**right, "old": "wrong"}), 422)["errors"][0]["field"] == "old"
    assert "at least 8" in problem(browser.change("POST", path, {**right, "new": "short"}), 422)["detail"]
    forged = browser.http.post(f"{server.url}{path}", json=right, headers={"X-CSRF-Token": "guessed"})
    assert problem(forged, 403)["type"] == "/problems/csrf"
    assert browser.change("POST", path, right).status_code == 204
    assert browser.signed_in_as() == "otto", "a new session took the place of the old one"
    assert elsewhere.signed_in_as() is None
    assert browser.get("/api/docs").status_code == 200


def test_only_operators_manage_providers(server: CorralServer) -> None:
    server.add_user("nora")
    with server.http("nora") as nora:
        onboard = {"provider": "github", "subjects": ["1"]}
        for method, path, body in (
            ("GET", "/auth/providers/all", None),
            ("POST", "/auth/providers", {"id": "x", "kind": "oidc", "client_id": "x"}),
            ("PATCH", "/auth/providers/github", {"enabled": False}),
            ("DELETE", "/auth/providers/github", None),
            ("POST", "/auth/providers/github/test", None),
            ("GET", "/auth/providers/github/people", None),
            ("POST", "/users:onboard", onboard),
        ):
            assert problem(nora.request(method, path, json=body), 403), (method, path)


def test_the_store_does_not_know_the_secrets(server: CorralServer, operator: httpx.Client) -> None:
    stored = dump(server)
    assert "gAAAA" in stored
    for secret in (CLIENT_SECRET, API_TOKEN):
        assert secret not in stored
        assert secret not in server.log()


def test_a_store_without_its_key_file_says_what_to_do(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer
) -> None:
    """A key is lost, found again, and replaced by a newer one."""
    file = server.home / "secrets.key"
    key = file.read_text()
    file.unlink()
    browser = Browser(server.url)
    page = browser.to_provider("github")
    assert page.status_code == 503
    assert str(file) not in page.text, "a path is not shown"
    report = operator.post("/auth/providers/github/test").json()
    (found,) = [check for check in report["checks"] if check["name"] == "secret"]
    assert f"{file} is missing: restore it" in found["detail"]
    assert not file.exists(), "looking must not make a new key"

    file.write_text(key)
    file.chmod(0o644)
    report = operator.post("/auth/providers/github/test").json()
    assert f"chmod 600 {file}" in str(report["checks"])
    file.chmod(0o600)
    assert browser.sign_in("github").status_code == 302


def test_a_newer_key_takes_over_when_the_server_starts(
    server: CorralServer, operator: httpx.Client, forge: ForgeServer
) -> None:
    file = server.home / "secrets.key"
    new = Fernet.generate_key().decode()
    server.stop()
    file.write_text(f"{new}\n{file.read_text()}")
    server.start()
    file.write_text(f"{new}\n")
    allow(operator, "github", "*")
    assert Browser(server.url).sign_in("github").status_code == 302
    assert operator.get("/auth/providers/github/people", params={"refresh": True}).status_code == 200
    actions = [event["action"] for event in operator.get("/events").json()["items"]]
    assert "provider.secrets-renewed" in actions


def test_behind_a_proxy_people_come_back_to_the_public_address(tmp_path: Path, forge: ForgeServer) -> None:
    (tmp_path / "corral.yaml").write_text("server:\n  public_url: https://corral.example.org/\n")
    corral = CorralServer(tmp_path, "--virtual-gpus", "1xA10")
    corral.start()
    try:
        with corral.http() as operator:
            body = {"id": "hub", "kind": "github", "issuer": forge.url, "client_id": CLIENT_ID, "enabled": True}
            made = operator.post("/auth/providers", json=body).raise_for_status().json()
        back = "https://corral.example.org/api/v1/auth/hub/callback"
        assert made["redirect_uri"] == back
        start = httpx.get(f"{corral.url}/api/v1/auth/hub/login", headers={"Host": "evil.example"})
        query = parse_qs(urlsplit(start.headers["location"]).query)
        assert query["redirect_uri"] == [back]
        assert query["scope"] == ["read:user user:email"]
        cookie = start.headers["set-cookie"].lower()
        assert cookie.startswith("__host-corral_ticket=")
        assert all(word in cookie for word in ("httponly", "samesite=lax", "secure", "path=/;"))
    finally:
        corral.kill()
