"""Files of volumes in a directory: found, written and deleted inside of it, and never anywhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.checkpoint.layout import last_of
from corral.control.ports.volume_files import FileKind, FileMissing, FileRefused
from corral.core.storage.checksums import checksum_of
from corral.core.storage.volumes import UPLOADS_DIRECTORY
from corral.datasets.work.scan import scan
from corral.stores.storage.uploads import ChecksumMismatch, PartsMissing, UploadOrder, Uploads
from corral.stores.storage.volume_directory import DirectoryFiles

SECRET = "the secret of another user"
PART = 4


class House:
    """One volume, and a file of another user beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "volume"
        self.root.mkdir(mode=0o750)
        self.secret = root / "secret.txt"
        self.secret.write_text(SECRET)
        self.files = DirectoryFiles(str(self.root))
        self.uploads = Uploads(str(self.root))

    def order(self, path: str, content: bytes, **other: object) -> UploadOrder:
        values: dict[str, object] = {
            "path": path,
            "size_bytes": len(content),
            "part_bytes": PART,
            "checksum": checksum_of([content]),
            "modified_ms": 1_700_000_000_123,
            "user": "ann",
        }
        return UploadOrder(**{**values, **other})  # type: ignore[arg-type]

    def put(self, path: str, content: bytes) -> None:
        order = self.order(path, content)
        self.uploads.put(order, content, lambda staged, _: self.files.publish(staged, path.split("/")))

    def send(self, upload_id: str, number: int, content: bytes, checksum: str | None = None) -> None:
        with self.uploads.part(upload_id, number) as part:
            part.write(content)
            part.finish(checksum or checksum_of([content]))

    def complete(self, upload_id: str, content: bytes) -> None:
        last_of(
            self.uploads.complete(
                upload_id,
                checksum_of([content]),
                lambda staged, order: self.files.publish(staged, order.path.split("/")),
            )
        )

    def read(self, path: str) -> bytes:
        opened = self.files.open(path.split("/"))
        try:
            return b"".join(opened.pieces(0, opened.size_bytes))
        finally:
            opened.close()

    def listed(self, path: str = "", *, page: int = 1000) -> list[str]:
        """Everything below, page by page."""
        found, after = [], None
        while True:
            entries, after = self.files.listed(path.split("/") if path else [], recursive=True, after=after, limit=page)
            found += [entry.path for entry in entries]
            if after is None:
                return found


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_file_goes_in_and_comes_out_with_its_time(house: House) -> None:
    house.put("données/a b.txt", b"hello")
    assert house.read("données/a b.txt") == b"hello"
    found = house.files.stat(["données", "a b.txt"])
    assert (found.kind, found.size_bytes, found.modified_ms) == (FileKind.FILE, 5, 1_700_000_000_123)
    made = (house.root / "données").stat()
    assert made.st_mode & 0o777 == 0o750, "as the volume's root"
    assert (house.root / "données" / "a b.txt").stat().st_mode & 0o777 == 0o640
    assert (made.st_uid, made.st_gid) == (house.root.stat().st_uid, house.root.stat().st_gid)


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_pages_of_a_walk_hold_everything_once(house: House, page: int) -> None:
    expected = []
    for name in ("a", "a/1", "a/2", "a/deep", "a/deep/x", "a-b", "b", "empty"):
        place = house.root / name
        if name in ("a", "a/deep", "empty"):
            place.mkdir()
        else:
            place.write_text(name)
        expected.append(name)
    expected.sort(key=lambda name: name.split("/"))
    (house.root / UPLOADS_DIRECTORY).mkdir()
    (house.root / UPLOADS_DIRECTORY / "hidden").write_text("x")
    assert house.listed(page=page) == expected
    assert house.listed("a", page=page) == [name for name in expected if name.startswith("a/")]


def test_links_inside_are_read_and_not_walked_through(house: House) -> None:
    house.put("runs/5/model", b"5")
    (house.root / "latest").symlink_to("runs/5")
    (house.root / "loop").symlink_to(".")
    assert house.read("latest/model") == b"5"
    assert house.listed() == ["latest", "loop", "runs", "runs/5", "runs/5/model"]


