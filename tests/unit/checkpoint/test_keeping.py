"""The checkpoints that are kept and removed, and the order of writes to the disk."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.checkpoint import catalog
from corral.checkpoint import writer as writing
from corral.checkpoint.environment import Surroundings
from corral.checkpoint.keeper import Keeper
from corral.checkpoint.writer import SaveError
from tests.unit.searching import DEAR

Make = Callable[..., Keeper]


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


@DEAR
@given(
    keep=st.integers(1, 4),
    # Steps may go back: a program that resumes from an older state saves the same steps again.
    saves=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["fine", "fine", "damaged"])), max_size=12),
)
def test_the_last_good_ones_stay_and_only_they(keep: int, saves: list[tuple[int, str]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        keeper = Keeper(Surroundings(directory=Path(directory), keep=keep))
        good: list[int] = []
        for number, (step, becomes) in enumerate(saves):
            path = keeper.save((number, step), step=step)
            assert path is not None
            good = [*good, number][-keep:]
            found = catalog.list_checkpoints(directory)
            assert next(each.path for each in found if each.good) == path
            assert sum(each.good for each in found) == min(keep, len(good))
            assert keeper.restore() == (number, step)
            if becomes == "damaged":
                (path / "state").write_bytes(b"")
                good.pop()
        fresh = Keeper(Surroundings(directory=Path(directory), keep=keep))
        restored = fresh.restore()
        if good:
            assert restored is not None
            assert restored[0] == good[-1]
        else:
            assert restored is None


def test_damaged_checkpoints_do_not_count_as_kept(make: Make) -> None:
    good = make(keep=2).save("good", step=1)
    bad = make(keep=2).save("bad", step=2)
    assert good is not None
    assert bad is not None
    data = bytearray((bad / "state").read_bytes())
    data[-3] ^= 1  # the length stays: only the digest shows it
    (bad / "state").write_bytes(data)
    keeper = make(keep=2)
    assert keeper.restore() == "good"
    keeper.save("next", step=2)
    assert good.exists()


def test_every_file_is_on_disk_before_the_name_and_nothing_goes_before_that(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(keep=1).save("old", step=1)
    done: list[str] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        where = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        done.append(f"sync {'draft' if where.name.startswith('.saving') else where.name}")
        real_fsync(descriptor)

    def rename(source: Path, target: Path) -> None:
        done.append(f"rename to {target.name[:8]}")
        real_rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    make(keep=1).save("new", step=2)
    assert done == [
        "sync state",
        "sync manifest.json",
        "sync draft",
        "rename to save-000",
        "sync checkpoints",
        "rename to .removed",
    ]


def test_a_failed_save_leaves_nothing_and_harms_nothing(make: Make, tmp_path: Path) -> None:
    keeper = make()
    keeper.save([1], step=1)
    before = names(tmp_path / "checkpoints")
    with pytest.raises(Exception, match="pickle"):
        keeper.save(lambda: None, step=2)
    with pytest.raises(ZeroDivisionError):
        keeper.save_files(lambda folder: [][1 // 0], step=2)
    with pytest.raises(ValueError, match="is a link"):
        keeper.save_files(lambda folder: (folder / "latest").symlink_to("elsewhere"), step=2)
    assert names(tmp_path / "checkpoints") == before
    assert keeper.steps_done() == 1
    assert make().restore() == [1]


def test_the_error_says_what_and_where(make: Make, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file in the way")
    with pytest.raises(
        SaveError, match=r"the checkpoint of step 7 was not saved in .*checkpoints.*earlier ones are kept"
    ):
        make().save([1], step=7)


@pytest.mark.parametrize("step", [-1, 1.5, True, None, "3"])
def test_a_step_is_a_count(step: object, make: Make) -> None:
    with pytest.raises(ValueError, match="step must be a whole number"):
        make().save([1], step=step)  # type: ignore[arg-type]


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(make: Make, tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    make(attempt=3).save([1], step=1)
    machine = writing._machine()
    alive = f".saving-3-{machine}-{os.getpid()}-00000000"
    elsewhere = ".saving-3-0123456789ab-1-00000000"
    expected = {alive, elsewhere, ".saving-mine", "notes.txt", "save-me"}
    dead = [
        f".saving-3-{machine}-{2**22 + 5}-00000000",  # no such process on this machine
        ".saving-2-0123456789ab-1-00000000",  # of an attempt that is over
        ".removed-00000000",  # killed while removing
        ".saving-3-0123456789ab-1-11111111",  # for hours without a write
    ]
    for name in [alive, elsewhere, ".saving-mine", "save-me", *dead]:
        (directory / name).mkdir()
        (directory / name / "state").write_bytes(b"half")
    (directory / "notes.txt").touch()
    for path in (directory / dead[3] / "state", directory / dead[3]):
        os.utime(path, (time.time() - 7200,) * 2)
    make(attempt=3).save([2], step=2)
    left = {name for name in names(directory) if not name.startswith("save-0")}
    assert left == expected


def test_savers_side_by_side_take_different_numbers(make: Make, tmp_path: Path) -> None:
    """Threads stand for processes here: they share the directory and nothing else."""
    keepers = [make(keep=100) for _ in range(6)]
    gate = threading.Barrier(6)

    def save(number: int) -> None:
        gate.wait()
        for _ in range(5):
            keepers[number].save({"from": number}, step=7)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = catalog.list_checkpoints(tmp_path / "checkpoints")
    assert len(found) == 30
    assert all(catalog.verify(each.path).good for each in found)
    assert len({each.sequence for each in found}) == 30


def test_a_reader_that_sees_everything_replaced_looks_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    saver, reader = make(keep=1), make()
    saver.save("first", step=1)
    real = reader._candidates
    seen: list[list[catalog.Checkpoint]] = []

    def candidates() -> list[catalog.Checkpoint]:
        listed = real()
        if not seen:
            saver.save("second", step=2)  # between listing and reading the only one listed goes
        seen.append(listed)
        return listed

    monkeypatch.setattr(reader, "_candidates", candidates)
    assert reader.restore() == "second"
    assert len(seen) == 2


def test_the_catalog_shows_time_and_size(make: Make, tmp_path: Path) -> None:
    before = time.time()
    path = make(attempt=4).save(b"x" * 1000, step=12)
    assert path is not None
    (listed,) = catalog.list_checkpoints(tmp_path / "checkpoints")
    assert (listed.path, listed.step, listed.attempt, listed.good) == (path, 12, 4, True)
    assert before <= listed.at <= time.time()
    sizes = [file.stat().st_size for file in path.iterdir() if file.name != "manifest.json"]
    assert listed.bytes == sum(sizes) >= 1000
    assert catalog.list_checkpoints(tmp_path / "nowhere") == []
    assert catalog.latest_good(tmp_path / "nowhere") is None
