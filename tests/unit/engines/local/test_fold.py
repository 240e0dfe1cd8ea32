"""Attempts that are over, folded: again after every crash, and never taken for attempts that were not launched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.engines.attempts.claims import record_end, take_claim
from corral.engines.attempts.log_segments import PREFIX, LogPlaces, LogWriter
from corral.engines.local.attempts import AttemptFiles, Marker
from corral.engines.local.cgroups import CgroupSupport
from corral.engines.local.fold import LocalFolds
from corral.engines.local.rundir import OVER, Layout, folded_prefix

END = {"reason": "exit_code", "message": "", "exit_code": 0, "signal": None, "ended_at": 1.0}


class Place:
    def __init__(self, root: Path) -> None:
        self.layout = Layout(str(root))
        self.layout.prepare()
        no_groups = CgroupSupport(version=0, memory="", cpu="", pids="")
        self.files = AttemptFiles(self.layout, no_groups, "test-")
        self.folds = LocalFolds(self.layout)

    def ended(self, attempt_id: str, *logs: bytes, left: bool = False) -> Path:
        marker = Marker(nodes=tuple(f"node-{rank}" for rank in range(len(logs))), grace_seconds=1.0)
        assert self.files.create(attempt_id, marker) is not None
        for rank, text in enumerate(logs):
            directory = Path(self.layout.rank_dir(attempt_id, rank))
            claim = take_claim(str(directory), {"pid": 1, "boot_id": "x"})
            assert claim is not None
            os.close(claim)
            record_end(str(directory), END)
            if text:
                writer = LogWriter(str(directory), 64)
                writer.write(text)
                writer.close()
            (directory / "work").mkdir()
            if left:
                (directory / "work" / "mine").write_text("kept")
        self.folds.forget(attempt_id)
        return Path(self.layout.attempt_dir(attempt_id))

    def log(self, attempt_id: str, rank: int) -> bytes:
        whole = self.layout.attempt_dir(attempt_id)
        places = LogPlaces(((self.layout.rank_dir(attempt_id, rank), PREFIX), (whole, folded_prefix(rank))))
        return places.read(0, 1 << 20)[0]

    def fold(self) -> None:
        for attempt_id in self.folds.unfolded():
            self.folds.fold(attempt_id)
            self.folds.note_folded(attempt_id)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_only_logs_are_left(place: Place) -> None:
    loud, silent = place.ended("j-1.1", b"hello"), place.ended("j-2.1", b"")
    gang = place.ended("j-3.1", b"one", b"two" * 100)
    before = place.log("j-3.1", 1)
    place.fold()
    assert os.listdir(loud) == ["0.log." + "0" * 15]
    assert os.listdir(silent) == [OVER]
    assert place.log("j-1.1", 0) == b"hello"
    assert (place.log("j-3.1", 0), place.log("j-3.1", 1)) == (b"one", before)
    assert not any(path.is_dir() for path in gang.iterdir())
    assert place.folds.unfolded() == []


def test_files_in_the_working_directory_stay(place: Place) -> None:
    directory = place.ended("j-1.1", b"hello", left=True)
    place.fold()
    assert (directory / "0" / "work" / "mine").read_text() == "kept"
    assert place.log("j-1.1", 0) == b"hello"


@pytest.mark.parametrize("text", [b"hello", b""])
def test_a_folded_attempt_is_never_launched_again(place: Place, text: bytes) -> None:
    place.ended("j-1.1", text)
    place.fold()
    assert place.files.create("j-1.1", Marker(nodes=("node-0",), grace_seconds=1.0)) is None


def test_a_crash_at_any_step_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail after every number of file operations; then fold again."""
    wanted = 0
    while True:
        place = Place(tmp_path / str(wanted))
        directory = place.ended("j-1.1", b"hello" * 50, b"")
        before = place.log("j-1.1", 0)
        left = wanted

        def failing(real: Callable[..., None]) -> Callable[..., None]:
            def call(*args: object, **options: object) -> None:
                nonlocal left
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
                real(*args, **options)

            return call

        with monkeypatch.context() as patched:
            for name in ("rename", "unlink", "rmdir"):
                patched.setattr(os, name, failing(getattr(os, name)))
            try:
                place.fold()
                is_done = True
            except KeyboardInterrupt:
                is_done = False
        assert place.log("j-1.1", 0) == before, f"after {wanted} operations"
        assert place.files.create("j-1.1", Marker(nodes=("n", "n"), grace_seconds=1.0)) is None, wanted
        place.fold()
        assert place.log("j-1.1", 0) == before
        assert all(path.name.startswith("0.log.") for path in directory.iterdir())
        if is_done:
            return
        wanted += 1


def test_attempts_of_an_earlier_version_are_found_once(place: Place) -> None:
    directory = place.ended("j-1.1", b"hello")
    # As it was forgotten then: without a mark.
    os.unlink(place.layout.ended("j-1.1"))
    live = place.files.create("j-2.1", Marker(nodes=("node-0",), grace_seconds=1.0))
    assert live is not None
    place.fold()
    assert os.listdir(directory) == ["0.log." + "0" * 15]
    assert place.files.load("j-2.1") is not None
