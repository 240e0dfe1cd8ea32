"""The wheel as a new user installs it: the light client, the server, and a first job."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.console_steps import ROOT
from tests.contract.system.test_packaging import environment, tree

pytestmark = pytest.mark.slow
__all__ = ["tree"]

RUNTIME = ROOT / "requirements-runtime.lock"
PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


@pytest.mark.timeout(900)
def test_a_wheel_runs_a_first_job(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(tree)]
    subprocess.run(build, check=True, env=environment(tmp_path / "bin"), capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    done = subprocess.run(
        [ROOT / "scripts" / "first-job", wheel, tmp_path / "work"], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job j-1 is done" in done.stdout


def test_the_runtime_lock_is_part_of_the_whole_lock() -> None:
    runtime, whole = (set(PIN.findall(path.read_text())) for path in (RUNTIME, ROOT / "requirements.lock"))
    assert runtime < whole, runtime - whole
    names = {name for name, _ in runtime}
    assert {"fastapi", "sqlalchemy", "psycopg", "typst", "s3fs", "gcsfs"} <= names
    assert not names & {"playwright", "jupyterlab", "pytest", "mypy", "hypothesis", "schemathesis"}
    assert "://" not in RUNTIME.read_text()


def test_extras_are_named_in_the_message_about_missing_parts() -> None:
    from corral.cli.terminal.missing_parts import EXTRAS, missing_part

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])
    refusal = missing_part(ModuleNotFoundError("No module named 'fastapi.routing'", name="fastapi.routing"))
    assert refusal is not None
    assert refusal.hint == "pip install 'corral[server]'"
    assert missing_part(ModuleNotFoundError("x", name="some_other_module")) is None
