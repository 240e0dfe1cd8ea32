#!/usr/bin/env python3
"""Checks that a release is complete: `make release-check`.

1. The version is in pyproject.toml only, and the changelog has a section for it with a date.
2. The metadata of the project is complete.
3. The locks agree with each other and have no address.
4. The generated API description is current.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def problems(root: Path = ROOT) -> Iterator[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    yield from version_problems(root, project["version"])
    for key in ("description", "readme", "license", "authors", "classifiers", "keywords", "requires-python"):
        if not project.get(key):
            yield f"pyproject.toml: project.{key} is missing"
    yield from lock_problems(root)


def version_problems(root: Path, version: str) -> Iterator[str]:
    changelog = (root / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md: there is no line `## {version} (YYYY-MM-DD)`"
    for path in sorted((root / "src" / "corral").rglob("*.py")):
        if re.search(r"^(__version__|VERSION) = [\"']\d", path.read_text(), re.MULTILINE):
            yield f"{path.relative_to(root)}: the version belongs into pyproject.toml only"


def lock_problems(root: Path) -> Iterator[str]:
    pins = {
        name: set(_PIN.findall((root / name).read_text()))
        for name in ("requirements.lock", "requirements-runtime.lock")
    }
    for name, version in sorted(pins["requirements-runtime.lock"] - pins["requirements.lock"]):
        yield f"requirements-runtime.lock: {name} {version} is not in requirements.lock: run make lock"
    for name in pins:
        if "://" in (root / name).read_text():
            yield f"{name}: it names an address"


def main() -> None:
    found = list(problems())
    described = subprocess.run(
        [sys.executable, "-m", "corral.server.http.openapi"], capture_output=True, text=True, check=True
    )
    if described.stdout != (ROOT / "docs" / "reference" / "openapi.json").read_text():
        found.append("docs/reference/openapi.json is not current: run make openapi")
    for line in found:
        sys.stderr.write(f"{line}\n")
    if found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
