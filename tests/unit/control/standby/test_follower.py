"""The controller of a standby: its state is that of the store, and it changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from corral.control.fleet import node_actions
from corral.control.jobs import jobs
from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.ports import AttemptPhase, Store, StoreUnavailable
from corral.control.records import EventRecord
from corral.control.standby.follower import Follower, NotLeading
from corral.control.system.policies import Policies
from corral.core.model import EndReason
from tests.unit.control.world import ANN, ROOT, Desk, NoWorkspace, draft, eventually


class Clock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class Standby:
    def __init__(self, store: Store) -> None:
        self.events: list[EventRecord] = []
        self.follower = Follower(
            store=store, clock=Clock(), policies=Policies(), workspace=NoWorkspace(), announce=self.events.extend
        )
        self.follower.follow()

    def seen(self) -> tuple[object, ...]:
        """The result of reads, after everything that was committed before."""
        self.follower.caught_up().result(30)
        return self.follower.inspect(_seen).result(30)


def _seen(state: State) -> tuple[object, ...]:
    nodes = {node.id: node for node in state.snapshot.nodes.values()}
    return dict(state.snapshot.jobs), nodes, dict(state.attempts)


@pytest.fixture
def standby(desk: Desk) -> Iterator[Standby]:
    made = Standby(desk.store)
    yield made
    made.follower.stop()


def test_follower_applies_each_change_of_jobs(desk: Desk, standby: Standby) -> None:
    first, second = desk.submit(draft("first", gpus=4), draft("second", gpus=4))
    assert standby.seen() == _seen(desk.loaded())
    assert desk.cycle() == [first.id, second.id]
    assert standby.seen() == _seen(desk.loaded())
    desk.hear(desk.job(first.id), AttemptPhase.RUNNING)
    # The GPUs of an ended job are given to another one in the same commit.
    third = desk.submit(draft("third", gpus=4))[0]
    desk.hear(desk.job(first.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.cycle() == [third.id]
    assert standby.seen() == _seen(desk.loaded())
    desk.do(jobs.stop, ANN, second.id)
    assert standby.seen() == _seen(desk.loaded())


def test_follower_loads_the_whole_state_after_other_changes(desk: Desk, standby: Standby) -> None:
    desk.do(node_actions.cordon, ROOT, "n1")
    eventually(lambda: standby.seen() == _seen(desk.loaded()))


def test_events_are_announced_once_and_in_order(desk: Desk, standby: Standby) -> None:
    desk.submit(*(draft(f"work-{number}") for number in range(20)))
    desk.do(node_actions.cordon, ROOT, "n1")
    eventually(lambda: bool(standby.seen()) and bool(standby.events) and standby.events[-1].action == "node.cordoned")
    desk.submit(draft("last"))
    standby.seen()
    ids = [event.id for event in standby.events]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert [event.id for event in desk.events()][-len(ids) :] == ids


def test_follower_changes_nothing(desk: Desk, standby: Standby) -> None:
    before = len(desk.events())
    with pytest.raises(NotLeading):
        standby.follower.execute(jobs.submit, ANN, [draft("first")]).result(30)
    assert issubclass(NotLeading, StoreUnavailable)
    assert len(desk.events()) == before


def test_answers_that_began_before_a_promotion_continue_with_the_leader(desk: Desk, standby: Standby) -> None:
    successor = Standby(desk.store)
    try:
        standby.follower.hand_over(successor.follower)
        job = desk.submit(draft("first"))[0]
        successor.seen()
        assert standby.follower.inspect(lambda state: job.id in state.snapshot.jobs).result(30)
    finally:
        successor.follower.stop()


def test_a_read_that_a_promotion_leaves_unanswered_is_answered_by_the_leader(desk: Desk, standby: Standby) -> None:
    """It arrived after the follower's last look, and before its callers were sent to the leader."""
    successor = Standby(desk.store)
    try:
        standby.follower.stop()
        refused = standby.follower.inspect(_seen)
        assert isinstance(refused.exception(30), ControllerStopped)
        inspected = Controller.inspect
        with pytest.MonkeyPatch.context() as patched:

            def late(self: Controller, *args: Any, **kwargs: Any) -> Any:
                if self is standby.follower:
                    standby.follower._successor = successor.follower
                return inspected(self, *args, **kwargs)

            patched.setattr(Controller, "inspect", late)
            assert standby.follower.inspect(_seen).result(30) == successor.seen()
    finally:
        successor.follower.stop()
