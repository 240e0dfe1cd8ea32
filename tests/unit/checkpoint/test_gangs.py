"""Several ranks share one directory: rank 0 saves, or every rank its part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from corral import checkpoint
from corral.checkpoint import catalog
from corral.checkpoint.keeper import Keeper, RestoreError
from corral.checkpoint.layout import Damaged
from tests.unit.checkpoint.conftest import Clock

Make = Callable[..., Keeper]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def gang(make: Make, world: int, attempt: int = 1, keep: int = 3) -> list[Keeper]:
    return [make(rank=rank, world=world, attempt=attempt, keep=keep) for rank in range(world)]


def save_parts(keepers: list[Keeper], step: int) -> None:
    for rank, keeper in enumerate(keepers):
        keeper.save((rank, step), step=step, shard=True)


def test_rank_0_saves_and_all_restore_it(make: Make, clock: Clock, directory: Path) -> None:
    ranks = [make(rank=rank, world=3, interval_seconds=60) for rank in range(3)]
    clock.now += 60
    assert [keeper.due() for keeper in ranks] == [True] * 3
    assert [keeper.save("of rank 0", step=5) is not None for keeper in ranks] == [True, False, False]
    assert [keeper.due() for keeper in ranks] == [False] * 3
    assert [keeper.steps_done() for keeper in ranks] == [5] * 3
    assert len(catalog.list_checkpoints(directory)) == 1
    assert [keeper.restore() for keeper in gang(make, 3)] == ["of rank 0"] * 3
    assert make().restore() == "of rank 0", "another number of ranks can resume from it"


def test_every_rank_gets_its_own_part_back(make: Make, directory: Path) -> None:
    save_parts(gang(make, 4), 10)
    (whole,) = catalog.list_checkpoints(directory)
    assert whole.good
    assert (whole.world, len(whole.parts)) == (4, 4)
    assert [keeper.restore() for keeper in gang(make, 4, attempt=2)] == [(rank, 10) for rank in range(4)]


def test_a_step_counts_when_all_parts_are_there(make: Make, directory: Path) -> None:
    keepers = gang(make, 3)
    save_parts(keepers, 10)
    save_parts(keepers[:2], 20)
    newest = catalog.list_checkpoints(directory)[0]
    assert newest.problem == "the parts of 1 of 3 ranks are missing: 2"
    assert [keeper.restore() for keeper in gang(make, 3, attempt=2)] == [(rank, 10) for rank in range(3)]
    save_parts(gang(make, 3, attempt=2), 20)
    assert [keeper.restore() for keeper in gang(make, 3, attempt=3)] == [(rank, 20) for rank in range(3)]


def test_damaged_part_sends_all_ranks_back_to_the_same_step(make: Make, directory: Path) -> None:
    keepers = gang(make, 3)
    save_parts(keepers, 10)
    save_parts(keepers, 20)
    part = catalog.list_checkpoints(directory)[0].parts[2] / "state"
    data = bytearray(part.read_bytes())
    data[5] ^= 4
    part.write_bytes(data)
    with pytest.raises(Damaged, match="rank-2-of-3: state was changed"):
        catalog.verify(catalog.list_checkpoints(directory)[0].path)
    assert [keeper.restore() for keeper in gang(make, 3, attempt=2)] == [(rank, 10) for rank in range(3)]


def test_old_steps_go_with_all_their_parts(make: Make, directory: Path) -> None:
    keepers = gang(make, 2, keep=2)
    for step in (10, 20, 20, 30, 40):
        save_parts(keepers, step)
    found = catalog.list_checkpoints(directory)
    # Rank 0 removes when it saves; the parts of the last step were completed after that.
    assert [each.step for each in found if each.good] == [40, 30, 20]
    save_parts(keepers, 50)
    assert [each.step for each in catalog.list_checkpoints(directory) if each.good] == [50, 40, 30]


def test_parts_of_another_number_of_ranks_are_not_guessed_at(make: Make, directory: Path) -> None:
    save_parts(gang(make, 4), 10)
    with pytest.raises(RestoreError, match="saved in parts by 4 ranks, and this run has 2"):
        make(rank=1, world=2).restore()
    parts = catalog.list_checkpoints(directory)[0].parts
    assert [checkpoint.load(part) for part in parts] == [(rank, 10) for rank in range(4)]
