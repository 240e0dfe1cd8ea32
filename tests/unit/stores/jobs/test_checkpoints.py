"""Reading of checkpoint directories, in which a job can put anything."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Generator
from pathlib import Path
from queue import SimpleQueue

import pytest

from corral.checkpoint import catalog
from corral.checkpoint.environment import Surroundings
from corral.checkpoint.keeper import Keeper
from corral.checkpoint.layout import MANIFEST, Manifest, encode_manifest, last_of
from corral.control.ports import SavedWork
from corral.stores.jobs.checkpoints import DirectoryCheckpoints
from corral.stores.jobs.job_directories import DirectoryWorkspace

JOB = "j-1234"


class Place:
    def __init__(self, root: Path) -> None:
        self.workspace = DirectoryWorkspace(root)
        self.checkpoints = DirectoryCheckpoints(self.workspace)
        self.workspace.prepare(JOB)
        self.directory = Path(self.workspace.env(JOB)["CORRAL_CHECKPOINT_DIR"])

    def save(self, *steps: int, attempt: int = 1) -> list[Path]:
        keeper = Keeper(Surroundings(directory=self.directory, attempt=attempt, keep=10))
        return [path for step in steps if (path := keeper.save({"data": "x" * 1000}, step=step)) is not None]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_checkpoints_are_listed_newest_first(place: Place) -> None:
    before = place.checkpoints.mark(JOB)
    assert (place.checkpoints.has_any(JOB), place.checkpoints.last_saved_at(JOB)) == (False, None)
    one, two = place.save(10, 20, attempt=4)
    assert place.checkpoints.has_any(JOB)
    assert place.checkpoints.mark(JOB) != before
    listed = place.checkpoints.list(JOB)
    assert [(work.path, work.step, work.attempt, work.is_good) for work in listed] == [
        (str(two), 20, 4, True),
        (str(one), 10, 4, True),
    ]
    assert listed[0].size_bytes > 1000
    assert place.checkpoints.last_saved_at(JOB) == listed[0].at
    assert listed[0].at is not None
    assert abs(listed[0].at - time.time()) < 60


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_one_is_never_chosen(place: Place, seed: int) -> None:
    _, two, three = place.save(10, 20, 30)
    rng = random.Random(seed)
    victim = rng.choice([three / "state", three / MANIFEST])
    os.truncate(victim, rng.randrange(victim.stat().st_size))
    found = last_of(place.checkpoints.latest_good(JOB))
    assert found is not None
    assert found.path == str(two)
    newest = place.checkpoints.list(JOB)[0]
    assert (newest.path, newest.is_good) == (str(three), False)
    assert place.checkpoints.last_saved_at(JOB) == found.at


def test_a_changed_byte_is_found_by_reading(place: Place) -> None:
    one, two = place.save(10, 20)
    body = bytearray((two / "state").read_bytes())
    body[len(body) // 2] ^= 1
    (two / "state").write_bytes(body)
    assert place.checkpoints.list(JOB)[0].is_good, "its length is right, and a list reads no content"
    found = last_of(place.checkpoints.latest_good(JOB))
    assert found is not None
    assert found.path == str(one)


def test_a_program_may_have_a_format_of_its_own(place: Place) -> None:
    (place.directory / ".draft").write_text("")
    assert place.checkpoints.last_saved_at(JOB) is None
    (place.directory / "model.pt").write_text("weights")
    os.utime(place.directory / "model.pt", (1000.0, 1000.0))
    assert place.checkpoints.last_saved_at(JOB) == 1000.0
    (place.directory / "epoch-2").mkdir()
    os.utime(place.directory / "epoch-2", (4e9, 4e9))
    latest = place.checkpoints.last_saved_at(JOB)
    assert latest is not None
    assert latest <= time.time(), "no checkpoint is from the future"
    assert not place.checkpoints.has_any(JOB), "the platform cannot know whether these are whole"
    assert last_of(place.checkpoints.latest_good(JOB)) is None


def test_a_manifest_can_claim_what_it_wants(place: Place) -> None:
    (saved,) = place.save(10)
    claimed = Manifest(kind="pickle", step=10, at=9e11, attempt=7, rank=0, world=1, files=())
    (saved / MANIFEST).write_bytes(encode_manifest(claimed))
    (work,) = place.checkpoints.list(JOB)
    assert work.at is not None
    assert work.at <= time.time()


def test_a_link_in_place_of_the_directory_leads_nowhere(place: Place, tmp_path: Path) -> None:
    other = Place(tmp_path / "other")
    other.save(99)
    place.directory.rmdir()
    place.directory.symlink_to(other.directory)
    assert place.checkpoints.list(JOB) == []
    assert last_of(place.checkpoints.latest_good(JOB)) is None
    assert place.checkpoints.mark(JOB) is None
    assert not place.checkpoints.has_any(JOB)
    with pytest.raises(NotADirectoryError):
        place.checkpoints.request(JOB)
    assert not (other.directory / ".request").exists()


def test_a_job_that_was_never_launched_has_nothing(place: Place) -> None:
    assert place.checkpoints.list("j-9") == []
    assert place.checkpoints.mark("j-9") is None
    assert last_of(place.checkpoints.latest_good("j-9")) is None
    assert place.checkpoints.last_saved_at("j-9") is None


def test_a_program_hears_the_request(place: Place) -> None:
    keeper = Keeper(Surroundings(directory=place.directory))
    assert not keeper.due()
    place.checkpoints.request(JOB)
    assert Keeper(Surroundings(directory=place.directory)).due()


def test_a_request_replaces_a_link_and_does_not_follow_it(place: Place, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    (place.directory / ".request").symlink_to(precious)
    place.checkpoints.request(JOB)
    assert not (place.directory / ".request").is_symlink()
    assert precious.read_text() == "as it was"


def looked_up(checkpoints: DirectoryCheckpoints, user: str = "ann") -> SavedWork | None:
    answers: SimpleQueue[SavedWork | None] = SimpleQueue()
    checkpoints.look_up(JOB, user, answers.put)
    return answers.get(timeout=30)


def test_a_good_one_is_looked_up(place: Place) -> None:
    place.save(1)
    found = looked_up(place.checkpoints)
    assert found is not None
    assert found.step == 1


def test_checkpoint_that_takes_too_long_to_read_is_resumed_from_unverified(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object, **__: object) -> Generator[None, None, None]:
        while True:
            yield

    place.save(1)
    monkeypatch.setattr(catalog, "latest_good_steps", endless)
    hurried = DirectoryCheckpoints(place.workspace, verify_seconds=0.05)
    found = looked_up(hurried)
    assert found is not None
    assert found.step == 1


def test_unreadable_checkpoints_are_ignored(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Generator[None, None, None]:
        yield
        raise OSError(5, "Input/output error")

    place.save(1)
    monkeypatch.setattr(catalog, "latest_good_steps", broken)
    assert looked_up(place.checkpoints) is None
