"""Every setting of a queue is in the request, the view, the table and the options of `corral queue`."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from corral.cli.scheduling.queues import QueueOptions, field_of
from corral.control.ports import Store
from corral.core.model import Blocking, JobKind, Queue
from corral.core.scheduling.ordering import POLICIES as ORDERINGS
from corral.core.scheduling.placement import POLICIES as PLACEMENTS
from corral.server.schemas.scheduling.queues import QueueCreate, QueueEdit, QueueView, queue_of
from corral.stores.schema.tables import queue_rows

SETTINGS = {field.name for field in fields(Queue)}
FULL = Queue(
    name="vision",
    pool="default",
    policy="priority",
    blocking=Blocking.STRICT,
    placement="spread",
    weight=2.5,
    guaranteed_gpus=2,
    preempts=True,
    max_gpus=8,
    max_length=100,
    max_seconds=7200.0,
    kinds=(JobKind.TRAINING, JobKind.PRESET),
    groups=("lab", "team"),
    min_job_gpus=1,
    max_job_gpus=4,
    description="Image models",
)


def test_every_setting_is_in_each_place() -> None:
    assert set(QueueCreate.model_fields) == SETTINGS
    assert SETTINGS - {"name", "pool"} == set(QueueEdit.model_fields)
    assert set(QueueView.model_fields) >= SETTINGS
    assert {column.name for column in queue_rows.columns} == SETTINGS
    assert {field_of(option.name) for option in fields(QueueOptions)} == SETTINGS - {"name", "pool"}


def test_every_setting_is_stored(store: Store) -> None:
    plain = Queue(name="plain")
    assert all(getattr(FULL, name) != getattr(plain, name) for name in SETTINGS - {"pool"}), (
        "each value differs from its default"
    )
    with store.write() as tx:
        tx.fleet.save_queue(FULL)
        tx.fleet.save_queue(plain)
        tx.fleet.save_queue(replace(FULL, name="second", pool="big"))
    with store.read() as tx:
        found = {queue.name: queue for queue in tx.fleet.queues()}
    assert (found["vision"], found["plain"]) == (FULL, plain)
    assert found["second"].pool == "big"


def test_a_request_makes_the_same_queue() -> None:
    body = {name: getattr(FULL, name) for name in SETTINGS}
    body |= {"blocking": "strict", "kinds": ["training", "preset"], "groups": ["team", "lab"]}
    assert queue_of(QueueCreate.model_validate(body), Blocking.BACKFILL) == FULL


@pytest.mark.parametrize(("option", "known"), [("policy", ORDERINGS), ("placement", PLACEMENTS)])
def test_the_help_names_every_policy(option: str, known: dict[str, object]) -> None:
    annotations = {field.name: str(field.type) for field in fields(QueueOptions)}
    assert all(name in annotations[option] for name in known)
