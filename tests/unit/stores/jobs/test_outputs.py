"""Files of jobs: what is inside is found, and nothing outside is ever opened, whatever a job does to its directory."""

from __future__ import annotations

import io
import os
import socket
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from corral.control.ports import OutputKind, OutputMissing, OutputRefused
from corral.server.http.archives import ChangedWhileRead, tar_gz
from corral.stores.jobs.job_directories import DirectoryWorkspace
from corral.stores.jobs.outputs import DirectoryOutputs

JOB = "j-7"
SECRET = "the secret of another user"


class House:
    """One job's output directory, and what lies around it."""

    def __init__(self, root: Path) -> None:
        workspace = DirectoryWorkspace(root / "jobs")
        workspace.prepare(JOB)
        workspace.prepare("j-8")
        self.there = workspace.output_dir(JOB)
        self.store = DirectoryOutputs(workspace)
        self.secret = root / "secret.txt"
        self.secret.write_text(SECRET)
        (workspace.output_dir("j-8") / "theirs.txt").write_text(SECRET)
        (self.there / "plots").mkdir()
        (self.there / "plots" / "loss.txt").write_text("loss")
        (self.there / "model.bin").write_bytes(b"0123456789")

    def read(self, path: str) -> bytes:
        opened = self.store.open(JOB, path.split("/") if path else [])
        try:
            assert not opened.is_directory
            return b"".join(opened.pieces(0, opened.size_bytes))
        finally:
            opened.close()

    def kinds(self, path: str = "") -> dict[str, str]:
        entries, _ = self.store.entries(JOB, path.split("/") if path else [], after=None, limit=500)
        return {entry.name: entry.kind for entry in entries}

    def packed(self, path: str = "") -> tarfile.TarFile:
        opened = self.store.open(JOB, path.split("/") if path else [])
        try:
            return tarfile.open(fileobj=io.BytesIO(b"".join(tar_gz(opened.members()))), mode="r:gz")
        finally:
            opened.close()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_output_directory_is_listed(house: House) -> None:
    assert house.kinds() == {"model.bin": "file", "plots": "directory"}
    assert house.kinds("plots") == {"loss.txt": "file"}
    assert house.read("plots/loss.txt") == b"loss"
    opened = house.store.open(JOB, ["model.bin"])
    assert b"".join(opened.pieces(3, 4)) == b"3456"
    opened.close()


def test_pages(house: House) -> None:
    for number in range(10):
        (house.there / f"f{number}").touch()
    names, after = [], None
    while True:
        entries, after = house.store.entries(JOB, [], after=after, limit=5)
        names += [entry.name for entry in entries]
        if after is None:
            break
    assert names == sorted(os.listdir(house.there))


def test_missing_output_is_reported(house: House) -> None:
    for path in ("nothing", "nothing/at/all", "model.bin/inside", "x" * 300):
        with pytest.raises(OutputMissing):
            house.store.open(JOB, path.split("/"))
    with pytest.raises(OutputRefused, match="a file"):
        house.store.entries(JOB, ["model.bin"], after=None, limit=5)
    assert house.store.entries("j-9", [], after=None, limit=5) == ([], None), "never launched"
    with pytest.raises(OutputMissing):
        house.store.open("j-9", [])


def links_that_stay(house: House) -> dict[str, str]:
    return {
        "latest": "plots",
        "newest.txt": "plots/loss.txt",
        "plots/up.bin": "../model.bin",
        "absolute.bin": str(house.there / "model.bin"),
        "round/about": "../plots/../round/../model.bin",
        "twice": "newest.txt",
    }


def test_links_that_stay_inside_are_followed(house: House) -> None:
    (house.there / "round").mkdir()
    for name, target in links_that_stay(house).items():
        (house.there / name).symlink_to(target)
    assert house.kinds() == {
        "absolute.bin": "file",
        "latest": "directory",
        "model.bin": "file",
        "newest.txt": "file",
        "plots": "directory",
        "round": "directory",
        "twice": "file",
    }
    assert house.read("latest/loss.txt") == b"loss"
    assert house.read("twice") == b"loss"
    for name in ("plots/up.bin", "absolute.bin", "round/about", "latest/up.bin"):
        assert house.read(name) == b"0123456789"


