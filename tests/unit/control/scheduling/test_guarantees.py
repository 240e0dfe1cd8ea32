"""Guarantees of queues: never more than a pool has, and no later change takes one away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import InUse, Invalid
from corral.control.fleet import pools
from corral.control.ports import Store
from corral.control.scheduling import queues, views
from corral.core.model import WHOLE, Queue
from tests.unit.control.tenants import A10S, tenants
from tests.unit.control.world import ROOT, TWO_NODES, Desk, draft

VISION = Queue(name="vision", guaranteed_gpus=5)
SPEECH = Queue(name="speech", guaranteed_gpus=3)


def standings(desk: Desk) -> dict[str, tuple[float, float, float]]:
    """GPUs that each queue holds, has borrowed and is owed."""
    return {
        view.queue.name: (
            view.guarantee_use.held_milli / WHOLE,
            view.guarantee_use.borrowed_milli / WHOLE,
            view.guarantee_use.owed_milli / WHOLE,
        )
        for view in views.queue_views(desk.state)
    }


def test_a_pool_promises_what_it_has_and_no_more(desk: Desk) -> None:
    desk.do(queues.create, ROOT, VISION)
    desk.do(queues.create, ROOT, SPEECH)
    with pytest.raises(Invalid) as refusal:
        desk.do(queues.create, ROOT, Queue(name="third", guaranteed_gpus=1))
    assert str(refusal.value) == (
        "1 GPU cannot be guaranteed: pool default has 8, of which 3 are guaranteed to queue speech, "
        "5 are guaranteed to queue vision"
    )
    assert refusal.value.numbers == {"asked": 1, "held": 8, "limit": 8}
    with pytest.raises(Invalid, match="6 GPUs cannot be guaranteed"):
        desk.do(queues.edit, ROOT, replace(VISION, guaranteed_gpus=6))
    desk.do(queues.edit, ROOT, replace(VISION, guaranteed_gpus=4))
    desk.do(queues.create, ROOT, Queue(name="third", guaranteed_gpus=1))


def test_guarantees_from_before_a_loss_of_gpus_can_be_edited(desk: Desk) -> None:
    desk.do(queues.create, ROOT, VISION)
    desk.observe(TWO_NODES[0])
    one_gpu = replace(TWO_NODES[1], gpus=TWO_NODES[1].gpus[:1])
    desk.observe(one_gpu, replace(TWO_NODES[0], gpus=()))
    desk.do(queues.edit, ROOT, replace(VISION, weight=2.0))
    desk.do(queues.edit, ROOT, replace(VISION, guaranteed_gpus=4))
    with pytest.raises(Invalid, match="pool default has 1"):
        desk.do(queues.edit, ROOT, replace(VISION, guaranteed_gpus=5))


def test_gpus_do_not_leave_a_pool_that_has_promised_them(store: Store) -> None:
    desk = tenants(store)
    desk.do(queues.create, ROOT, Queue(name="vision", guaranteed_gpus=12))
    with pytest.raises(InUse, match="pool default would keep 8 of 16 GPUs, and 12 are guaranteed to queue vision"):
        desk.do(pools.create, ROOT, "small", gpus=A10S)
    desk.do(pools.create, ROOT, "small", gpus=A10S[:4])
    desk.do(queues.edit, ROOT, Queue(name="small", pool="small", guaranteed_gpus=4))
    with pytest.raises(InUse, match="pool small would keep 3 of 4 GPUs"):
        desk.do(pools.edit, ROOT, "small", gpus=A10S[:3])
    desk.do(pools.delete, ROOT, "small")


def test_guarantees_show_held_borrowed_and_owed_gpus(desk: Desk) -> None:
    desk.do(queues.create, ROOT, Queue(name="night"))
    desk.started(draft("first", gpus=2), draft("second", gpus=2, queue="night"))
    assert standings(desk) == {"default": (2, 0, 0), "night": (2, 0, 0)}, "no queue is owed GPUs"
    desk.do(queues.edit, ROOT, Queue(name="night", guaranteed_gpus=3))
    assert standings(desk) == {"default": (2, 2, 0), "night": (2, 0, 1)}
    desk.started(draft("more", gpus=4, queue="night"))
    assert standings(desk)["night"] == (6, 3, 0)


def test_an_order_that_preempts_needs_a_rank(desk: Desk) -> None:
    desk.do(queues.edit, ROOT, Queue(name="default", policy="priority", preempts=True))
    with pytest.raises(Invalid, match="order fair-share cannot preempt"):
        desk.do(queues.edit, ROOT, Queue(name="default", policy="fair-share", preempts=True))
    # The installation's order has the last word about the default queue, and it must not be refused at the start.
    desk.do(queues.follow_settings)
    stored = desk.state.snapshot.queues["default"]
    assert (stored.policy, stored.preempts) == ("fair-share", False)
