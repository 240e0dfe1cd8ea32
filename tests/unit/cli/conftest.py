"""No test of the command line sees this machine's own corral."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CORRAL_SERVER", "CORRAL_TOKEN", "CORRAL_PORT", "CORRAL_CONFIG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    monkeypatch.setenv("CORRAL_HOME", str(home))
    return home
