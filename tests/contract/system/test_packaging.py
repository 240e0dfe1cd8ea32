"""The installed packages, and the sources of the console: a wheel, a source archive, and types of the API."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.console_steps import ROOT, load

pytestmark = pytest.mark.slow

steps = load()
BUILT = "src/corral/server/console"
MADE_UP = {
    "index.html": "<!doctype html><title>corral</title>",
    "favicon.svg": "<svg/>",
    "assets/index-1a2b.js": "export {};",
    "assets/index-1a2b.js.gz": "packed",
    ".vite/manifest.json": "{}",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a release would have them, with a console that is built already."""
    copy = tmp_path_factory.mktemp("tree")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name, text in MADE_UP.items():
        path = copy / BUILT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (copy / "console" / "node_modules" / "react").mkdir(parents=True)
    (copy / "console" / "node_modules" / "react" / "index.js").write_text("// not ours")
    return copy


def environment(folder: Path) -> dict[str, str]:
    """No Node.js on the PATH, one that fails in its place: nothing may ask for it."""
    for name in ("node", "npm"):
        program = folder / name
        program.write_text("#!/bin/sh\necho this build must not need Node.js >&2; exit 1\n")
        program.chmod(0o755)
    clean = {key: value for key, value in os.environ.items() if key != steps.WHEN}
    return {**clean, "PATH": f"{folder}:{clean['PATH']}"}


def wheel_of(source: Path, target: Path, environ: dict[str, str]) -> list[str]:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = target.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_a_wheel_carries_the_console_and_none_of_its_sources(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    names = wheel_of(tree, tmp_path / "wheel", environment(tmp_path / "bin"))
    carried = {
        name.removeprefix("corral/server/console/") for name in names if name.startswith("corral/server/console/")
    }
    assert carried == {name for name in MADE_UP if not name.startswith(".")}
    assert "corral/server/http/pages/corral.css" in names
    strays = [name for name in names if "node_modules" in name or not re.match(r"corral(/|-[\d.]+\.dist-info/)", name)]
    assert strays == []
    assert [name for name in names if name.endswith((".ts", ".tsx"))] == []


def test_a_source_archive_needs_no_node_to_be_installed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    environ = environment(tmp_path / "bin")
    backend = tmp_path / "backend"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(backend), *requirements(tree)]
    subprocess.run(pip, check=True, capture_output=True)
    build = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=tree,
        env={**environ, "PYTHONPATH": str(backend)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {f"{BUILT}/index.html", f"{BUILT}/assets/index-1a2b.js", "hatch_build.py", "scripts/compress.mjs"} <= names
    assert "console/package-lock.json" in names, "its sources are part of the sources"
    assert [name for name in names if "node_modules" in name] == []
    installed = wheel_of(archive, tmp_path / "wheel", environ)
    assert "corral/server/console/index.html" in installed


def requirements(tree: Path) -> list[str]:
    return list(tomllib.loads((tree / "pyproject.toml").read_text())["build-system"]["requires"])


def test_the_types_of_the_api_are_current(tmp_path: Path) -> None:
    """`make openapi` writes them; without this test a changed route would surprise the console at run time."""
    program = ROOT / "console" / "node_modules" / ".bin" / "openapi-typescript"
    node = steps.system_node() or steps.packaged_node()
    if node is None or not program.exists():
        pytest.skip("the console's packages are not installed: make console")
    script = json.loads((ROOT / "console" / "package.json").read_text())["scripts"]["types"]
    committed, fresh = "src/api/schema.d.ts", tmp_path / "schema.d.ts"
    words = [str(fresh) if word == committed else word for word in shlex.split(script)]
    assert words[0] == "openapi-typescript"
    assert str(fresh) in words
    environ = {**os.environ, "PATH": f"{node}:{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        [program, *words[1:]], cwd=ROOT / "console", env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert fresh.read_text() == (ROOT / "console" / committed).read_text(), "run `make openapi` and commit the result"
