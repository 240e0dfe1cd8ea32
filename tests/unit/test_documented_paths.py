"""Modules and pages that the documentation names exist, and its grid of areas is the one of the folders."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "corral"
PAGES = sorted(chain((ROOT / "docs").rglob("*.md"), ROOT.glob("*.md")))
#: What a path of a page may be relative to.
BASES = (PACKAGE, ROOT, ROOT / "tests", ROOT / "console" / "src")

MODULE = re.compile(r"(?<![\w./<{$~-])(\w[\w./-]*/[\w.-]+\.(?:py|sh|ts|tsx))\b")
LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
GRID_ROW = re.compile(r"^\| `(\w+)` \| [^|]* ((?:\|[ ●]+)+)\|$", re.MULTILINE)
#: The folders behind each column of the grid; one of them is enough.
COLUMNS = (
    ("src/corral/core",),
    ("src/corral/control",),
    ("src/corral/stores",),
    ("src/corral/server", "src/corral/server/routes", "src/corral/server/schemas"),
    ("src/corral/client",),
    ("src/corral/cli",),
    ("console/src/pages",),
    ("docs/how-to",),
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors_of(page: Path) -> set[str]:
    """Builds anchors like code forges do from headings, and those that the page sets (translated pages keep the English
    ones).
    """
    text = page.read_text()
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
    return made | set(ANCHOR.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_module_that_is_named_exists(page: Path) -> None:
    named = sorted(set(MODULE.findall(page.read_text())))
    missing = [path for path in named if not any((base / path).is_file() for base in BASES)]
    assert not missing, f"{name_of(page)} names modules that do not exist: {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    wrong = []
    for target, anchor in LINK.findall(page.read_text()):
        if "://" in target or target.startswith("mailto:"):
            continue
        linked = (page.parent / target).resolve() if target else page
        if not linked.exists() or (anchor and linked.suffix == ".md" and anchor[1:] not in anchors_of(linked)):
            wrong.append(target + anchor)
    assert not wrong, f"{name_of(page)} has links that lead nowhere: {', '.join(wrong)}"


ROUTE = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (?:/api/v1)?(/[\w/{}.:-]*[\w}])")
#: Routes that the API description leaves out: redirects of browsers, and WebSockets.
UNDESCRIBED = {("GET", "/auth/ID/login"), ("GET", "/jobs/JOB/shell")}


def test_every_route_that_is_named_exists() -> None:
    described = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text())["paths"]
    patterns = [
        (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path.removeprefix("/api/v1"))))
        for path, methods in described.items()
        for method in methods
    ]
    wrong = [
        f"{name_of(page)}: {method} {path}"
        for page in PAGES
        for method, path in ROUTE.findall(page.read_text())
        if (method, path) not in UNDESCRIBED
        and not any(method == known and pattern.fullmatch(path) for known, pattern in patterns)
    ]
    assert not wrong, f"there are no such routes: {', '.join(wrong)}"


def test_the_grid_is_the_one_of_the_folders() -> None:
    rows = GRID_ROW.findall((ROOT / "docs" / "architecture.md").read_text())
    shown = {area: tuple("●" in cell for cell in marks.strip("|").split("|")) for area, marks in rows}
    real = {area: tuple(any((ROOT / top / area).is_dir() for top in tops) for tops in COLUMNS) for area in shown}
    assert len(shown) == 12
    assert shown == real


def test_the_architecture_stays_short() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text().splitlines()) <= 250
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80
