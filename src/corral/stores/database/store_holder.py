"""The store's word on who has it: which home, since when, and which installation it is."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, inspect

from corral.control.ports import Place, StoreHeld, StoreHolder
from corral.stores.people.scores import SqlMetaTable
from corral.stores.schema.tables import meta_rows

_HOLDER = "holder"
_INSTALLATION = "installation"


def read_holder(connection: Connection) -> StoreHolder | None:
    """None while no home has it; also of a store that is empty or comes from an older corral."""
    if not inspect(connection).has_table(meta_rows.name):
        return None
    text = SqlMetaTable(connection).get(_HOLDER)
    return None if text is None else _loaded(json.loads(text))


def check_holder(connection: Connection, claim: StoreHolder, *, take_over: bool) -> StoreHolder | None:
    """The other home that has the store. Raises StoreHeld, unless this one takes over."""
    holder = read_holder(connection)
    if holder is None or holder.is_same(claim):
        return None
    if not take_over:
        raise StoreHeld(holder)
    return holder


def keep_holder(connection: Connection, claim: StoreHolder) -> None:
    """From now on the store is this home's."""
    known = read_holder(connection)
    since = known.since if known is not None and known.is_same(claim) else claim.started_at
    SqlMetaTable(connection).put(_HOLDER, json.dumps(_dumped(replace(claim, since=since))))


def installation_of(connection: Connection) -> str:
    """Random, and never changed; made when the store is first written to."""
    known = known_installation(connection)
    if known is None:
        known = secrets.token_hex(8)
        SqlMetaTable(connection).put(_INSTALLATION, known)
    return known


def known_installation(connection: Connection) -> str | None:
    return SqlMetaTable(connection).get(_INSTALLATION)


def _dumped(holder: StoreHolder) -> dict[str, Any]:
    places = {name: {"id": place.id, "path": place.path} for name, place in holder.places.items()}
    return {
        "home": holder.home,
        "inode": holder.inode,
        "path": holder.path,
        "host": holder.host,
        "boot_id": holder.boot_id,
        "since": holder.since,
        "started_at": holder.started_at,
        "places": places,
    }


def _loaded(body: dict[str, Any]) -> StoreHolder:
    return StoreHolder(**{**body, "places": {name: Place(**place) for name, place in body["places"].items()}})
