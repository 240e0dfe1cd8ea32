"""The request mix of each pool, stored over restarts: every submission is counted, and a mix that has changed enough
goes into the snapshot and the store together.

What was counted since the last mix is forgotten with a restart; that is at most half as much as it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from corral.control.ports import Transaction
from corral.core.snapshot.changes import PutMix
from corral.core.snapshot.codec import dumps, from_plain
from corral.core.snapshot.request_mix import Mix


def keep_mix(tx: Transaction, pool: str, mix: Mix) -> None:
    tx.meta.put(_key(pool), dumps(mix))


def mixes_kept(tx: Transaction) -> Iterator[PutMix]:
    """The mixes of all pools that have one."""
    for pool in tx.fleet.pools():
        text = tx.meta.get(_key(pool.name))
        if text is not None and (mix := from_plain(Mix, json.loads(text))).portions:
            yield PutMix(pool=pool.name, mix=mix)


def _key(pool: str) -> str:
    return f"mix:{pool}"
