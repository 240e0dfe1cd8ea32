"""The node's own disk, as attempts get it: what is left of it when nobody was there to remove it."""

from __future__ import annotations

import os
from collections.abc import Callable

from corral.engines.attempts.job_places import remove_tree
from corral.engines.storage.storage_specs import StoragePlaces


def sweep_scratch(places: StoragePlaces, engine: str, is_live: Callable[[str], bool]) -> None:
    """Remove what attempts of this engine had that are over. May take long."""
    mine = f"{engine}-"
    for name in os.listdir(places.scratch) if os.path.isdir(places.scratch) else []:
        attempt_id = name.removeprefix(mine).rpartition("-")[0]
        if name.startswith(mine) and not is_live(attempt_id):
            remove_tree(os.path.join(places.scratch, name))