def test_links_that_lead_out_are_not(house: House) -> None:
    targets = {
        "absolute": str(house.secret),
        "relative": os.path.relpath(house.secret, house.there),
        "parent": "..",
        "home": "../..",
        "neighbour": "../../j-8/outputs/theirs.txt",
        "prefix": f"{house.there}-other/x",
        "hidden": "plots/../../checkpoints",
        "itself": "itself",
        "device": "/dev/zero",
        "process": "/proc/self/environ",
    }
    for name, target in targets.items():
        (house.there / name).symlink_to(target)
    for name in targets:
        for path in (name, f"{name}/theirs.txt", f"{name}/secret.txt", f"{name}/outputs/model.bin"):
            with pytest.raises((OutputMissing, OutputRefused)):
                house.store.open(JOB, path.split("/"))
    shown = house.kinds()
    assert {shown[name] for name in targets} == {OutputKind.LINK}
    assert sorted(house.packed().getnames()) == ["itself", "model.bin", "plots", "plots/loss.txt"]


def test_special_files_are_not_opened(house: House) -> None:
    os.mkfifo(house.there / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(house.there / "s"))
        for name in ("pipe", "s"):
            with pytest.raises(OutputRefused, match="neither a file nor a directory"):
                house.store.open(JOB, [name])
        assert {house.kinds()[name] for name in ("pipe", "s")} == {OutputKind.OTHER}
        assert sorted(house.packed().getnames()) == ["model.bin", "plots", "plots/loss.txt"]


def test_a_second_name_of_anothers_file_is_not_opened(house: House) -> None:
    try:
        os.chown(house.secret, 12345, 12345)
        os.link(house.secret, house.there / "mine.txt")
    except PermissionError:
        os.symlink(house.secret, house.there / "mine.txt")  # only root can do it at all
    with pytest.raises(OutputRefused):
        house.store.open(JOB, ["mine.txt"])
    assert "mine.txt" not in house.packed().getnames()


def test_the_output_directory_itself_may_be_no_link(house: House, tmp_path: Path) -> None:
    house.there.rename(tmp_path / "moved")
    house.there.symlink_to(tmp_path)
    with pytest.raises((OutputMissing, OutputRefused)):
        house.store.open(JOB, ["secret.txt"])
    assert house.store.entries(JOB, [], after=None, limit=5) == ([], None)


def test_names_that_are_no_text(house: House) -> None:
    with open(os.fsencode(house.there) + b"/\xff\xfe.txt", "wb") as file:
        file.write(b"odd")
    assert "\udcff\udcfe.txt" in house.kinds()
    assert len(house.packed().getnames()) == 4


def test_a_directory_as_an_archive(house: House, tmp_path: Path) -> None:
    (house.there / "plots" / "again.txt").symlink_to("loss.txt")
    (house.there / "plots" / "empty").mkdir()
    (house.there / "large.bin").write_bytes(os.urandom(700_001))
    with house.packed() as archive:
        archive.extractall(tmp_path / "here")
    assert (tmp_path / "here" / "plots" / "again.txt").read_text() == "loss"
    assert (tmp_path / "here" / "plots" / "empty").is_dir()
    assert (tmp_path / "here" / "large.bin").read_bytes() == (house.there / "large.bin").read_bytes()


def test_half_a_file_does_not_look_like_a_whole_one(house: House) -> None:
    opened = house.store.open(JOB, [])
    members = opened.members()
    member = next(member for member in members if member.name == "model.bin")
    (house.there / "model.bin").write_bytes(b"012")
    with pytest.raises(ChangedWhileRead):
        list(tar_gz([member]))
    opened.close()


def test_nothing_outside_is_opened_while_names_change(house: House, tmp_path: Path) -> None:
    """A job that swaps a directory for a link, again and again, wins no race."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "loss.txt").write_text(SECRET)
    done = threading.Event()

    def swap() -> None:
        plots, aside = house.there / "plots", house.there / "aside"
        while not done.is_set():
            plots.rename(aside)
            plots.symlink_to(outside)
            plots.unlink()
            aside.rename(plots)

    swapping = threading.Thread(target=swap)
    swapping.start()
    # They take turns often, so that names change in the middle of a look, and not only between two.
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        seen = {"found": 0, "refused": 0}
        while min(seen.values()) < 10:
            try:
                assert house.read("plots/loss.txt") == b"loss"
                seen["found"] += 1
            except (OutputMissing, OutputRefused):
                seen["refused"] += 1
            with house.packed() as archive:
                for member in archive.getmembers():
                    content = archive.extractfile(member) if member.isfile() else None
                    assert content is None or SECRET.encode() not in content.read()
    finally:
        sys.setswitchinterval(usual)
        done.set()
        swapping.join()


def test_nothing_stays_open(house: House) -> None:
    (house.there / "out").symlink_to("/etc/hostname")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        house.kinds()
        house.read("plots/loss.txt")
        with pytest.raises(OutputRefused):
            house.store.open(JOB, ["out"])
        with pytest.raises(OutputMissing):
            house.store.open(JOB, ["plots", "no"])
        house.packed().close()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
