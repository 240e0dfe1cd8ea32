"""Desks that are set up once and copied for every test: the file of the store, and the desk's own values.

Setting up a desk through the use cases takes longer than most tests that use it.
"""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from pathlib import Path

from corral.control.ports import Store
from tests.unit.control.world import Desk

SetUp = Callable[[Store], Desk]
_kept: dict[SetUp, tuple[Path, bytes]] = {}


def once(set_up: SetUp) -> SetUp:
    """Decorator: calls `set_up` once, with an unused store, and copies its result for every later call."""

    @wraps(set_up)
    def copied(store: Store) -> Desk:
        return copied_desk(store, set_up)

    return copied


def copied_desk(store: Store, set_up: SetUp) -> Desk:
    place = Path(store._database.place)  # type: ignore[attr-defined]
    assert not place.with_name(f"{place.name}-wal").exists(), "the store must be unused"
    if set_up not in _kept:
        desk = set_up(store)
        _kept[set_up] = _copy_of(place), pickle.dumps({**vars(desk), "store": None})
        return desk
    copy, memory = _kept[set_up]
    shutil.copy(copy, place)
    desk = Desk.__new__(Desk)
    vars(desk).update(pickle.loads(memory), store=store)
    return desk


def _copy_of(place: Path) -> Path:
    copy = place.with_name(f"copied-{len(_kept)}.db")
    with closing(sqlite3.connect(place)) as made, closing(sqlite3.connect(copy)) as target:
        made.backup(target)
    return copy
