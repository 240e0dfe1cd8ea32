"""Which server, which token, which form: the nearest word wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.client.http.credentials import Credential, CredentialFile
from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted

ME = {"name": "maria", "role": "scientist", "must_change_password": False}


def test_options_may_stand_before_or_after_the_command_and_the_nearer_one_wins() -> None:
    with scripted(lambda seen, n: as_json(ME)) as server:
        before = corral("-o", "json", "--server", server.url, "whoami")
        after = corral("whoami", "--output", "json", "--server", server.url)
        both = corral("-o", "json", "--server", "http://127.0.0.1:1", "whoami", "-o", "table", "--server", server.url)
    assert json.loads(before.stdout) == json.loads(after.stdout) == {**ME, "server": server.url}
    assert both.stdout == f"maria (scientist) on {server.url}\n"


def test_options_before_a_group_reach_its_commands() -> None:
    empty: dict[str, Any] = {"items": [], "next_cursor": None}
    with scripted(lambda seen, n: as_json(empty)) as server:
        result = corral("nodes", "-o", "json", "ls", "--server", server.url)
    assert json.loads(result.stdout) == {"items": []}


def test_the_server_comes_from_the_option_the_environment_or_the_port() -> None:
    with scripted(lambda seen, n: as_json(ME)) as server:
        port = server.url.rpartition(":")[2]
        assert corral("whoami", CORRAL_SERVER=server.url).exit_code == 0
        assert corral("whoami", CORRAL_SERVER="", CORRAL_PORT=port).exit_code == 0
        assert corral("whoami", "--server", f"127.0.0.1:{port}", CORRAL_SERVER="http://127.0.0.1:1").exit_code == 0
    assert "http://127.0.0.1:8470" in corral("--help").stdout


def test_the_token_comes_from_the_option_the_environment_or_the_file(own_home: Path) -> None:
    with scripted(lambda seen, n: as_json(ME)) as server:
        CredentialFile(own_home / "credentials.json").put(server.url, Credential(user="maria", token="stored"))
        corral("whoami", "--server", server.url + "/")
        corral("whoami", "--server", server.url, CORRAL_TOKEN="environment")
        corral("whoami", "--server", server.url, "--token", "option", CORRAL_TOKEN="environment")
        corral("whoami", "--server", server.url.replace("127.0.0.1", "localhost"))
    tokens = [seen.headers.get("Authorization") for seen in server.requests]
    assert tokens == ["Bearer stored", "Bearer environment", "Bearer option", None]


def test_signing_in_stores_a_token_and_revokes_the_one_before(own_home: Path) -> None:
    def answer(seen: Seen, before: int) -> Answer:
        if seen.path.endswith("/auth/login"):
            return as_json({"user": "maria", "role": "scientist", "token": f"t{before}", "must_change_password": False})
        return Answer(status=204)

    file = CredentialFile(own_home / "credentials.json")
    with scripted(answer) as server:
        first = corral("login", "--user", "maria", "--password-stdin", "--server", server.url, stdin="pass word\n")
        assert file.get(server.url) == Credential(user="maria", token="t0")
        again = corral("login", "--user", "maria", "--password-stdin", "--server", server.url, stdin="pass word")
        assert file.get(server.url) == Credential(user="maria", token="t1")
        out = corral("logout", "--server", server.url)
        assert file.get(server.url) is None
        nobody = corral("logout", "--server", server.url)
    assert first.exit_code == again.exit_code == out.exit_code == nobody.exit_code == 0
    body = json.loads(server.requests[0].body)
    assert body["password"] == "pass word"
    assert body["token_name"].startswith("cli on ")
    revoked = [seen.headers["Authorization"] for seen in server.requests if seen.path.endswith("/auth/logout")]
    assert revoked == ["Bearer t0", "Bearer t1"]
    assert "pass word" not in first.output + again.output


def test_a_one_time_password_is_replaced_while_signing_in(own_home: Path) -> None:
    def answer(seen: Seen, before: int) -> Answer:
        if "new_password" not in json.loads(seen.body):
            return as_json({"type": "/problems/password-change-required", "title": "x", "detail": "y"}, status=403)
        return as_json({"user": "maria", "role": "scientist", "token": "t", "must_change_password": False})

    with scripted(answer) as server:
        args = ("login", "--user", "maria", "--password-stdin", "--server", server.url)
        alone = corral(*args, stdin="one-time\n")
        both = corral(*args, stdin="one-time\nmy own\n")
    assert alone.exit_code == 2
    assert "one-time password" in alone.stderr
    assert both.exit_code == 0
    assert json.loads(server.requests[-1].body)["new_password"] == "my own"
    assert CredentialFile(own_home / "credentials.json").get(server.url) == Credential(user="maria", token="t")


def test_signing_out_forgets_the_token_even_if_the_server_is_gone(own_home: Path) -> None:
    file = CredentialFile(own_home / "credentials.json")
    file.put("http://127.0.0.1:1", Credential(user="maria", token="t"))
    result = corral("logout")
    assert result.exit_code == 0
    assert "could not be revoked" in result.stderr
    assert file.get("http://127.0.0.1:1") is None


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["jobs", "-a"], "No jobs yet. Submit one: corral submit --gpus 1 -- python train.py"),
        (["jobs"], "No jobs that wait or run."),
        (["jobs", "--user", "x"], "No job matches."),
        (["gpus"], "corral up --virtual-gpus"),
        (["nodes"], "corral doctor"),
        (["token", "ls"], "corral token create"),
        (["scores"], "No scores yet"),
        (["events"], "Nothing has happened yet."),
    ],
)
def test_an_empty_list_says_what_to_do_next(args: list[str], hint: str) -> None:
    with scripted(lambda seen, n: as_json({"items": [], "next_cursor": None})) as server:
        result = corral(*args, "--server", server.url)
        as_document = corral(*args, "--server", server.url, "-o", "json")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert hint in result.stderr
    assert json.loads(as_document.stdout) == {"items": []}
