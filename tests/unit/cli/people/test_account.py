"""`corral login` with a one-time password needs a second line."""

from __future__ import annotations

from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import problem, scripted


def test_a_one_time_password_alone_is_answered_with_how_to_pipe_both() -> None:
    refusal = problem(403, type="/problems/password-change-required", detail="Choose your own password.")
    with scripted(lambda seen, before: refusal) as server:
        result = corral("login", "--user", "ann", "--password-stdin", stdin="one-time\n", CORRAL_SERVER=server.url)
    assert result.exit_code == 2
    assert "Error: the new password is missing" in result.stderr
    assert r"printf 'one-time\nnew\n' | corral login --user ann --password-stdin" in result.stderr
