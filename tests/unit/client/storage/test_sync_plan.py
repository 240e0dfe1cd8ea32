"""Plans of syncs: carried out, both sides are the same, and nothing is done that need not be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.client.storage.sync_plan import Entry, Plan, Tree, plan

DIRECTORY = Entry(kind="dir")


def file(size: int = 1, modified_ms: int = 1000) -> Entry:
    return Entry(kind="file", size=size, modified_ms=modified_ms)


def tree(**entries: Entry) -> Tree:
    return Tree(entries=entries)


def carried_out(todo: Plan, source: Tree, target: Tree, now_ms: int = 10**6) -> dict[str, Entry]:
    """Carries out a plan like storage: it refuses impossible steps."""
    found = dict(target.entries)

    def remove(path: str) -> None:
        assert not [below for below in found if below.startswith(f"{path}/")], f"{path} is not empty"
        del found[path]

    def check_parents(path: str) -> None:
        names = path.split("/")
        for depth in range(1, len(names)):
            parent = "/".join(names[:depth])
            assert found.setdefault(parent, DIRECTORY).kind == "dir", f"{parent} is no directory"

    for path in todo.clear:
        remove(path)
    for path in todo.directories:
        check_parents(path)
        assert path not in found
        found[path] = DIRECTORY
    for path in todo.copy:
        check_parents(path)
        assert found.get(path, file()).kind != "dir"
        mine = source.entries[path]
        found[path] = mine if target.keeps_times else replace(mine, modified_ms=now_ms)
    for path in todo.delete:
        remove(path)
    return found


names = st.sampled_from(["a", "b", "a-b", "c d", "é"])
entries = st.one_of(
    st.builds(file, st.integers(0, 2), st.integers(1, 3)),
    st.just(DIRECTORY),
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Every path with the directories that it is in."""
    found: dict[str, Entry] = {}
    for way in draw(st.lists(st.lists(names, min_size=1, max_size=3), max_size=8)):
        for depth in range(1, len(way)):
            if found.setdefault("/".join(way[:depth]), DIRECTORY).kind != "dir":
                break
        else:
            found.setdefault("/".join(way), draw(entries))
    return Tree(entries=found)


def without_times(found: Mapping[str, Entry]) -> dict[str, Entry]:
    return {path: replace(entry, modified_ms=0) for path, entry in found.items()}


@given(trees(), trees())
@settings(max_examples=150, deadline=None)
def test_after_a_sync_both_sides_are_the_same_and_a_second_does_nothing(source: Tree, target: Tree) -> None:
    todo = plan(source, target, delete=True)
    assert not todo.refused
    after = Tree(entries=carried_out(todo, source, target))
    assert after.entries == source.entries
    assert plan(source, after, delete=True).is_empty


@given(trees(), trees())
@settings(max_examples=100, deadline=None)
def test_without_deleting_nothing_that_is_there_goes(source: Tree, target: Tree) -> None:
    todo = plan(source, target)
    after = carried_out(todo, source, target)
    assert not todo.delete
    assert not todo.clear
    assert set(after) >= set(target.entries)
    for path, entry in source.entries.items():
        assert path in todo.refused or after[path] == entry


@given(trees(), trees())
@settings(max_examples=100, deadline=None)
def test_a_bucket_has_the_same_files_after_it(source: Tree, target: Tree) -> None:
    """A bucket has no directories, and its files have the time of their upload."""
    files = {path: entry for path, entry in target.entries.items() if entry.kind == "file"}
    bucket = Tree(entries=files, keeps_times=False, keeps_directories=False)
    todo = plan(source, bucket, delete=True)
    after = carried_out(todo, source, bucket)
    wanted = {path: entry for path, entry in source.entries.items() if entry.kind == "file"}
    now = {path: entry for path, entry in after.items() if entry.kind == "file"}
    assert without_times(now) == without_times(wanted)
    assert not plan(source, replace(bucket, entries=now), delete=True).copy


def test_a_file_is_the_same_by_size_and_time_or_by_contents() -> None:
    source = tree(same=file(5, 7), older=file(5, 7), longer=file(6, 7))
    target = tree(same=file(5, 7), older=file(5, 6), longer=file(5, 7))
    assert plan(source, target).copy == ("longer", "older")
    assert plan(source, target, equal_contents={"older"}).copy == ("longer", "same")


def test_entries_in_the_way_are_named_or_removed() -> None:
    source = Tree(entries={"x": file(), "y": DIRECTORY, "y/in": file(), "pipe": Entry(kind="other")})
    target = Tree(entries={"x": DIRECTORY, "x/old": file(), "y": file()})
    todo = plan(source, target)
    assert todo.refused == {
        "x": "is a directory there and a file here",
        "y": "is a file there and a directory here",
        "y/in": "y is a file there and a directory here",
    }
    assert todo.copy == ()
    cleared = plan(source, target, delete=True)
    assert cleared.clear == ("x/old", "x", "y")
    assert cleared.copy == ("x", "y/in")
    assert (cleared.left_out, dict(cleared.refused)) == (("pipe",), {})
