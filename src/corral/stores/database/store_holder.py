"""The owner of the store: its home, since when, the id of the installation, and the lease of the leader."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, inspect, select

from corral.control.ports import Place, StoreHeld, StoreHolder
from corral.stores.people.scores import SqlMetaTable
from corral.stores.schema.server_tables import lease_rows
from corral.stores.schema.tables import meta_rows

_HOLDER = "holder"
_INSTALLATION = "installation"

#: The channel of PostgreSQL's NOTIFY, used at every commit of the leader of several servers.
CHANNEL = "corral_commits"
#: The only lease.
LEASE = "leader"

_TOKEN = select(lease_rows.c.token).where(lease_rows.c.name == LEASE)


def read_holder(connection: Connection) -> StoreHolder | None:
    """The home that owns the store; None if no home does, or if the store is empty or of an older corral."""
    if not inspect(connection).has_table(meta_rows.name):
        return None
    text = SqlMetaTable(connection).get(_HOLDER)
    return None if text is None else _loaded(json.loads(text))


def check_holder(connection: Connection, claim: StoreHolder, *, take_over: bool) -> StoreHolder | None:
    """The other home that owns the store. Raises StoreHeld, unless this home takes over."""
    holder = read_holder(connection)
    if holder is None or holder.is_same(claim):
        return None
    if not take_over:
        raise StoreHeld(holder)
    return holder


def keep_holder(connection: Connection, claim: StoreHolder) -> None:
    """Make this home the owner of the store."""
    known = read_holder(connection)
    since = known.since if known is not None and known.is_same(claim) else claim.started_at
    SqlMetaTable(connection).put(_HOLDER, json.dumps(_dumped(replace(claim, since=since))))


def installation_of(connection: Connection) -> str:
    """A random id that never changes; created with the first write."""
    known = known_installation(connection)
    if known is None:
        known = secrets.token_hex(8)
        SqlMetaTable(connection).put(_INSTALLATION, known)
    return known


def known_installation(connection: Connection) -> str | None:
    return SqlMetaTable(connection).get(_INSTALLATION)


def token_of(connection: Connection) -> str:
    """The token of the present leader; "" without one."""
    return connection.execute(_TOKEN).scalar() or ""


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