@pytest.mark.parametrize("target", ["../secret.txt", "{outside}", "nowhere", "/etc/passwd"])
def test_links_that_lead_out_are_not_followed(house: House, target: str) -> None:
    (house.root / "link").symlink_to(target.format(outside=house.secret))
    entries, _ = house.files.listed([], recursive=True, after=None, limit=10)
    assert [(entry.path, entry.kind) for entry in entries] == [("link", FileKind.OTHER)]
    with pytest.raises((FileMissing, FileRefused)):
        house.files.open(["link"])
    with pytest.raises((FileMissing, FileRefused)):
        house.files.stat(["link", "x"])


def test_nothing_is_written_through_links(house: House) -> None:
    outside = house.secret.parent / "outside"
    outside.mkdir()
    (house.root / "dir").symlink_to(outside)
    (house.root / "file").symlink_to(house.secret)
    with pytest.raises(FileRefused, match="no directory"):
        house.put("dir/x", b"attack")
    house.put("file", b"mine")
    with pytest.raises((FileMissing, FileRefused)):
        house.files.delete(["dir", "x"], recursive=True)
    house.files.delete(["dir"], recursive=True)
    assert list(outside.iterdir()) == []
    assert house.secret.read_text() == SECRET
    assert (house.root / "file").read_text() == "mine"


def test_the_place_of_uploads_cannot_be_replaced_by_a_link(house: House) -> None:
    outside = house.secret.parent / "outside"
    outside.mkdir()
    (house.root / UPLOADS_DIRECTORY).symlink_to(outside)
    with pytest.raises(FileRefused):
        house.put("x", b"attack")
    with pytest.raises(FileRefused):
        house.uploads.begin(house.order("x", b"attack"))
    assert list(outside.iterdir()) == []


def test_uploads_have_no_names(house: House) -> None:
    upload = house.uploads.begin(house.order("x", b"12345678"))
    with pytest.raises(FileMissing):
        house.files.open([UPLOADS_DIRECTORY, upload.id, "data"])
    with pytest.raises(FileMissing):
        house.files.delete([UPLOADS_DIRECTORY], recursive=True)
    with pytest.raises(FileMissing):
        house.put(f"{UPLOADS_DIRECTORY}/x", b"x")
    assert house.listed() == []


def test_a_directory_is_deleted_only_if_it_is_empty_or_one_means_it(house: House) -> None:
    house.put("a/b", b"x")
    with pytest.raises(FileRefused, match="not empty"):
        house.files.delete(["a"], recursive=False)
    with pytest.raises(FileRefused, match="directory has that name"):
        house.put("a", b"x")
    with pytest.raises(FileRefused, match="volume itself"):
        house.files.delete([], recursive=True)
    house.files.delete(["a"], recursive=True)
    assert house.listed() == []
    with pytest.raises(FileMissing):
        house.files.delete(["a"], recursive=True)


def test_an_upload_goes_on_where_it_was(house: House) -> None:
    content = b"0123456789"
    order = house.order("big", content)
    upload = house.uploads.begin(order)
    assert (upload.missing, upload.missing_bytes) == ([0, 1, 2], 10)
    house.send(upload.id, 2, content[8:])
    again = Uploads(str(house.root)).begin(order)
    assert (again.id, again.have, again.missing_bytes) == (upload.id, frozenset({2}), 8)
    with pytest.raises(PartsMissing) as refused:
        house.complete(upload.id, content)
    assert refused.value.missing == [0, 1]
    assert house.listed() == []
    house.send(upload.id, 0, content[:4])
    house.send(upload.id, 1, content[4:8])
    house.complete(upload.id, content)
    assert house.read("big") == content
    assert os.listdir(house.root / UPLOADS_DIRECTORY) == []
    with pytest.raises(FileMissing):
        house.complete(upload.id, content)


