"""Sign-in providers at the command line, with a small server in GitHub's place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.servers.corral_server import CorralServer
from tests.servers.forge_server import API_TOKEN, CLIENT_ID, CLIENT_SECRET, MEMBERS, ForgeServer
from tests.servers.oidc_server import Browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-providers"), "--virtual-gpus", "2xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def forge() -> Iterator[ForgeServer]:
    started = ForgeServer()
    yield started
    started.close()


def test_a_provider_from_its_creation_to_its_end(server: CorralServer, operator: Person, forge: ForgeServer) -> None:
    create = ("provider", "create", "hub", "--kind", "github", "--issuer", forge.url, "--client-id", CLIENT_ID)
    made = operator.run(*create, "--client-secret-stdin", "--title", "Our Hub", stdin=CLIENT_SECRET, code=0)
    assert made.out == "Created provider hub (disabled).\n"
    assert f"{server.url}/api/v1/auth/hub/callback" in made.err
    assert "corral provider test hub" in made.err
    assert operator.run(*create, "--no-client-secret").err.startswith("Error: there is a provider 'hub'")

    report = operator.ok("provider", "test", "hub")
    assert "accepts the client id and secret" in report
    operator.ok("provider", "edit", "hub", "--client-secret-stdin", stdin="a wrong one")
    failed = operator.run("provider", "test", "hub", code=1)
    assert "not accepted" in failed.out
    edit = ("provider", "edit", "hub", "--client-secret-stdin", "--api-token-stdin", "--organisation", "lab")
    operator.ok(*edit, stdin=f"{CLIENT_SECRET}\n{API_TOKEN}\n")
    assert operator.ok("provider", "enable", "hub") == "hub: enabled\n"
    assert operator.read("provider", "test", "hub")["ok"]

    assert "No people yet" in operator.run("provider", "people", "hub", code=0).err
    listed = operator.ok("provider", "people", "hub", "--refresh")
    assert all(login in listed for _, login, _ in MEMBERS)
    assert operator.ok("provider", "onboard", "hub", "ann-lee", "102") == (
        "On-boarded ann-lee (scientist).\nOn-boarded bob (scientist).\n"
    )
    assert "already on-boarded" in operator.run("provider", "onboard", "hub", "bob", code=1).err
    assert "nobody" in operator.run("provider", "onboard", "hub", "nobody", code=4).err
    browser = Browser(server.url)
    browser.sign_in("hub")
    assert browser.signed_in_as() == "ann-lee"

    operator.ok("provider", "edit", "hub", "--allow", "bob", "--allow", "@example.org", "--group", "none")
    (view,) = operator.read("provider", "ls")["items"]
    assert (view["allow"], view["group"], view["users"]) == (["bob", "@example.org"], None, 2)
    assert (view["client_secret_set"], view["api_token_set"]) == (True, True)
    operator.ok("provider", "edit", "hub", "--allow-nobody")
    shown = operator.ok("provider", "ls")
    assert "Our Hub" in shown
    assert "enabled" in shown
    assert operator.ok("provider", "disable", "hub") == "hub: disabled\n"
    assert operator.ok("provider", "rm", "-y", "hub") == "Deleted provider hub\n"
    assert browser.signed_in_as() is None
    assert "No sign-in providers" in operator.run("provider", "ls", code=0).err
    log = server.log()
    assert CLIENT_SECRET not in log
    assert API_TOKEN not in log


def test_wrong_words_are_explained(server: CorralServer, operator: Person) -> None:
    for args, code, reported in (
        (("provider", "create", "x", "--kind", "myspace", "--client-id", "x"), 2, "kind"),
        (
            ("provider", "create", "x", "--kind", "oidc", "--client-id", "x", "--issuer", "http://sso.example.org"),
            2,
            "https",
        ),
        (("provider", "create", "x", "--kind", "oidc"), 2, "--client-id"),
        (("provider", "edit", "x"), 2, "nothing to change"),
        (("provider", "enable", "x"), 4, "no sign-in provider 'x'"),
        (("provider", "people", "x"), 4, "no sign-in provider 'x'"),
    ):
        refused = operator.run(*args)
        assert (refused.code, reported in refused.err) == (code, True), (args, refused)
    nora = scientist(server, operator, "nora")
    assert nora.run("provider", "ls", code=3).err.startswith("Error:")
