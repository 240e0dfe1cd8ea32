"""Desks that are set up once and copied for every test: the file of the store, and what the desk has in memory.

To set one up through the use cases takes longer than most of what is tested with it.
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

Furnish = Callable[[Store], Desk]
_kept: dict[Furnish, tuple[Path, bytes]] = {}


def once(furnish: Furnish) -> Furnish:
    """What it makes of a store that nobody has used yet is made once, and then copied."""

    @wraps(furnish)
    def copied(store: Store) -> Desk:
        return furnished(store, furnish)

    return copied


def furnished(store: Store, furnish: Furnish) -> Desk:
    place = Path(store._database.place)  # type: ignore[attr-defined]
    assert not place.with_name(f"{place.name}-wal").exists(), "only a store that nobody has used yet"
    if furnish not in _kept:
        desk = furnish(store)
        _kept[furnish] = _copy_of(place), pickle.dumps({**vars(desk), "store": None})
        return desk
    copy, memory = _kept[furnish]
    shutil.copy(copy, place)
    desk = Desk.__new__(Desk)
    vars(desk).update(pickle.loads(memory), store=store)
    return desk


def _copy_of(place: Path) -> Path:
    copy = place.with_name(f"furnished-{len(_kept)}.db")
    with closing(sqlite3.connect(place)) as made, closing(sqlite3.connect(copy)) as target:
        made.backup(target)
    return copy
