"""The check of the folder layout reports folders and names that break the rules, and accepts the real tree."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts import load_script


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load_script("check_layout.py")


def test_the_source_tree_passes(check: ModuleType) -> None:
    assert list(check.problems()) == []
    assert list(check.page_problems()) == []


def test_the_pages_of_the_console_are_checked_without_their_tests(check: ModuleType, tmp_path: Path) -> None:
    pages = tmp_path / check.PAGES
    (pages / "jobs" / "logs").mkdir(parents=True)
    for number in range(check.MOST_MODULES):
        (pages / "jobs" / "logs" / f"Part{number}.tsx").touch()
        (pages / "jobs" / "logs" / f"rule{number}.test.ts").touch()
    assert list(check.page_problems(tmp_path, {})) == []
    (pages / "jobs" / "logs" / "texts.ts").touch()
    (pages / "helpers").mkdir()
    (pages / "helpers" / "text.ts").touch()
    assert list(check.page_problems(tmp_path, {})) == [
        "console/src/pages/jobs/logs has 16 modules, more than 15: divide it by topic",
        "console/src/pages/helpers: helpers is no area",
    ]


def test_a_folder_with_too_many_modules_is_reported(check: ModuleType) -> None:
    modules = [f"core/jobs/m{number}.py" for number in range(check.MOST_MODULES + 1)]
    (problem,) = check.large_folders(modules, {})
    assert problem.startswith("core/jobs has 16 modules")
    assert list(check.large_folders(modules[1:], {})) == []
    assert list(check.large_folders(modules, {"core/jobs": "a reason"})) == []


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("core/scheduling/placement/packing.py", ""),
        ("core/snapshot/changes.py", ""),
        ("server/routes/jobs/logs.py", ""),
        ("server/routes/paging.py", ""),
        ("core/helpers/text.py", "core/helpers: helpers is neither an area nor machinery of core"),
        ("control/snapshot/text.py", "control/snapshot: snapshot is neither an area nor machinery of control"),
        ("server/routes/http/logs.py", "server/routes/http: http is no area"),
        ("common/text.py", "common is no known layer: add it to MACHINERY and to docs/architecture.md"),
    ],
)
def test_folders_are_areas_or_known_machinery(check: ModuleType, module: str, problem: str) -> None:
    assert list(check.unknown_folders([module])) == ([problem] if problem else [])


@pytest.mark.parametrize(
    "modules",
    [
        ("core/jobs/limits.py", "control/jobs/limits.py"),
        ("server/routes/jobs/logs.py", "server/schemas/jobs/logs.py"),
        ("server/routes/jobs/logs.py", "server/jobs/logs.py"),
        ("control/jobs/jobs.py", "control/records/jobs.py"),
        ("control/ports/volumes.py", "control/ports/store/volumes.py"),
    ],
)
def test_views_of_the_same_thing_share_its_name(check: ModuleType, modules: tuple[str, ...]) -> None:
    assert list(check.same_names(list(modules), {})) == []


@pytest.mark.parametrize(
    "modules",
    [
        ("core/jobs/mounts.py", "core/storage/mounts.py"),
        ("core/jobs/mounts.py", "core/jobs/life/mounts.py"),
        ("server/routes/jobs/mounts.py", "server/schemas/storage/mounts.py"),
        ("server/routes/jobs/mounts.py", "server/http/mounts.py"),
        ("core/mounts.py", "core/storage/mounts.py"),
    ],
)
def test_different_things_do_not_share_a_name(check: ModuleType, modules: tuple[str, ...]) -> None:
    assert len(list(check.same_names(list(modules), {}))) == 1
    name = f"{modules[0].partition('/')[0]}/mounts"
    assert list(check.same_names(list(modules), {name: "a reason"})) == []


def test_exceptions_that_are_no_longer_needed_are_reported(check: ModuleType) -> None:
    assert len(list(check.large_folders(["core/jobs/one.py"], {"core/jobs": "a reason"}))) == 1
    assert len(list(check.same_names(["core/jobs/one.py"], {"core/one": "a reason"}))) == 1


def test_the_check_reads_the_tree(check: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "core" / "jobs").mkdir(parents=True)
    (tmp_path / "core" / "jobs" / "__init__.py").touch()
    (tmp_path / "core" / "oddities").mkdir()
    (tmp_path / "core" / "oddities" / "one.py").touch()
    assert "core/oddities: oddities is neither an area nor machinery of core" in list(check.problems(tmp_path))
