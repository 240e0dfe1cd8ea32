"""A pool with its GPUs, as it is written for a large fleet: in parts, and with a short form for its ETag."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from corral.control.fleet.pools import existing, gpus_in, pool_views
from corral.control.ports import Store
from corral.server.http.preconditions import LongObject, etag_of, with_etag
from corral.server.schemas.fleet import pools as schemas
from corral.server.schemas.fleet.nodes import gpu_view
from tests.unit.control.world import ROOT, Desk, draft
from tests.unit.core.builders import node

FIELDS = frozenset({"description", "gpus"})


def test_a_pool_is_written_in_parts_as_its_schema_says(store: Store) -> None:
    desk = Desk(store, nodes=tuple(node(f"n{number}", gpus=8) for number in range(60)))
    desk.started(draft(gpus=8), draft(gpus=1))
    with store.read() as tables:
        owned = (existing(tables, "default"), None)
    [facts] = pool_views(desk.state, [owned], desk.now)
    gpus = gpus_in(desk.state, "default", desk.now)
    assert len(gpus) == 480, "more than two parts"
    body = schemas.pool_detail_json(facts, gpus, {}, ROOT)
    views = [gpu_view(gpu, {}, ROOT) for gpu in gpus]
    whole = schemas.PoolDetailView(**schemas.pool_view(facts).model_dump(), gpus=views)
    assert body == TypeAdapter(schemas.PoolDetailView).dump_json(whole)
    answer = with_etag(LongObject(body, schemas.pool_short_json(facts, gpus)), FIELDS)
    assert answer.headers["ETag"] == etag_of(body, FIELDS)


def test_a_pool_without_gpus_is_written_as_an_object(store: Store) -> None:
    desk = Desk(store)
    with store.read() as tables:
        owned = (existing(tables, "default"), None)
    [facts] = pool_views(desk.state, [owned], desk.now)
    assert json.loads(schemas.pool_detail_json(facts, [], {}, ROOT))["gpus"] == []
