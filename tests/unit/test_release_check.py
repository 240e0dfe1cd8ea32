"""The findings of `make release-check`."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "scripts" / "release_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_needs_its_date_and_agreeing_locks(tmp_path: Path) -> None:
    check = load()
    for name in ("pyproject.toml", "CHANGELOG.md", "requirements.lock", "requirements-runtime.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src" / "corral").mkdir(parents=True)
    assert list(check.problems(tmp_path)) == ["CHANGELOG.md: there is no line `## 0.1.0 (YYYY-MM-DD)`"]
    text = (tmp_path / "CHANGELOG.md").read_text()
    (tmp_path / "CHANGELOG.md").write_text(text.replace("## 0.1.0 (unreleased)", "## 0.1.0 (2026-12-01)"))
    assert list(check.problems(tmp_path)) == []
    (tmp_path / "src" / "corral" / "one.py").write_text('VERSION = "0.2"\n')
    lock = (tmp_path / "requirements-runtime.lock").read_text()
    (tmp_path / "requirements-runtime.lock").write_text(lock + "strange==1.0\n# https://pypi.example\n")
    assert list(check.problems(tmp_path)) == [
        "src/corral/one.py: the version belongs into pyproject.toml only",
        "requirements-runtime.lock: strange 1.0 is not in requirements.lock: run make lock",
        "requirements-runtime.lock: it names an address",
    ]
