"""`corral files get` writes only into the requested directory."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from corral.cli.jobs.files import _unpack


def unpacked(target: Path, *members: tuple[str, str | None]) -> list[str]:
    """The names below the target after an archive of (name, where a link leads to) was unpacked there."""
    with TemporaryFile() as draft:
        with tarfile.open(fileobj=draft, mode="w:gz") as archive:
            for name, link in members:
                member = tarfile.TarInfo(name)
                if link is None:
                    member.size = 3
                    archive.addfile(member, io.BytesIO(b"new"))
                else:
                    member.type, member.linkname = tarfile.SYMTYPE, link
                    archive.addfile(member)
        _unpack(draft, target)
    return sorted(path.relative_to(target).as_posix() for path in target.rglob("*"))


def test_files_directories_and_links_inside(tmp_path: Path) -> None:
    names = unpacked(tmp_path / "here", ("run/loss.txt", None), ("run/latest", "loss.txt"), ("deep/er/up", "../../run"))
    assert names == ["deep", "deep/er", "deep/er/up", "run", "run/latest", "run/loss.txt"]
    assert (tmp_path / "here" / "deep" / "er" / "up" / "latest").read_text() == "new"


@pytest.mark.parametrize(
    "members",
    [
        [("/{outside}/planted", None)],
        [("../planted", None)],
        [("a/../../planted", None)],
        [("way", "{outside}"), ("way/planted", None)],
        [("way", ".."), ("way/planted", None)],
        [("here", "."), ("way", "here/.."), ("way/planted", None)],
        [("a/way", "../.."), ("a/way/planted", None)],
    ],
)
def test_nothing_is_put_outside(tmp_path: Path, members: list[tuple[str, str | None]]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    given = [
        (name.replace("{outside}", str(outside)), link and link.replace("{outside}", str(outside)))
        for name, link in members
    ]
    unpacked(tmp_path / "here", *given)
    assert not list(outside.iterdir())
    assert not (tmp_path / "planted").exists()
    links = [path for path in (tmp_path / "here").rglob("*") if path.is_symlink()]
    assert all(path.resolve().is_relative_to(tmp_path / "here") for path in links)
