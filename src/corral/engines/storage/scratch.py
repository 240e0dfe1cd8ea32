"""The node's own disk: removes directories that attempts left there when no supervisor was there to remove them."""

from __future__ import annotations

import os
from collections.abc import Callable

from corral.engines.attempts.job_places import remove_tree
from corral.engines.storage.storage_specs import StoragePlaces


def sweep_scratch(places: StoragePlaces, engine: str, is_live: Callable[[str], bool]) -> None:
    """Remove the scratch directories of ended attempts of this engine. May take long."""
    mine = f"{engine}-"
    for name in os.listdir(places.scratch) if os.path.isdir(places.scratch) else []:
        attempt_id = name.removeprefix(mine).rpartition("-")[0]
        if name.startswith(mine) and not is_live(attempt_id):
            remove_tree(os.path.join(places.scratch, name))
