"""`corral up` names the option or the line that is wrong, and exits with 2, as its table of exit codes says."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.runner import corral


@pytest.fixture(autouse=True)
def collected_again() -> Iterator[None]:
    """The command stops the collection of garbage in its process."""
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("typed", "error", "hint"),
    [
        (["--port", "99999"], "--port: must be at most 65535, got 99999", "`corral up --help` explains it."),
        (["--virtual-gpus", "8A100"], "--virtual-gpus: virtual GPUs '8A100': expected COUNTxMODEL", "corral up --help"),
        (["--config", "none.yaml"], "none.yaml: cannot be read: No such file or directory", "corral config check"),
        (["--config", "bad.yaml"], "bad.yaml:1: schedulng: unknown key; did you mean 'scheduling'?", "config check"),
    ],
)
def test_a_wrong_configuration(
    typed: list[str], error: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("schedulng: {}\n")
    result = corral("up", *typed)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {error}")
    assert hint in result.stderr.splitlines()[-1]
