"""Tests that the program of a workbench runs from a copy, without corral; whole it is run in tests/e2e."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from corral.engines.workbenches import program
from corral.engines.workbenches.program.files import NO_JUPYTER
from corral.server.wiring.foundation import WORKBENCH_PROGRAMS
from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches

MODULES = sorted(Path(program.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_of_the_program_are_valid_for_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))


def test_copied_program_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    files = DirectoryWorkbenches(lambda job_id: tmp_path / job_id, WORKBENCH_PROGRAMS)
    files.prepare("j-1", {"jupyter": True, "ssh": False}, [])
    workbench = tmp_path / "j-1" / "workbench"
    ran = subprocess.run(
        [sys.executable, "-ISu", str(workbench / "host.py")],
        env={"CORRAL_JOB_DIR": str(tmp_path / "j-1"), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == NO_JUPYTER, ran.stderr
    assert "there is no jupyter-lab in the PATH" in ran.stdout
    assert not list(workbench.rglob("__pycache__")), "compiled copies would outlive the modules"
