"""Places as people type them, and trees of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.client.http.errors import ClientError, ServerUnreachable, problem_of
from corral.client.http.retries import Interrupted, Persistence
from corral.client.storage.places import LocalSide, Place, PlaceRefused, parse_place
from corral.client.storage.volume_files import time_ms, time_text


@pytest.mark.parametrize(
    ("text", "volume", "path"),
    [
        ("data:/a/b", "data", "a/b"),
        ("data:/", "data", ""),
        ("data:", "data", ""),
        ("ann/data:/x y", "ann/data", "x y"),
        ("v-12:/x:y", "v-12", "x:y"),
        ("./data:/x", None, "./data:/x"),
        ("/data:/x", None, "/data:/x"),
        ("C:/x", None, "C:/x"),
        ("data", None, "data"),
        ("a/b/data:/x", None, "a/b/data:/x"),
        ("data:x", None, "data:x"),
        ("", None, ""),
    ],
)
def test_a_place_is_of_a_volume_or_of_this_machine(text: str, volume: str | None, path: str) -> None:
    assert parse_place(text) == Place(volume=volume, path=path)


@pytest.mark.parametrize(
    ("text", "is_directory", "name"),
    [("data:", True, ""), ("data:/x/", True, "x"), ("data:/x", False, "x"), ("here/", True, "here"), (".", False, ".")],
)
def test_path_with_a_final_slash_is_a_directory(text: str, is_directory: bool, name: str) -> None:
    place = parse_place(text)
    assert (place.is_directory_by_name, place.name) == (is_directory, name)


def test_a_tree_has_files_directories_and_what_is_neither(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "file").write_text("12345")
    (tmp_path / "link").symlink_to("deep")
    (tmp_path / ".file.corral-part").write_text("on its way")
    (tmp_path / ".file.corral-part.json").write_text("{}")
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("no text")
    os.utime(tmp_path / "deep" / "file", ns=(1_700_000_000_123_999_999,) * 2)
    entries = LocalSide(tmp_path).tree("").entries
    assert {path: entry.kind for path, entry in entries.items()} == {
        "deep": "dir",
        "deep/er": "dir",
        "deep/file": "file",
        "link": "other",
        os.fsdecode(b"caf\xe9"): "other",
    }
    assert (entries["deep/file"].size, entries["deep/file"].modified_ms) == (5, 1_700_000_000_123)
    assert LocalSide(tmp_path / "nothing").tree("").entries == {}
    assert LocalSide(tmp_path).entry("nothing") is None


def test_a_tree_that_cannot_be_read_is_no_empty_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(PlaceRefused, match="cannot be read: Permission denied"):
        LocalSide(tmp_path).tree("")


def test_times_survive_the_way_there_and_back() -> None:
    for moment in (0, 1, 999, 1_700_000_000_123, 4_000_000_000_001):
        assert time_ms(time_text(moment)) == moment


def test_passing_errors_are_tried_again_and_others_are_not() -> None:
    def answers(*errors: ClientError) -> list[int]:
        asked: list[int] = []
        left = list(errors)

        def request() -> None:
            asked.append(1)
            if left:
                raise left.pop(0)

        Persistence(delays=(0.0, 0.0)).keep_trying(request)
        return asked

    gone, busy = ServerUnreachable("http://x", "refused"), problem_of(503, {})
    assert len(answers(gone, busy)) == 3
    with pytest.raises(ServerUnreachable):
        answers(gone, gone, gone)
    with pytest.raises(ClientError):
        answers(problem_of(409, {}))


def test_a_stopped_request_is_not_retried() -> None:
    persistence = Persistence(delays=(60.0,))

    def request() -> None:
        persistence.stop()
        raise ServerUnreachable("http://x", "refused")

    with pytest.raises(Interrupted):
        persistence.keep_trying(request)
