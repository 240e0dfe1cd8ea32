"""Files that a job can create to disturb the server, and the server's reactions."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.files import NotPlain, Place, descriptors, give_to, open_below, remove_tree, used_bytes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away: run as root")


@pytest.fixture(params=["openat2", "step by step"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's directory, opened both ways that kernels know."""
    if request.param != "openat2":
        monkeypatch.setattr(descriptors, "_OPENAT2", 100_000)
    (tmp_path / "j-1").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "j-1"


def put_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "outside" / "secret")


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_directory(path: Path) -> None:
    path.mkdir()


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("put", [put_link, put_pipe, put_directory, put_socket])
def test_only_regular_files_are_read_and_nothing_is_waited_for(home: Path, put: Callable[[Path], None]) -> None:
    put(home / "status")
    with Place.at(home.parent, home.name) as place:
        with pytest.raises(NotPlain):
            place.read("status", 100)
        assert not place.holds("status", b"secret")


def test_no_more_is_read_than_was_asked_for(home: Path) -> None:
    with (home / "large").open("wb") as file:
        file.truncate(1 << 40)
    with Place.at(home.parent, home.name) as place:
        assert place.read("large", 10) == bytes(10)


def test_no_link_is_followed_on_the_way(home: Path) -> None:
    (home / "way").symlink_to(home.parent / "outside")
    with Place.at(home.parent, home.name) as place:
        for names in (("way",), ("way", "secret"), ("way", "more")):
            with pytest.raises(NotPlain, match="a link is in the way"):
                place.below(*names)
        for name in ("..", ".", "", "a/b", "way/../.."):
            with pytest.raises(NotPlain, match="not the name of a file"):
                place.below(name)
    moved = home.with_name("moved")
    home.rename(moved)
    home.symlink_to(home.parent / "outside")
    with pytest.raises(NotPlain, match="a link is in the way"):
        Place.at(home.parent, home.name)


def test_open_place_stays_the_same_directory(home: Path) -> None:
    with Place.at(home.parent, home.name) as place:
        home.rename(home.with_name("moved"))
        home.symlink_to(home.parent / "outside")
        place.write("secret", b"mine")
    assert (home.parent / "outside" / "secret").read_text() == "secret"
    assert (home.parent / "moved" / "secret").read_text() == "mine"


@pytest.mark.parametrize("put", [put_link, put_pipe, put_socket])
def test_a_file_is_replaced_and_never_written_into(home: Path, put: Callable[[Path], None]) -> None:
    put(home / "settings")
    with Place.at(home.parent, home.name) as place:
        assert not place.write_once("settings", b"once")
        place.write("settings", b"whole", mode=0o640)
        assert place.read("settings", 100) == b"whole"
        assert place.stat("settings").st_mode & 0o777 == 0o640
        assert place.names(100) == ["settings"]
    assert (home.parent / "outside" / "secret").read_text() == "secret"


def test_a_file_is_put_once(home: Path) -> None:
    with Place.at(home.parent, home.name) as place:
        assert place.write_once("program.json", b"first")
        assert not place.write_once("program.json", b"second")
        assert place.read("program.json", 100) == b"first"
        assert place.stat("program.json").st_nlink == 1
        assert place.names(100) == ["program.json"]


def test_a_name_that_cannot_be_replaced_leaves_no_draft(home: Path) -> None:
    (home / "settings").mkdir()
    (home / "settings" / "x").touch()
    with Place.at(home.parent, home.name) as place:
        with pytest.raises(OSError, match="Is a directory"):
            place.write("settings", b"")
        assert place.names(100) == ["settings"]


def test_a_directory_is_made_once_and_something_else_is_said(home: Path) -> None:
    with Place.at(home.parent, home.name) as place:
        place.make("outputs", 0o750)
        place.make("outputs", 0o700)
        assert place.stat("outputs").st_mode & 0o777 == 0o750
        (home / "link").symlink_to(home / "outputs")
        (home / "file").touch()
        with pytest.raises(NotPlain, match="a link is in the way"):
            place.make("link")
        with pytest.raises(NotPlain, match="it is not a directory"):
            place.make("file")


@needs_root
def test_another_file_system_is_not_entered(home: Path) -> None:
    with pytest.raises(NotPlain) as refused:
        os.close(open_below(os.open("/", os.O_RDONLY), ("proc", "self")))
    assert refused.value.errno in (errno.EXDEV, errno.ELOOP)


def test_a_file_with_a_second_name_is_not_appended_to(home: Path) -> None:
    os.link(home.parent / "outside" / "secret", home / "have")
    with Place.at(home.parent, home.name) as place, pytest.raises(NotPlain, match="of its own"):
        descriptors.make_file(place.descriptor, "have", is_new=False)


@needs_root
def test_files_are_given_to_an_account_but_for_those_of_others(home: Path) -> None:
    other, account = 48500, 48501
    (home / "made" / "by" / "server").mkdir(parents=True)
    (home / "made" / "file").touch()
    (home / "way").symlink_to(home.parent / "outside")
    os.link(home.parent / "outside" / "secret", home / "second-name")
    (home / "others").touch()
    os.chown(home / "others", other, other)
    with Place.at(home.parent, home.name) as place:
        give_to(place.descriptor, account, account)
    owners = {path.name: path.lstat().st_uid for path in (home, *home.rglob("*"))}
    given = {"j-1": account, "made": account, "by": account, "server": account, "file": account}
    assert owners == {**given, "way": 0, "second-name": 0, "others": other}
    assert (home.parent / "outside").stat().st_uid == 0
    # Another account from now on: what the one before had goes along, and what a stranger has does not.
    with Place.at(home.parent, home.name) as place:
        give_to(place.descriptor, 48502, 48502)
    owners = {path.name: path.lstat().st_uid for path in (home, *home.rglob("*"))}
    assert owners["file"] == owners["j-1"] == 48502
    assert owners["others"] == other


def test_a_tree_is_removed_however_deep_and_nothing_outside(home: Path) -> None:
    (home / "way").symlink_to(home.parent / "outside")
    put_pipe(home / "pipe")
    closed = home / "closed" / "inner"
    closed.mkdir(parents=True)
    (closed / "file").touch()
    closed.chmod(0)
    (home / "closed").chmod(0)
    directory = os.open(home, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=directory)
        inner = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    os.close(directory)
    assert remove_tree(home)
    assert not home.exists()
    assert (home.parent / "outside" / "secret").read_text() == "secret"
    assert remove_tree(home)


def test_size_is_counted_without_following_links(home: Path) -> None:
    (home / "data").write_bytes(bytes(100_000))
    os.link(home / "data", home / "again")
    (home / "inner").mkdir()
    before = used_bytes(home)
    assert 100_000 <= before < 150_000
    (home / "inner" / "way").symlink_to("/usr")
    assert used_bytes(home) < before + 10_000


def test_very_many_names_are_read_in_order_a_portion_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "PORTION", 4)
    names = sorted(f"{number:x}" for number in range(23))
    for name in names:
        (tmp_path / name).touch()
    with Place.at(tmp_path) as place:
        assert list(descriptors.ordered_names(place.descriptor)) == names
        assert list(descriptors.ordered_names(place.descriptor, begin="a")) == [name for name in names if name >= "a"]
        # A file that is made or removed meanwhile changes nothing for the others.
        found = descriptors.ordered_names(place.descriptor)
        first = [next(found) for _ in range(3)]
        (tmp_path / names[10]).unlink()
        assert first + list(found) == [name for name in names if name != names[10]]
