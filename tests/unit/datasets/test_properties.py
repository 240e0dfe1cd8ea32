"""Any directory is restored unchanged, and garbage collection never removes data that a version needs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.datasets.content.chunker import LEAST, MOST, cuts_of
from corral.datasets.content.packs import decode_index, encode_index
from corral.datasets.content.pieces import _Table
from corral.datasets.history.records import digest_of
from tests.unit.datasets.trees_of_files import Content, noise, read_files, repository_in, write_files

NAMES = (
    st.binary(min_size=1, max_size=12)
    .map(lambda raw: raw.replace(b"/", b"_").replace(b"\0", b"0").decode("utf-8", "surrogateescape"))
    .filter(lambda name: name not in (".", ".."))
)
CONTENTS: st.SearchStrategy[Content] = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=20).map(lambda data: ("x", data)),
    st.sampled_from(["a", "../up", "/etc/passwd", "no such\nthing"]).map(lambda target: ("->", target)),
    st.none(),
    st.integers(0, 3).map(lambda seed: noise(MOST + 70_000, seed)),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Content]:
    files: dict[str, Content] = {}
    folders: set[str] = set()
    for path in draw(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=8)):
        name = "/".join(path)
        above = {"/".join(path[:depth]) for depth in range(1, len(path))}
        if name not in files and name not in folders and not above & files.keys():
            files[name] = draw(CONTENTS)
            folders |= above
    return files


@settings(max_examples=25, deadline=None)
@given(first=trees(), second=trees())
def test_two_versions_come_back_as_they_were(first: dict[str, Content], second: dict[str, Content]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository = repository_in(folder)
        made = []
        for number, files in enumerate((first, second)):
            work = write_files(folder / f"work{number}", files)
            made.append(repository.commit("data", work, message="m", author="ada"))
        assert made[1].created == (first != second)
        repository.checkout("data", made[0].commit.id, folder / "copy")
        assert read_files(folder / "copy") == first
        repository.checkout("data", "latest", folder / "copy", update=True)
        assert read_files(folder / "copy") == second
        diff = repository.diff("data", made[0].commit.id, "latest")
        kept = {path for path in first if path in second and first[path] == second[path]}
        touched = {change.path for change in (*diff.added, *diff.removed, *diff.changed)}
        assert not kept & touched
        assert (first.keys() ^ second.keys()) <= touched


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["commit", "remove", "collect"])), max_size=9))
def test_collecting_never_takes_what_a_version_needs(steps: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository = repository_in(folder)
        for turn, (dataset, what) in enumerate(steps):
            if what == "commit":
                # Some of it is shared between datasets, some between versions, some is new.
                files: dict[str, Content] = {"own": noise(300, turn), "same": noise(400, turn % 2), dataset: b"x"}
                work = write_files(folder / dataset, files)
                repository.commit(dataset, work, message="m", author="ada")
            elif what == "remove" and dataset in repository.metadata.datasets():
                repository.remove(dataset)
            else:
                repository.collect_garbage(dry_run=False, grace_seconds=-1)
            assert repository.verify().damages == ()
        report = repository.collect_garbage(dry_run=False, grace_seconds=-1)
        left = repository.collect_garbage(grace_seconds=-1)
        assert (left.garbage, report.waiting_packs) == ((), 0)
        if not repository.metadata.datasets():
            assert left.packs == 0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 5), at=st.integers(0, 6 << 20), put_in=st.binary(min_size=1, max_size=40))
def test_a_cut_depends_on_what_is_around_it(seed: int, at: int, put_in: bytes) -> None:
    data = noise(6 << 20, seed)
    pieces, changed = pieces_of(data), pieces_of(data[:at] + put_in + data[at:])
    assert b"".join(pieces) == data
    assert all(LEAST < len(piece) <= MOST for piece in pieces[:-1])
    # A few pieces around the change are new, all others are the same.
    assert len(set(changed) - set(pieces)) <= 6


def pieces_of(data: bytes) -> list[bytes]:
    """Cuts like a commit: in segments, each beginning at the last cut of the one before."""
    pieces, at, segment = [], 0, 2 << 20
    while at < len(data):
        part = data[at : at + segment]
        cuts = cuts_of(part, last=at + segment >= len(data))
        pieces += [part[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False)]
        at += cuts[-1]
    return pieces


def test_segments_do_not_change_the_cuts_and_repetitions_end_somewhere() -> None:
    data = noise(5 << 20, 9)
    cuts = cuts_of(data, last=True)
    assert [data[a:b] for a, b in zip([0, *cuts], cuts, strict=False)] == pieces_of(data)
    assert {len(piece) for piece in pieces_of(b"\0" * (3 << 20))[:-1]} == {LEAST + 1}
    # Nothing looks like a cut in this: every piece is as long as it may be.
    words = np.full(1 << 20, 0x01010101, dtype="<u4").tobytes()
    assert {len(piece) for piece in pieces_of(words)} <= {MOST, LEAST + 1, len(words) % (LEAST + 1)}


def test_pieces_are_found_whatever_bytes_their_digests_end_with() -> None:
    digests = [bytes(30) + end for end in (b"\0\0", b"\0\1", b"\1\0", b"\xff\0")]
    pack, data = encode_index("data", 1.0, [(digest, 10) for digest in digests])
    index = decode_index(pack, data)
    table = _Table.of([index], frozenset())
    places = table.find([*digests, digest_of(b"another")], trusted=True)
    assert [place.offset if place else None for place in places] == [0, 10, 20, 30, None]