def test_upload_with_a_wrong_checksum_does_not_count(house: House) -> None:
    content = b"01234567"
    upload = house.uploads.begin(house.order("big", content))
    with pytest.raises(ChecksumMismatch):
        house.send(upload.id, 0, b"xxxx", checksum_of([b"0123"]))
    with pytest.raises(FileRefused, match="shorter"):
        house.send(upload.id, 0, b"012")
    with pytest.raises(FileRefused, match="longer"):
        house.send(upload.id, 0, b"01234")
    with pytest.raises(FileRefused, match="no part 2"):
        house.send(upload.id, 2, b"0123")
    assert house.uploads.get(upload.id).have == frozenset()
    house.send(upload.id, 0, b"0123")
    # A part that is there is not written over by one that is wrong.
    with pytest.raises(ChecksumMismatch):
        house.send(upload.id, 0, b"xxxx", checksum_of([b"0123"]))
    house.send(upload.id, 1, b"4567")
    house.complete(upload.id, content)
    assert house.read("big") == content


def test_a_wrong_whole_is_not_published_and_begins_anew(house: House) -> None:
    house.put("big", b"the old one")
    upload = house.uploads.begin(house.order("big", b"01234567", checksum=None))
    house.send(upload.id, 0, b"0123")
    house.send(upload.id, 1, b"4567")
    (house.root / UPLOADS_DIRECTORY / upload.id / "data").write_bytes(b"0123456x")
    with pytest.raises(ChecksumMismatch):
        house.complete(upload.id, b"01234567")
    assert house.read("big") == b"the old one"
    assert house.uploads.begin(upload.order).have == frozenset()


def test_a_list_of_parts_that_was_cut_short_loses_only_its_last(house: House) -> None:
    upload = house.uploads.begin(house.order("big", b"0123456789"))
    house.send(upload.id, 0, b"0123")
    house.send(upload.id, 1, b"4567")
    have = house.root / UPLOADS_DIRECTORY / upload.id / "have"
    have.write_bytes(have.read_bytes()[:-3])
    assert house.uploads.get(upload.id).have == {0}


def test_stale_uploads_are_swept(house: House) -> None:
    old = house.uploads.begin(house.order("old", b"0123"))
    new = house.uploads.begin(house.order("new", b"0123"))
    draft = house.root / UPLOADS_DIRECTORY / "draft-0011223344556677"
    draft.write_text("left by a server that died")
    for place in (draft, draft.parent / old.id, draft.parent / old.id / "data"):
        os.utime(place, (1000, 1000))
    assert house.uploads.sweep(before=2000) == [old.id]
    assert os.listdir(draft.parent) == [new.id]


def test_empty_files_and_directories_are_files_and_directories(house: House) -> None:
    house.put("empty", b"")
    assert house.read("empty") == b""
    assert house.files.make_directory(["x", "y"]).kind is FileKind.DIRECTORY
    assert house.files.make_directory(["x", "y"]).path == "x/y"
    with pytest.raises(FileRefused, match="no directory"):
        house.files.make_directory(["empty", "y"])
    assert house.listed() == ["empty", "x", "x/y"]


def test_names_that_are_no_text_are_shown_and_not_offered(house: House) -> None:
    (house.root / os.fsdecode(b"caf\xe9")).write_text("x")
    entries, _ = house.files.listed([], recursive=True, after=None, limit=10)
    assert [(entry.path, entry.kind) for entry in entries] == [("caf\\xe9", FileKind.OTHER)]


def test_unfinished_uploads_are_no_part_of_a_version_of_the_volume(house: House) -> None:
    house.uploads.begin(house.order("x", b"12345678"))
    house.put("kept", b"x")
    house.put(f"below/{UPLOADS_DIRECTORY}", b"a file of a user who likes that name")
    root = house.files.open_root()
    try:
        assert [file.path for file in scan(root).all_files()] == ["kept", f"below/{UPLOADS_DIRECTORY}"]
    finally:
        os.close(root)
