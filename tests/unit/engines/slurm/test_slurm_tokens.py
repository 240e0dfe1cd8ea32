"""The token that slurmrestd gets, hidden from other processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from corral.engines.slurm.slurm_api.commands import SlurmUnavailable
from corral.engines.slurm.slurm_api.rest_tokens import PAUSE_SECONDS, SPARE_SECONDS, Tokens, parse_token
from tests.unit.engines.slurm.test_slurm_rest import made_token


def test_a_token_is_fetched_before_it_expires(tmp_path: Path) -> None:
    clock, file = [1000.0], tmp_path / "token"
    file.write_text(made_token(sun="a", exp=2000))
    tokens = Tokens(file=str(file), now=lambda: clock[0])
    first = tokens.current()
    file.write_text(made_token(sun="b", exp=9000))
    assert tokens.current() == first
    clock[0] = 2001 - SPARE_SECONDS
    later = tokens.current()
    assert later is not None
    assert (later.user, later.expires_at) == ("b", 9000)


def test_a_command_makes_tokens_but_not_in_a_storm(tmp_path: Path) -> None:
    clock, runs = [1000.0], tmp_path / "runs"
    # Each is longer than the one before.
    counted = f"runs = open({str(runs)!r}, 'a+'); runs.write('x'); runs.seek(0)"
    made = f"{counted}; print('SLURM_JWT={made_token(sun='a')}' + runs.read())"
    tokens = Tokens(command=[sys.executable, "-c", made], now=lambda: clock[0])
    first = tokens.current()
    assert first is not None
    assert not tokens.renew(first)
    clock[0] += PAUSE_SECONDS
    assert tokens.renew(first)
    assert runs.read_text() == "xx"


def test_a_source_without_a_token_is_reported_and_no_token_is_shown(tmp_path: Path) -> None:
    secret = made_token(sun="a")
    assert secret not in repr(parse_token(secret, "it"))
    cases = {
        "No such file": Tokens(file=str(tmp_path / "none")),
        "ended with 3: no right": Tokens(
            command=[
                sys.executable,
                "-c",
                f"import sys; print('{secret}'); print('no right', file=sys.stderr); sys.exit(3)",
            ]
        ),
        "gives no token": Tokens(command=["echo", f"{secret} {secret}"]),
        "No such file or directory": Tokens(command=["/no/such/program"]),
    }
    for words, tokens in cases.items():
        with pytest.raises(SlurmUnavailable, match=words) as caught:
            tokens.current()
        assert secret not in str(caught.value)
