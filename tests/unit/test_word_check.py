"""The check of replaced words finds them in texts, identifiers and file names, and never lets a count grow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts import load_script


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load_script("check_words.py")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The user is told that nobody waits.", ["told", "nobody"]),
        ("def _told(self) -> None:", ["told"]),
        ("gives_way = givesWay(GIVEN_WAY)", ["gives way", "gives way", "given way"]),
        ('rule="protected-start"', ["protected start"]),
        ("class DatasetErrand(Errands):", ["errand", "errands"]),
        ("the next picture of the cluster", ["picture"]),
        ("kin = jobs_of_kin(job)", ["kin", "kin"]),
        # Parts of other words, and words that only look alike.
        ("king, unfolded, everlasting, pictured, giveaway, retold", []),
        ("of course it is stored", []),
        ("The job is preempted, and its owner is notified.", []),
    ],
)
def test_words_are_found_in_texts_and_identifiers(check: ModuleType, text: str, words: list[str]) -> None:
    assert check.banned_in(text, "src/corral/core/jobs/module.py") == words


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("protected_starts: 4", "docs/reference/configuration.md"),
        ('router.get("/collections/{errand}")', "src/corral/server/routes/datasets/datasets.py"),
        ('self.record(SYSTEM, "job.gave-way")', "src/corral/control/live/turn.py"),
        ('account = "nobody"', "src/corral/engines/local/engine.py"),
        ("pictures, labels = labelled()", "src/corral/presets/classification.py"),
    ],
)
def test_public_names_and_other_meanings_are_exempt(check: ModuleType, text: str, file: str) -> None:
    assert check.banned_in(text, file) == []


def test_an_exemption_of_a_file_holds_only_there(check: ModuleType) -> None:
    assert check.banned_in("pictures, labels = labelled()", "src/corral/core/jobs/module.py") == ["pictures"]


@pytest.mark.parametrize(
    ("line", "openings"),
    [
        ('"""What a job runs."""', ["What"]),
        ('"""Which jobs a list shows."""', ["Which"]),
        ("    #: of the hottest GPU", ["of"]),
        ("    #: temperature of the hottest GPU", []),
        ('    """Of one cluster, or of all."""', ["Of"]),
        ('    r"""Whose keys may connect."""', ["Whose"]),
        ("/** Whoever is signed in. */", ["Whoever"]),
        ('    """Until the command has ended."""', ["Until"]),
        ('"""The command of a job."""', []),
        ('"""Whether it runs."""', []),
        ('"""Offers of packages."""', []),
        ("# What follows is a comment.", []),
    ],
)
def test_docstrings_begin_with_a_noun_or_a_verb(check: ModuleType, line: str, openings: list[str]) -> None:
    assert check.banned_opening(line, "src/corral/core/jobs/module.py") == openings
    assert check.banned_opening(line, "docs/glossary.md") == []


def test_openings_are_counted_apart(check: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "src" / "corral" / "core"
    folder.mkdir(parents=True)
    (folder / "times.py").write_text('"""Those that are kept."""\n')
    assert list(check.places(tmp_path)) == []
    [place] = check.openings(tmp_path)
    assert (place.line, place.word) == (1, "Those")
    assert "a noun or a verb first" in str(place)


def test_places_are_files_lines_and_file_names(check: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "src" / "corral" / "core"
    folder.mkdir(parents=True)
    (folder / "told_times.py").write_text("one = 1\n# Nobody waits.\n")
    (folder / "image.png").write_bytes(b"told")
    found = list(check.places(tmp_path))
    assert [(place.file, place.line, place.word) for place in found] == [
        ("src/corral/core/told_times.py", 0, "told"),
        ("src/corral/core/told_times.py", 2, "nobody"),
    ]
    assert str(found[1]) == (
        "src/corral/core/told_times.py:2: nobody (write: the noun: the user, the owner, no job): # Nobody waits."
    )


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("src/corral/core/jobs/one.py", "src/corral/core"),
        ("src/corral/cli/main.py", "src/corral/cli"),
        ("console/src/pages/jobs/one.tsx", "console/src"),
        ("docs/how-to/one.md", "docs"),
        ("tests/unit/core/one.py", "tests/unit"),
        ("tests/conftest.py", "tests"),
    ],
)
def test_places_are_counted_by_folder(check: ModuleType, file: str, folder: str) -> None:
    assert check.folder_of(file) == folder


def test_a_count_may_fall_and_not_grow(check: ModuleType) -> None:
    found = {"docs": [check.Place("docs/one.md", line, "told", "is told") for line in (1, 2)]}
    assert list(check.problems(found, {"docs": 3})) == []
    assert list(check.problems(found, {"docs": 2})) == []
    first, *places = check.problems(found, {"docs": 1})
    assert first == "docs: 2 places with words that the glossary replaces, 1 are allowed"
    assert len(places) == 1
    assert len(list(check.problems(found, {}))) == 3


@pytest.mark.parametrize(
    ("line", "openings"),
    [
        ("def test_what_is_missing_is_named() -> None:", ["what"]),
        ("    async def test_it_is_current(self) -> None:", ["it"]),
        ("def test_one_that_waits_has_a_reason() -> None:", ["one"]),
        ("def test_one_of_two_writers_wins() -> None:", []),
        ("def test_one_time_password_gives_no_token() -> None:", []),
        ("def test_missing_parameters_are_named() -> None:", []),
    ],
)
def test_names_of_tests_begin_with_their_subject(check: ModuleType, line: str, openings: list[str]) -> None:
    assert check.banned_opening(line, "tests/unit/test_module.py") == openings
    assert check.banned_opening(line, "src/corral/core/module.py") == []


@pytest.mark.parametrize(
    ("line", "openings"),
    [
        ("    for one in volumes:", ["one"]),
        ("    return {one: path for one, path in found}", ["one"]),
        ("    for what, path in places:", ["what"]),
        ("    one = tx.volumes.get(ref)", ["one"]),
        ("    key = sorted(found, key=lambda it: it.name)", ["it"]),
        ("    for one, other in pairwise(paths):", []),
        ("    # Faster without instructions for it, in every Python.", []),
        ("    for volume in volumes:", []),
    ],
)
def test_variables_are_named_by_nouns(check: ModuleType, line: str, openings: list[str]) -> None:
    assert check.banned_opening(line, "src/corral/core/module.py") == openings
    assert check.banned_opening(line, "docs/example.py") == []
