"""Wrong usage is answered with one sentence and one hint, and exit code 2: every line of wrong_usages.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.habits.wrong_usages import WrongUsage, wrong_usages
from tests.unit.cli.runner import corral

WITHOUT_SERVER = wrong_usages("without_server")


@pytest.mark.parametrize("wrong", WITHOUT_SERVER, ids=[wrong.typed for wrong in WITHOUT_SERVER])
def test_wrong_usage(wrong: WrongUsage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = corral(*wrong.words)
    wrong.check(result.exit_code, result.stdout, result.stderr)


def test_there_are_at_least_40() -> None:
    assert len({wrong.typed for wrong in [*WITHOUT_SERVER, *wrong_usages("with_server")]}) >= 40
