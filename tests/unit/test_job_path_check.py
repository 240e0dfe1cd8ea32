"""The check that only `corral.files` opens what jobs can change finds what it should."""

from __future__ import annotations

import ast
from types import ModuleType

import pytest

from tests.unit.scripts import load_script


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load_script("check_job_paths.py")


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        "os.open(name, flags)",
        "os.open(name, flags, dir_fd=held)",
        "os.chown(path, 1, 1)",
        "os.path.isdir(path)",
        "shutil.rmtree(path)",
        "path.write_text('x')",
        "(home / name).read_bytes()",
        "path.open('wb')",
        "path.open(encoding='utf-8')",
        "asyncio.to_thread(os.stat, path)",
        "from os import stat",
        "from shutil import rmtree",
    ],
)
def test_a_call_that_follows_a_path_is_found(check: ModuleType, code: str) -> None:
    assert list(check.calls(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["os.unlink(name, dir_fd=held)", "os.fstat(held)", "os.utime(descriptor)", "tables.open()", "place.read(name, 9)"],
)
def test_calls_from_a_descriptor_are_allowed(check: ModuleType, code: str) -> None:
    assert not list(check.calls(ast.parse(code)))


def test_paths_of_jobs_are_recognised(check: ModuleType) -> None:
    assert [name for _, name in check.job_paths(ast.parse("workspace.output_dir(job); driver.path_of(volume)"))] == [
        "output_dir",
        "path_of",
    ]


def test_every_folder_is_checked_or_runs_with_the_rights_of_a_user(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"datasets", "objects"} <= {*check.FOLDERS}
    assert list(check.problems()) == []
    monkeypatch.setattr(check, "FOLDERS", tuple(name for name in check.FOLDERS if name != "datasets"))
    assert any("datasets: say in check_job_paths.py whether" in problem for problem in check.problems())
