"""Transfers against files in memory that fail as a server does: what is copied, reported and kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from corral.client.http.errors import Forbidden, ServerUnreachable, problem_of
from corral.client.http.retries import Persistence
from corral.client.storage.download import Download, NotVerified, part_path
from corral.client.storage.places import LocalSide, VolumeSide
from corral.client.storage.transfers import Summary, Transfer, prepared
from corral.client.storage.upload import PART_BYTES, LocalSource, Upload
from corral.client.storage.volume_files import VolumeFiles, time_text
from corral.client.views import VolumeView
from corral.core.storage.checksums import checksum_of

VOLUME = {"id": "v-1", "name": "data", "type": "filesystem"}
MIB = 1024 * 1024


class Answer:
    def __init__(self, content: bytes, status: int, headers: dict[str, str], cut_after: int | None) -> None:
        self._content = content
        self._cut_after = cut_after
        self.status_code = status
        self.headers = headers

    def iter_raw(self, size: int) -> Iterator[bytes]:
        shown = self._content if self._cut_after is None else self._content[: self._cut_after]
        for at in range(0, len(shown), size):
            yield shown[at : at + size]
        if self._cut_after is not None:
            raise ServerUnreachable("http://x", "cut")


class MemoryFiles:
    """An imitation of `VolumeFiles` for one volume."""

    def __init__(self, **files: bytes) -> None:
        self.files = {name.replace("__", "/"): content for name, content in files.items()}
        self.uploads: dict[str, dict[int, bytes]] = {}
        #: what went over the wire
        self.sent: list[tuple[str, int]] = []
        self.broken: dict[str, Exception] = {}
        #: how many bytes of each answer come before it breaks off, one answer after the other
        self.cuts: list[int] = []
        self.lock = threading.Lock()

    def list(self, volume: str, path: str = "", *, recursive: bool = False) -> Iterator[dict[str, Any]]:
        for name, content in sorted(self.files.items()):
            yield {"path": name, "kind": "file", "size": len(content), "modified_at": time_text(1000)}

    def put(self, volume: str, path: str, content: bytes, checksum: str, modified_ms: int) -> None:
        if path in self.broken:
            raise self.broken[path]
        assert checksum_of([content]) == checksum
        self.files[path] = content

    def make_directory(self, volume: str, path: str) -> None:
        self.sent.append((path, 0))

    def delete(self, volume: str, path: str) -> None:
        del self.files[path]

    @contextmanager
    def opened(self, volume: str, path: str, headers: dict[str, str]) -> Iterator[Answer]:
        content, tag = self.files[path], f'"{checksum_of([self.files[path]])[:8]}"'
        start = 0
        if "Range" in headers and headers.get("If-Range") in (None, tag):
            start = int(headers["Range"].removeprefix("bytes=").split("-")[0])
        answered = {"etag": tag, "content-length": str(len(content) - start), "X-Modified-At": time_text(1000)}
        self.sent.append((path, len(content) - start))
        cut = self.cuts.pop(0) if self.cuts else None
        yield Answer(content[start:], 206 if start else 200, answered, cut)

    def checksum(self, volume: str, path: str, size: int) -> dict[str, str]:
        found = checksum_of([self.files[path]])
        return {"checksum": found, "etag": f'"{found[:8]}"'}

    def begin_upload(self, volume: str, path: str, size: int, part_bytes: int, modified_ms: int) -> dict[str, Any]:
        return {"id": path, "part_bytes": part_bytes, "have": sorted(self.uploads.setdefault(path, {}))}

    def put_part(self, volume: str, upload: str, part: int, content: bytes, checksum: str) -> None:
        assert checksum_of([content]) == checksum
        with self.lock:
            self.sent.append((upload, part))
            self.uploads[upload][part] = content

    def complete_upload(self, volume: str, upload: str, checksum: str, size: int) -> None:
        parts = self.uploads.pop(upload)
        content = b"".join(parts[number] for number in sorted(parts))
        if checksum_of([content]) != checksum:
            raise problem_of(409, {"type": "/problems/checksum-mismatch"})
        self.files[upload] = content


class Quiet:
    def __init__(self) -> None:
        self.bytes = 0
        self.lock = threading.Lock()

    def planned(self, files: int, size_bytes: int) -> None:
        self.total = size_bytes

    def carried(self, size_bytes: int) -> None:
        with self.lock:
            self.bytes += size_bytes

    def file_done(self) -> None:
        pass


def persistence() -> Persistence:
    return Persistence(delays=(0.0, 0.0))


def side(files: MemoryFiles) -> VolumeSide:
    return VolumeSide(cast(VolumeFiles, files), cast(VolumeView, VOLUME), "", persistence())


def synced(source: LocalSide | VolumeSide, target: LocalSide | VolumeSide, **options: Any) -> Summary:
    task = prepared(source, "", target, "", **{"delete": False, "by_content": False, **options})
    return Transfer(persistence(), Quiet(), jobs=3).run([task])


def download(files: MemoryFiles, target: Path, progress: Quiet) -> Download:
    return Download(cast(VolumeFiles, files), "v-1", "big", target, persistence(), progress.carried)


def test_failed_file_stops_no_other_and_no_file_is_deleted(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    files = MemoryFiles(old=b"too much")
    files.broken["b"] = problem_of(409, {"detail": "there is no room"})
    done = synced(LocalSide(tmp_path), side(files), delete=True)
    assert (done.files, done.failed) == (2, {"data:/b": "there is no room"})
    assert set(files.files) == {"a", "c", "old"}
    files.broken.clear()
    done = synced(LocalSide(tmp_path), side(files), delete=True)
    assert (done.failed, done.deleted) == ({}, 1)
    assert set(files.files) == {"a", "b", "c"}


def test_error_that_concerns_every_file_ends_the_transfer_at_once(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).write_text("x")
    files = MemoryFiles()
    files.broken = {str(number): problem_of(403, {"detail": "no"}) for number in range(50)}
    with pytest.raises(Forbidden):
        synced(LocalSide(tmp_path), side(files))
    assert files.files == {}


def test_a_bare_directory_is_made_and_others_come_with_their_files(tmp_path: Path) -> None:
    (tmp_path / "bare" / "inner").mkdir(parents=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    files = MemoryFiles()
    synced(LocalSide(tmp_path), side(files))
    assert (files.sent, set(files.files)) == ([("bare/inner", 0)], {"full/file"})


def test_contents_decide_if_they_are_compared(tmp_path: Path) -> None:
    (tmp_path / "same").write_bytes(b"12345")
    (tmp_path / "other").write_bytes(b"12345")
    files = MemoryFiles(same=b"12345", other=b"54321")
    assert synced(LocalSide(tmp_path), side(files), by_content=True).files == 1
    assert files.files == {"same": b"12345", "other": b"12345"}


@pytest.mark.parametrize("had", [(), (0,), (1, 2)])
def test_parts_that_are_there_are_not_sent_again(tmp_path: Path, had: tuple[int, ...]) -> None:
    content = b"".join(bytes([number]) * PART_BYTES for number in range(2)) + b"the end"
    (tmp_path / "big").write_bytes(content)
    files, progress = MemoryFiles(), Quiet()
    files.uploads["big"] = {part: content[part * PART_BYTES : (part + 1) * PART_BYTES] for part in had}
    source = LocalSource(tmp_path / "big")
    with ThreadPoolExecutor(2) as pool:
        upload = Upload(
            cast(VolumeFiles, files), "v-1", "big", persistence(), progress.carried, pool, threading.Semaphore(2)
        )
        sent = upload.run(source)
    source.close()
    assert files.files["big"] == content
    assert sorted(part for _, part in files.sent) == [part for part in range(3) if part not in had]
    assert sent.size_bytes - sent.resumed_bytes == sum(
        len(content[n * PART_BYTES :][:PART_BYTES]) for _, n in files.sent
    )
    assert progress.bytes == len(content)


def test_a_part_that_went_bad_begins_the_file_anew(tmp_path: Path) -> None:
    content = b"x" * (PART_BYTES + 1)
    (tmp_path / "big").write_bytes(content)
    files = MemoryFiles()
    files.uploads["big"] = {0: b"y" * PART_BYTES}
    assert synced(LocalSide(tmp_path), side(files)).failed == {}
    assert files.files["big"] == content


def test_a_download_goes_on_after_every_cut(tmp_path: Path) -> None:
    files, progress = MemoryFiles(big=bytes(range(256)) * 4 * 4096), Quiet()
    files.cuts = [MIB, MIB, 10]
    received = download(files, tmp_path / "big", progress).run()
    assert (tmp_path / "big").read_bytes() == files.files["big"]
    assert [left for _, left in files.sent] == [4 * MIB, 3 * MIB, 2 * MIB, 2 * MIB - 10]
    assert (received.size_bytes, received.resumed_bytes, progress.bytes) == (4 * MIB, 0, 4 * MIB)
    assert (tmp_path / "big").stat().st_mtime == 1


@pytest.mark.parametrize("state", ["whole", "other", "torn", "none"])
def test_partial_upload_is_continued_only_from_the_same_source(tmp_path: Path, state: str) -> None:
    content = bytes(range(256)) * 4 * 4096
    files, progress, target = MemoryFiles(big=content), Quiet(), tmp_path / "big"
    part = part_path(target)
    part.write_bytes(content[:MIB] if state == "whole" else b"of something else")
    etag = f'"{checksum_of([content])[:8]}"' if state == "whole" else '"older"'
    texts = {"torn": '{"etag": "', "none": None}
    text = texts.get(state, json.dumps({"etag": etag, "size": len(content)}))
    if text is not None:
        part.with_name(part.name + ".json").write_text(text)
    received = download(files, target, progress).run()
    assert target.read_bytes() == content
    assert received.resumed_bytes == (MIB if state == "whole" else 0)
    assert progress.bytes == len(content)
    assert [place.name for place in tmp_path.iterdir()] == ["big"]


def test_a_download_that_is_wrong_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles(big=b"x" * 2 * MIB)
    tag = files.checksum("v-1", "big", 0)["etag"]
    monkeypatch.setattr(files, "checksum", lambda *_: {"checksum": "0" * 64, "etag": tag})
    with pytest.raises(NotVerified):
        download(files, tmp_path / "big", Quiet()).run()
    assert not (tmp_path / "big").exists()
