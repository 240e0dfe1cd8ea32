"""Signing in, users, tokens and quotas at the command line."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, person, scientist
from tests.servers.corral_server import PASSWORD, CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-people"), "--virtual-gpus", "8xA100-80G") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def test_a_caller_without_a_session_is_asked_to_sign_in(server: CorralServer) -> None:
    stranger = person(server, "stranger")
    refused = stranger.run("jobs", code=3)
    assert "run `corral login`" in refused.err
    problem = stranger.run("whoami", "-o", "json", code=3).problem
    assert problem["status"] == 401
    assert "corral login" in problem["hint"]
    wrong = stranger.run("login", "--user", "operator", "--password-stdin", stdin="wrong password", code=3)
    assert wrong.err.startswith("Error: The user name or the password is wrong.")
    assert not (stranger.home / "credentials.json").exists()


def test_signing_in_and_out(server: CorralServer) -> None:
    someone = person(server, "signing")
    said = someone.ok("login", "--user", "operator", "--password-stdin", stdin=PASSWORD + "\n")
    assert said == f"Signed in to {server.url} as operator (operator).\n"
    file = someone.home / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = json.loads(file.read_text())["servers"][server.url]["token"]
    assert someone.ok("whoami") == f"operator (operator) on {server.url}\n"

    someone.ok("login", "--user", "operator", "--password-stdin", stdin=PASSWORD)
    assert someone.run("whoami", "--token", token).code == 3, "the replaced token still works"
    someone.ok("logout")
    assert someone.run("whoami").code == 3


def test_a_scientist_may_do_less_than_an_operator(server: CorralServer, operator: Person) -> None:
    nora = scientist(server, operator, "nora")
    for args in (["user", "ls"], ["queue", "create", "mine"], ["nodes", "cordon", "x"], ["quota", "show", "operator"]):
        refused = nora.run(*args, code=3)
        assert refused.err.startswith("Error:"), args
    assert nora.read("quota", "show")["kinds"]["training"]["gpus"] == {"limit": None, "held": 0, "asked": 0}

    operator.ok("user", "role", "nora", "operator")
    names = {user["name"]: user["role"] for user in nora.read("user", "ls")["items"]}
    assert names["nora"] == "operator"
    operator.ok("user", "disable", "nora")
    assert nora.run("whoami").code == 3
    operator.ok("user", "enable", "nora")
    operator.ok("user", "password", "nora", "--password-stdin", stdin="another-password-2")
    both = "another-password-2\nthird-password-3\n"
    again = nora.run("login", "--user", "nora", "--password-stdin", stdin=both, code=0)
    assert "nora (operator)" in again.out
    nora.ok("passwd", "--password-stdin", stdin="third-password-3\nfourth-password-4\n")
    nora.ok("login", "--user", "nora", "--password-stdin", stdin="fourth-password-4")
    operator.ok("user", "rm", "-y", "nora")
    assert nora.run("whoami").code == 3


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (("user", "create", "operator", "--password-stdin"), "long-enough-1", "operator"),
        (("user", "create", "sven", "--password-stdin"), "short", "password"),
        (("user", "create", "no blanks", "--password-stdin"), "long-enough-1", "name"),
        (("user", "create", "sven", "--role", "king", "--password-stdin"), "long-enough-1", "role"),
        (("user", "role", "operator", "scientist"), "", "operator"),
        (("passwd", "--password-stdin"), "not-my-password\nlong-enough-1\n", "old"),
        (("quota", "set", "operator", "--kind", "flying", "--gpus", "1"), "", "flying"),
        (("quota", "set", "operator", "--gpus", "-1"), "", "gpus"),
    ],
)
def test_impossible_requests_are_refused_with_the_reason(
    operator: Person, args: tuple[str, ...], stdin: str, message: str
) -> None:
    before = _people(operator)
    refused = operator.run(*args, stdin=stdin)
    assert refused.code in (1, 2)
    assert refused.err.startswith("Error:")
    assert message in refused.err
    assert _people(operator) == before


def _people(operator: Person) -> list[dict[str, object]]:
    """The users without the time when they were last seen, which the request alone can change."""
    return [{**user, "last_seen_at": None} for user in operator.read("user", "ls")["items"]]


def test_unknown_people_and_tokens_are_not_found(operator: Person) -> None:
    for args in (["user", "rm", "-y", "nobody"], ["quota", "show", "nobody"], ["token", "rm", "-y", "nothing"]):
        assert operator.run(*args, code=4).err.startswith("Error:"), args


def test_a_token_works_until_it_is_revoked(server: CorralServer, operator: Person) -> None:
    created = operator.run("token", "create", "ci", "--expires-in-days", "3", code=0)
    secret = created.out.strip()
    (token,) = [view for view in operator.read("token", "ls")["items"] if view["name"] == "ci"]
    assert secret not in json.dumps(operator.read("token", "ls"))
    assert "ci" in operator.ok("token", "ls")

    program = person(server, "program")
    program.env["CORRAL_TOKEN"] = secret
    assert program.read("whoami")["name"] == "operator"
    operator.ok("token", "rm", "-y", token["id"])
    assert program.run("whoami").code == 3


def test_a_quota_holds_for_the_next_start(server: CorralServer, operator: Person) -> None:
    olga = scientist(server, operator, "olga")
    said = operator.ok("quota", "set", "olga", "--gpus", "2", "--memory", "16GiB")
    assert said == "Quota of olga for training: GPUs 2, CPUs no limit, memory 16GiB\n"
    operator.ok("quota", "set", "olga", "--cpus", "4")
    limits = {name: of["limit"] for name, of in olga.read("quota", "show")["kinds"]["training"].items()}
    assert limits == {"gpus": 2, "cpus": 4, "memory_bytes": 16 * 1024**3}
    assert "16GiB" in olga.ok("quota", "show")

    refused = olga.run("submit", "--gpus", "4", "-o", "json", "--", "true", code=1)
    assert "insufficient-quota" in refused.problem["type"]
    assert olga.read("jobs", "-a")["items"] == []

    operator.ok("quota", "set", "olga", "--gpus", "none", "--cpus", "none", "--memory", "none")
    assert "olga has no quota" in operator.run("quota", "show", "olga", code=0).err
    olga.run("submit", "--gpus", "4", "--wait", "--", "true", code=0)


def test_permission_groups_from_creating_to_deleting(server: CorralServer, operator: Person) -> None:
    pia = scientist(server, operator, "pia")
    said = operator.ok("permission-group", "create", "guests", "--function", "tasks", "--function", "train")
    assert said == "Created permission group guests: train, tasks\n"
    assert operator.ok("permission-group", "assign", "guests", "pia") == "pia: train, tasks\n"
    assert pia.read("profile")["functions"] == ["train", "tasks"]
    refused = pia.run("token", "create", "mine", code=3)
    assert "lacks the function 'tokens'" in refused.err
    operator.ok("permission-group", "edit", "guests", "--none", "--description", "Look only")
    assert "train" in pia.run("submit", "--", "true", code=3).err
    assert "guests" in operator.ok("permission-group", "ls")
    assert "pia" in operator.run("permission-group", "rm", "-y", "guests", code=1).err
    operator.ok("user", "edit", "pia", "--permission-group", "everyone", "--display-name", "Pia P.")
    assert operator.read("user", "show", "pia")["display_name"] == "Pia P."
    assert "Pia P." in operator.ok("user", "ls", "--search", "pia p")
    operator.ok("permission-group", "rm", "-y", "guests")
    assert operator.run("permission-group", "rm", "-y", "everyone", code=1).err.startswith("Error:")
    assert operator.run("permission-group", "edit", "everyone", code=2).err.startswith("Error:")


def test_keys_from_files_and_never_a_private_one(server: CorralServer, operator: Person) -> None:
    rosa = scientist(server, operator, "rosa")
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    (rosa.home / "id.pub").write_text(f"{key} rosa@desk\n")
    said = rosa.ok("key", "add", "id.pub")
    assert said == "Added key rosa@desk (SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU)\n"
    assert rosa.run("key", "add", "--name", "again", "-", stdin=key, code=1).err.startswith("Error:")
    (rosa.home / "id").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
    assert "never give it away" in rosa.run("key", "add", "id", code=2).err
    assert "cannot be read" in rosa.run("key", "add", "nowhere.pub", code=2).err
    (view,) = rosa.read("key", "ls")["items"]
    assert "ssh-ed25519" in rosa.ok("key", "ls")
    rosa.ok("key", "rm", "-y", view["id"])
    assert rosa.run("key", "rm", "-y", view["id"], code=4).err.startswith("Error:")


def test_a_token_with_a_scope_and_an_end(server: CorralServer, operator: Person) -> None:
    secret = operator.run("token", "create", "board", "--scope", "read", "--expires", "12h", code=0).out.strip()
    (view,) = [item for item in operator.read("token", "ls")["items"] if item["name"] == "board"]
    assert view["scopes"] == ["read"]
    board = person(server, "board")
    board.env["CORRAL_TOKEN"] = secret
    assert board.read("whoami")["name"] == "operator"
    assert "scope jobs" in board.run("submit", "--", "true", code=3).err
    assert operator.run("token", "create", "x", "--expires", "soon", code=2).err.startswith("Error:")


def test_about_the_licence_and_the_audit_log_as_a_file(operator: Person) -> None:
    said = operator.ok("about")
    assert "single-user: jobs run as the server's own account" in said
    assert "Version" in said
    assert "no licence" in said
    assert "not enforced: the GPUs are virtual" in said
    assert operator.ok("licence", "show").startswith("none: no licence")
    assert operator.run("licence", "set", "nonsense", code=2).err.startswith("Error: token:")
    assert operator.run("licence", "rm", "-y", code=4).err.startswith("Error:")
    exported = operator.ok("events", "--export", "csv", "--actor", "operator")
    assert exported.splitlines()[0] == "id,at,actor,action,subject,source,detail"
    lines = operator.ok("events", "--export", "jsonl").splitlines()
    assert json.loads(lines[-1])["id"] == 1
    assert operator.read("events", "--search", "user.created")["items"]
    assert operator.run("events", "--export", "csv", "--follow", code=2).err.startswith("Error:")
