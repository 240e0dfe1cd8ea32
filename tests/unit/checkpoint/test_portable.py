"""The helper runs where corral does not: an older Python, nothing installed, or a corral of another version."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import corral.checkpoint
from corral.checkpoint.slim import install_slim

PACKAGE = Path(corral.checkpoint.__file__).parent
MODULES = sorted(PACKAGE.glob("*.py"))
FULL = PACKAGE.parent.parent


def run(code: str, *flags: str, path: list[Path], **env: str) -> str:
    """In an interpreter that finds nothing but the standard library and `path`."""
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, path)), **env}
    done = subprocess.run([sys.executable, "-S", *flags, "-c", code], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_module_is_python_3_9_and_of_the_standard_library(module: Path) -> None:
    with tokenize.open(module) as file:
        tree = ast.parse(file.read(), feature_version=(3, 9))
    # Types written for later versions are fine as long as they are never evaluated.
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported = [node.module or ""]
        else:
            continue
        for name in imported:
            assert name.split(".")[0] in sys.stdlib_module_names or name.startswith("corral.checkpoint"), name


def test_a_program_without_corral_saves_and_resumes(tmp_path: Path) -> None:
    slim = install_slim(tmp_path / "slim")
    env = {"CORRAL_CHECKPOINT_DIR": str(tmp_path / "checkpoints")}
    save = "from corral import checkpoint; checkpoint.save({'a': 1}, step=3)"
    restore = """
import sys
from corral import checkpoint
print(checkpoint.restore(), checkpoint.steps_done())
others = {name for name in sys.modules if name.startswith('corral.') and not name.startswith('corral.checkpoint')}
assert not others, others
"""
    run(save, path=[slim], **env)
    assert run(restore, path=[slim], **env) == "{'a': 1} 3"


def test_beside_a_full_corral_both_are_found(tmp_path: Path) -> None:
    slim = install_slim(tmp_path / "slim")
    code = """
import corral.checkpoint, corral.core.quantities
print(corral.checkpoint.__file__); print(corral.core.quantities.__file__)
"""
    helper, core = run(code, path=[slim, FULL]).splitlines()
    assert Path(helper).is_relative_to(slim)
    assert Path(core).is_relative_to(FULL)


def test_installing_again_renews_what_changed_and_removes_what_is_gone(tmp_path: Path) -> None:
    install_slim(tmp_path)
    target = tmp_path / "corral" / "checkpoint"
    untouched = (target / "layout.py").stat().st_mtime_ns
    (target / "keeper.py").write_text("of another version")
    (target / "gone.py").touch()
    install_slim(tmp_path)
    assert {path.name for path in target.iterdir()} == {path.name for path in MODULES}
    assert (target / "keeper.py").read_text() == (PACKAGE / "keeper.py").read_text()
    assert (target / "layout.py").stat().st_mtime_ns == untouched
