"""Queues: who may make them, what they may say, and when they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Taken
from corral.control.live.unit_of_work import Work
from corral.control.scheduling import queues
from corral.core.model import JobKind, Queue
from tests.unit.control.world import ANN, ROOT, Desk, draft

NIGHTS = Queue(name="nights", policy="fcfs", max_gpus=4, kinds=(JobKind.TRAINING,))


def stored(desk: Desk) -> dict[str, Queue]:
    with desk.store.read() as tx:
        return {queue.name: queue for queue in tx.fleet.queues()}


def test_a_queue_is_made_edited_and_deleted(desk: Desk) -> None:
    desk.do(queues.create, ROOT, NIGHTS)
    assert stored(desk)["nights"] == NIGHTS
    longer = replace(NIGHTS, max_seconds=7200.0)
    desk.do(queues.edit, ROOT, longer)
    assert stored(desk)["nights"] == longer
    desk.do(queues.delete, ROOT, "nights")
    assert set(stored(desk)) == {"default"}


def test_only_operators_and_only_once(desk: Desk) -> None:
    attempts: tuple[Callable[[Work], object], ...] = (
        lambda work: queues.create(work, ANN, NIGHTS),
        lambda work: queues.edit(work, ANN, Queue(name="default")),
        lambda work: queues.delete(work, ANN, "default"),
    )
    for attempt in attempts:
        with pytest.raises(Forbidden):
            desk.do(attempt)
    desk.do(queues.create, ROOT, NIGHTS)
    with pytest.raises(Taken):
        desk.do(queues.create, ROOT, NIGHTS)
    with pytest.raises(NotFound):
        desk.do(queues.edit, ROOT, Queue(name="mornings"))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"policy": "luck"}, "policy"),
        ({"placement": "anywhere"}, "placement"),
        ({"pool": "swimming"}, "pool"),
        ({"max_gpus": -1}, "max_gpus"),
        ({"max_length": -1}, "max_length"),
        ({"weight": 0.0}, "weight"),
        ({"guaranteed_gpus": 5}, "guaranteed_gpus"),
        ({"max_gpus": None, "guaranteed_gpus": 9}, "guaranteed_gpus"),
        ({"preempts": True, "policy": "fair-share"}, "preempts"),
        ({"preempts": True, "policy": "fcfs"}, "preempts"),
        ({"min_job_gpus": 3, "max_job_gpus": 2}, "min_job_gpus"),
        ({"name": "two words"}, "name"),
    ],
)
def test_wrong_settings_name_their_field(desk: Desk, values: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        desk.do(queues.create, ROOT, replace(NIGHTS, **values))
    assert refusal.value.field == field
    assert set(stored(desk)) == {"default"}


def test_a_queue_with_jobs_stays_and_names_them_and_default_stays_always(desk: Desk) -> None:
    desk.do(queues.create, ROOT, NIGHTS)
    desk.submit(draft("sleeper", queue="nights"))
    with pytest.raises(InUse, match="j-1"):
        desk.do(queues.delete, ROOT, "nights")
    with pytest.raises(InUse, match="default"):
        desk.do(queues.delete, ROOT, "default")
