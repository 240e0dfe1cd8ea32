"""Restore returns a state exactly as it was saved, or none, however the bytes of a checkpoint are damaged."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.checkpoint import catalog
from corral.checkpoint.environment import Surroundings
from corral.checkpoint.keeper import Keeper, RestoreError
from corral.checkpoint.layout import MANIFEST, Damaged, Manifest, SealedFile, encode_manifest, read_manifest
from tests.unit.searching import DEAR

Make = Callable[..., Keeper]


def state_of(step: int) -> dict[str, Any]:
    return {"step": step, "weights": random.Random(step).randbytes(700), "note": ("kept", {1: None})}


def write_some_files(folder: Path, step: int) -> None:
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(random.Random(step).randbytes(300))
    (folder / "deep" / "deeper" / "optimizer.txt").write_text(f"step {step}")
    (folder / "empty").touch()


@DEAR
@given(
    files=st.booleans(),
    which=st.integers(min_value=0),
    offset=st.integers(min_value=0),
    how=st.sampled_from(["flip", "cut", "extend", "remove", "empty"]),
    bit=st.integers(0, 7),
)
def test_damage_anywhere_is_found_and_the_one_before_is_restored(
    files: bool, which: int, offset: int, how: str, bit: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        surroundings = Surroundings(directory=Path(directory))
        for step in (10, 20):
            keeper = Keeper(surroundings)
            if files:
                path = keeper.save_files(partial(write_some_files, step=step), step=step)
            else:
                path = keeper.save(state_of(step), step=step)
        assert path is not None
        victims = sorted(victim for victim in path.rglob("*") if victim.is_file())
        victim = victims[which % len(victims)]
        data = bytearray(victim.read_bytes())
        if how == "flip" and data:
            data[offset % len(data)] ^= 1 << bit
        elif how == "cut" and data:
            del data[offset % len(data) :]
        elif how == "empty" and data:
            data.clear()
        else:
            data += b"\0"
        victim.write_bytes(data)
        if how == "remove":
            victim.unlink()

        with pytest.raises(Damaged):
            catalog.verify(path)
        best = catalog.latest_good(directory, thorough=True)
        assert best is not None
        assert best.step == 10
        restarted = Keeper(surroundings)
        state = restarted.restore()
        assert restarted.steps_done() == 10
        if files:
            assert (state / "deep/deeper/optimizer.txt").read_text() == "step 10"
            assert (state / "weights.bin").read_bytes() == random.Random(10).randbytes(300)
        else:
            assert state == state_of(10)


def test_the_report_names_what_is_passed_over_and_why(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make().save({"step": 1}, step=1)
    path = make().save({"step": 2}, step=2)
    assert path is not None
    with open(path / "state", "r+b") as file:
        file.truncate(3)
    assert make().restore() == {"step": 1}
    error = capsys.readouterr().err
    assert str(path) in error
    assert "state has 3 bytes instead of" in error


def test_nothing_good_means_nothing_restored(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert make().restore() is None
    path = make().save([1], step=1)
    assert path is not None
    (path / MANIFEST).unlink()
    assert make().restore() is None
    assert "begins anew" in capsys.readouterr().err


def test_a_good_checkpoint_that_cannot_be_loaded_is_an_error_and_not_a_fresh_start(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Model:
        pass

    monkeypatch.setitem(globals(), "Model", Model)
    Model.__qualname__ = "Model"
    make().save([1], step=1)
    make().save(Model(), step=2)
    monkeypatch.delitem(globals(), "Model")
    with pytest.raises(RestoreError, match="undamaged, and cannot be loaded: AttributeError"):
        make().restore()


def test_a_copy_under_a_false_name_is_refused(make: Make) -> None:
    path = make().save([1], step=1)
    assert path is not None
    shutil.copytree(path, path.with_name("save-000009-step-77"))
    newest = catalog.list_checkpoints(path.parent)[0]
    assert newest.problem == "its name and its manifest disagree"
    assert make().restore() == [1]


HOSTILE: dict[str, Callable[[Path], None]] = {
    "a link in place of the state": lambda path: (path / "state").symlink_to("/etc/passwd"),
    "a pipe, which would block": lambda path: os.mkfifo(path / "state"),
    "a directory": lambda path: (path / "state").mkdir(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_opens_plain_files_only(name: str, make: Make) -> None:
    path = make().save([1], step=1)
    assert path is not None
    (path / "state").unlink()
    HOSTILE[name](path)
    checkpoint = catalog.list_checkpoints(path.parent)[0]
    assert not checkpoint.good
    assert catalog.latest_good(path.parent) is None


@pytest.mark.parametrize("where", ["../../secret", "/etc/passwd", "", "a/./b", "a//b", "out/secret", "x\0y"])
def test_a_manifest_cannot_lead_out_of_its_directory(where: str, tmp_path: Path) -> None:
    secret = tmp_path / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_bytes(b"x")
    folder = tmp_path / "all" / "save-000001-step-1"
    folder.mkdir(parents=True)
    (folder / "out").symlink_to(secret.parent)
    files = (SealedFile(path=where, bytes=1, blake2b="0" * 64),)
    manifest = Manifest(kind="pickle", step=1, at=1.0, attempt=1, rank=0, world=1, files=files)
    (folder / MANIFEST).write_bytes(encode_manifest(manifest))
    assert not catalog.list_checkpoints(folder.parent)[0].good


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:0123456789 \n', max_size=80).map(str.encode))
def test_any_bytes_as_a_manifest_are_refused_politely(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, MANIFEST).write_bytes(raw)
        with pytest.raises(Damaged):
            read_manifest(Path(directory))


def test_a_manifest_nested_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"[" * 200_000)
    with pytest.raises(Damaged):
        read_manifest(tmp_path)


def test_a_later_format_is_named(make: Make) -> None:
    path = make().save([1], step=1)
    assert path is not None
    text = (path / MANIFEST).read_text()
    (path / MANIFEST).write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(Damaged, match=r"manifest\.json is damaged"):
        read_manifest(path)
