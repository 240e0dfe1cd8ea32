"""Exit codes that scripts can trust, one readable message on stderr, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.runner import NO_SERVER, corral, problem_on_stderr
from tests.unit.client.scripted_server import Answer, as_json, problem, scripted

EVERYDAY = [
    ["jobs"],
    ["show", "j-1"],
    ["why", "j-1"],
    ["logs", "j-1"],
    ["logs", "-f", "j-1"],
    ["stop", "j-1"],
    ["start", "j-1"],
    ["rm", "-y", "j-1"],
    ["status"],
    ["queue"],
    ["queue", "ls"],
    ["queue", "show", "default"],
    ["queue", "create", "night"],
    ["queue", "edit", "night", "--weight", "2"],
    ["queue", "rm", "-y", "night"],
    ["pin", "j-1"],
    ["unpin", "j-1"],
    ["move", "j-1", "--before", "j-2"],
    ["nodes"],
    ["nodes", "drain", "n"],
    ["gpus"],
    ["gpus", "reset-health", "g"],
    ["allocate", "task"],
    ["start-program", "task"],
    ["release", "task"],
    ["whoami"],
    ["user", "ls"],
    ["user", "role", "maria", "operator"],
    ["quota", "show"],
    ["quota", "set", "maria", "--gpus", "1"],
    ["quota", "ls"],
    ["flavor", "ls"],
    ["package", "ls", "--kind", "training"],
    ["package", "rm", "-y", "old"],
    ["scores", "maria"],
    ["token", "ls"],
    ["token", "create", "ci"],
    ["events"],
    ["scores"],
]


@pytest.mark.parametrize("args", EVERYDAY, ids=" ".join)
def test_without_a_server_every_command_says_how_to_start_one(args: list[str]) -> None:
    result = corral(*args)
    assert result.exit_code == 5
    assert result.stdout == ""
    assert result.stderr.startswith(
        f"Error: cannot reach {NO_SERVER}: is the server running?\nHint: Start it with `corral up`"
    )
    assert result.stderr.endswith(" (Connection refused)\n")
    assert corral(*args, "-o", "name").stderr == result.stderr
    as_problem = corral(*args, "-o", "json")
    assert as_problem.exit_code == 5
    assert problem_on_stderr(as_problem)["type"] == "/problems/server-unreachable"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (problem(401, detail="Sign in first."), 3, "Hint: Sign in first: run `corral login`."),
        (
            problem(401, detail="Sign in first: send a bearer token, or sign in at /x."),
            3,
            "Error: You are not signed in.",
        ),
        (problem(401, detail="The token has expired."), 3, "Error: The token has expired."),
        (problem(403, detail="Only operators may do this."), 3, "Error: Only operators may do this."),
        (problem(404, detail="no job j-1"), 4, "Error: no job j-1"),
        (problem(409, detail="j-1 is running"), 1, "Error: j-1 is running"),
        (problem(409, type="/problems/name-taken", detail="taken"), 1, "Hint: Choose another name"),
        (problem(500, detail="logged"), 1, "Hint: The server's own log has the details."),
        (Answer(status=502, body=b"<html>"), 1, "did not answer like a corral server"),
        (Answer(body=b"hello", content_type="text/plain"), 1, "did not answer like a corral server"),
    ],
)
def test_a_refusal_has_its_exit_code_and_a_message(answer: Answer, code: int, message: str) -> None:
    with scripted(lambda seen, n: answer) as server:
        result = corral("stop", "j-1", "--server", server.url)
        as_problem = corral("stop", "j-1", "--server", server.url, "-o", "json")
    assert result.exit_code == as_problem.exit_code == code
    assert result.stdout == as_problem.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert problem_on_stderr(as_problem)["detail"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("jbos", "jbos: there is no such command\nHint: Did you mean `corral jobs`?"),
        ("jobs --stat x", "--stat: there is no such option\nHint: Did you mean --state?"),
        ("jobs --limit 0", "--limit"),
        ("jobs --limit many", "--limit"),
        ("jobs -o xml", "--output"),
        ("show", "JOB is missing"),
        ("logs --tail -1 j-1", "--tail"),
        ("logs --attempt 0 j-1", "--attempt"),
        ("jobs extra", "extra"),
        ("move j-1", "give one of --before and --after"),
        ("move j-1 --before j-2 --after j-3", "give one of --before and --after"),
        ("queue edit night", "nothing to change"),
        ("queue edit night --max-gpus few", "--max-gpus: expected a whole number or the word none, got 'few'"),
        ("queue edit night --max-time soon", "--max-time: 'soon' is not a duration"),
        ("quota set maria", "nothing to set"),
        ("quota set --gpus 1", "a quota needs exactly one of USER, --users and --all"),
        ("quota set maria --all --gpus 1", "a quota needs exactly one of USER, --users and --all"),
        ("quota set maria --volume block", "--volume: expected TYPE=SIZE, got 'block'"),
        ("flavor edit a100", "nothing to change"),
        ("flavor create a100 --label fast", "--label: expected NAME=VALUE, got 'fast'"),
        ("package edit small", "nothing to change"),
        ("scores maria --since yesterday", "--since: 'yesterday' is not a duration"),
        ("quota set maria --gpus few", "--gpus: expected a number or the word none, got 'few'"),
        ("quota set maria --memory much", "--memory: 'much' is not a size"),
        ("events --since soon", "--since: 'soon' is not a duration"),
        ("events --until 2026-13-01", "--until: '2026-13-01' is not a time"),
        ("login", "--user: the user name is missing"),
        ("login --user maria", "there is no terminal to ask for a password"),
        ("jobs -w -o json", "--watch draws on the screen"),
        ("completion show tcsh", "shell: 'tcsh' is not supported"),
        ("user create maria --password-stdin --no-password", "exclude each other"),
        ("config import none.json", "cannot read none.json: No such file"),
    ],
)
def test_wrong_usage_is_exit_code_2_with_the_reason(args: str, message: str) -> None:
    result = corral(*args.split())
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_wrong_usage_is_a_problem_when_json_was_asked_for_anywhere() -> None:
    for args in (["-o", "json", "jobz"], ["jobs", "--limit", "x", "-ojson"], ["jobs", "--output=json", "--nope"]):
        result = corral(*args)
        assert result.exit_code == 2
        assert problem_on_stderr(result)["type"] == "/problems/usage"
    # behind -- it is the program's own
    assert corral("submit", "--nope", "--", "tool", "-o", "json").stderr.startswith("Error:")


def test_an_empty_password_is_not_sent() -> None:
    result = corral("login", "--user", "maria", "--password-stdin", stdin="\n")
    assert result.exit_code == 2
    assert "the password is empty" in result.stderr


def test_a_broken_credentials_file_is_reported_with_a_fix(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "credentials.json").write_text("garbage")
    for args in (["whoami"], ["login", "--user", "maria", "--password-stdin"], ["logout"]):
        result = corral(*args, stdin="secret\n")
        assert result.exit_code == 1
        assert "cannot read the stored tokens" in result.stderr
        assert f"rm {own_home / 'credentials.json'}" in result.stderr
    # a token that is given makes the file unnecessary
    with scripted(lambda seen, n: as_json({"name": "m", "role": "scientist", "must_change_password": False})) as server:
        assert corral("whoami", "--server", server.url, "--token", "t").exit_code == 0


def test_several_jobs_are_done_one_by_one_and_the_first_refusal_counts() -> None:
    def answer(path: str) -> Answer:
        if "j-2" in path:
            return problem(404, detail="no job j-2")
        return as_json({"id": path.split("/")[4], "state": "stopping"})

    with scripted(lambda seen, n: answer(seen.path)) as server:
        result = corral("stop", "j-1", "j-2", "j-3", "--server", server.url)
        as_document = corral("stop", "j-1", "j-2", "j-3", "--server", server.url, "-o", "json")
    assert result.exit_code == as_document.exit_code == 4
    assert result.stdout.splitlines() == ["j-1 is stopping", "j-3 is stopping"]
    assert result.stderr == "j-2: Error: no job j-2\n"
    assert [job["id"] for job in json.loads(as_document.stdout)["items"]] == ["j-1", "j-3"]
