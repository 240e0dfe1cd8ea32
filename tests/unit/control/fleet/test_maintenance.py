"""Maintenance windows: nodes are drained before, empty in, and back after them; repeated ones begin again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from corral.control.errors import Forbidden, Invalid, NotFound, Taken, WrongState
from corral.control.fleet import node_actions
from corral.control.fleet.draining import drains, maintenance
from corral.control.fleet.draining.maintenance import MaintenanceDraft, MaintenanceState
from corral.control.ports import AttemptPhase
from corral.core.model import EndReason, JobState, NodeState
from tests.unit.control.world import ANN, ROOT, TWO_NODES, Desk, draft

HOUR = 3600.0
DAY = 86400.0


def plan(desk: Desk, name: str = "fans", **values: Any) -> None:
    given = {
        "nodes": ("n1",),
        "since": desk.now + 2 * HOUR,
        "until": desk.now + 4 * HOUR,
        "drain_seconds": HOUR,
        **values,
    }
    sets = "every_days" in given
    desk.do(maintenance.create, ROOT, name, MaintenanceDraft(sets_repetition=sets, **given))


def later(desk: Desk, seconds: float) -> None:
    """Lets time pass: the state is that of a server that was started meanwhile."""
    desk.now += seconds
    desk.state = desk.loaded()
    if maintenance.is_due(desk.state, desk.now):
        desk.do(maintenance.go_on)
    assert not maintenance.is_due(desk.state, desk.now)


def withheld(desk: Desk, node: str = "n1") -> NodeState:
    return desk.state.snapshot.nodes[node].withheld


def state(desk: Desk, name: str = "fans") -> MaintenanceState:
    return maintenance.state_of(desk.state.maintenance[name], desk.now)


def test_a_node_is_drained_before_the_window_emptied_when_it_begins_and_back_after_it(desk: Desk) -> None:
    job = desk.started(draft(gpus=4), draft(gpus=4))[0]
    allocation = desk.job(job.id).allocation
    assert allocation is not None
    node = allocation.grants[0].node
    plan(desk, nodes=(node,))
    later(desk, HOUR - 1)
    assert (state(desk), withheld(desk, node)) == (MaintenanceState.UPCOMING, NodeState.READY)
    later(desk, 1)
    assert (state(desk), withheld(desk, node)) == (MaintenanceState.DRAINING, NodeState.DRAINING)
    assert desk.job(job.id).state is JobState.RUNNING
    assert desk.state.drains[node].window == "fans"
    later(desk, HOUR - 1)
    assert desk.job(job.id).state is JobState.RUNNING
    later(desk, 1)
    asked = desk.job(job.id)
    assert (state(desk), asked.state) == (MaintenanceState.ACTIVE, JobState.STOPPING)
    assert "for maintenance (fans)" in desk.state.receipts[job.id].detail
    desk.hear(asked, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    later(desk, 2 * HOUR - 1)
    assert (withheld(desk, node), maintenance.busy_nodes(desk.state) & {node}) == (
        NodeState.DRAINING, set(),
    )  # fmt: skip
    later(desk, 1)
    assert (state(desk), withheld(desk, node)) == (MaintenanceState.OVER, NodeState.READY)
    assert desk.state.drains == {}
    assert desk.actions("fans") == ["maintenance.created", "maintenance.began", "maintenance.ended"]


def test_a_repeated_window_begins_again_at_the_same_time_of_the_day(desk: Desk) -> None:
    since = desk.now + 2 * HOUR
    plan(desk, every_days=7)
    later(desk, HOUR)
    later(desk, 3 * HOUR)
    record = desk.state.maintenance["fans"]
    assert datetime.fromtimestamp(record.since) == datetime.fromtimestamp(since) + timedelta(days=7)
    assert (record.until - record.since, record.begun) == (2 * HOUR, ())
    assert (state(desk), withheld(desk)) == (MaintenanceState.UPCOMING, NodeState.READY)
    later(desk, 7 * DAY - 3 * HOUR)
    assert withheld(desk) is NodeState.DRAINING
    assert desk.actions("fans").count("maintenance.began") == 2


def test_a_window_that_passed_while_no_server_ran_is_not_made_up_for(desk: Desk) -> None:
    plan(desk, every_days=1)
    later(desk, 3 * DAY + 4.5 * HOUR)
    assert (withheld(desk), desk.actions("fans")) == (NodeState.READY, ["maintenance.created"])
    assert desk.state.maintenance["fans"].since > desk.now
    # One that passed for a part is begun late.
    later(desk, DAY - 1.5 * HOUR)
    assert (state(desk), withheld(desk)) == (MaintenanceState.ACTIVE, NodeState.DRAINING)


def test_a_repeated_window_that_began_centuries_ago_is_not_counted_day_by_day(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller would count, and all other requests wait."""
    seen: list[float] = []
    original = maintenance._occurrences

    def counted(*args: Any) -> Any:
        for found in original(*args):
            seen.append(found[0])
            yield found

    monkeypatch.setattr(maintenance, "_occurrences", counted)
    begin = datetime(1700, 1, 1, 3).timestamp()
    plan(desk, since=begin, until=begin + HOUR, every_days=1)
    record = desk.state.maintenance["fans"]
    assert record.until > desk.now >= record.until - DAY
    assert datetime.fromtimestamp(record.since).hour == 3
    assert len(seen) <= 3


def test_cordoned_node_stays_cordoned_and_is_emptied_too(desk: Desk) -> None:
    desk.do(node_actions.cordon, ROOT, "n1")
    desk.do(drains.drain, ROOT, "n2")
    plan(desk, nodes=("n1", "n2"))
    later(desk, HOUR)
    assert (withheld(desk), withheld(desk, "n2")) == (NodeState.DRAINING, NodeState.DRAINING)
    assert {one.empty_by for one in desk.state.drains.values()} == {1000.0 + 2 * HOUR}
    later(desk, 3 * HOUR)
    assert (withheld(desk), withheld(desk, "n2")) == (NodeState.DRAINING, NodeState.DRAINING)


def test_an_operator_can_take_a_node_back_within_the_window(desk: Desk) -> None:
    plan(desk, nodes=("n1", "n2"))
    later(desk, HOUR)
    desk.do(node_actions.uncordon, ROOT, "n1")
    desk.do(node_actions.cordon, ROOT, "n2")
    later(desk, 1)
    assert (withheld(desk), withheld(desk, "n2")) == (NodeState.READY, NodeState.CORDONED)
    later(desk, 3 * HOUR)
    assert (withheld(desk), withheld(desk, "n2")) == (NodeState.READY, NodeState.CORDONED)


def test_a_node_of_two_windows_comes_back_after_the_last(desk: Desk) -> None:
    plan(desk)
    plan(desk, "cables", since=desk.now + 3 * HOUR, until=desk.now + 6 * HOUR, drain_seconds=0.0)
    later(desk, 2 * HOUR)
    later(desk, HOUR)
    assert desk.state.drains["n1"].window == "fans"
    # The earlier window says by when it must be empty.
    assert desk.state.drains["n1"].empty_by == 1000.0 + 2 * HOUR
    later(desk, HOUR)
    assert (withheld(desk), desk.state.drains["n1"].window) == (NodeState.DRAINING, "cables")
    later(desk, 2 * HOUR)
    assert withheld(desk) is NodeState.READY


def test_changes_count_at_once(desk: Desk) -> None:
    plan(desk)
    later(desk, HOUR)
    desk.do(maintenance.edit, ROOT, "fans", MaintenanceDraft(nodes=("n2",)))
    assert (withheld(desk), withheld(desk, "n2")) == (NodeState.READY, NodeState.DRAINING)
    desk.do(maintenance.edit, ROOT, "fans", MaintenanceDraft(since=desk.now + 30.0))
    assert desk.state.drains["n2"].empty_by == desk.now + 30.0
    desk.do(maintenance.edit, ROOT, "fans", MaintenanceDraft(until=desk.now + 9 * HOUR, note="the other fans"))
    assert desk.state.maintenance["fans"].begun == ("n2",)
    desk.do(maintenance.delete, ROOT, "fans")
    assert (withheld(desk, "n2"), desk.state.maintenance) == (NodeState.READY, {})
    # One that begins at once does so.
    plan(desk, since=desk.now - 1.0)
    assert withheld(desk) is NodeState.DRAINING


def test_a_node_that_is_back_within_the_window_is_drained_then(desk: Desk) -> None:
    plan(desk, nodes=("n1", "n2"))
    desk.observe(*TWO_NODES[:1])
    desk.do(node_actions.remove, ROOT, "n2")
    later(desk, HOUR)
    assert desk.state.maintenance["fans"].begun == ("n1",)
    desk.observe(*TWO_NODES)
    later(desk, 1.0)
    assert withheld(desk, "n2") is NodeState.DRAINING


def test_windows_that_make_no_sense_are_refused(desk: Desk) -> None:
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"nodes": ()}, "nodes"),
        ({"nodes": ("n9",)}, "nodes"),
        ({"until": None}, "until"),
        ({"until": desk.now + HOUR}, "until"),
        ({"since": desk.now - 9.0, "until": desk.now - 1.0}, "until"),
        ({"every_days": 1, "until": desk.now + 26 * HOUR}, "every_days"),
    ]
    for values, field in refusals:
        with pytest.raises(Invalid) as refused:
            plan(desk, **values)
        assert refused.value.field == field
    with pytest.raises(Forbidden):
        desk.do(maintenance.create, ANN, "fans", MaintenanceDraft(nodes=("n1",), until=desk.now + 9.0))
    plan(desk)
    with pytest.raises(Taken):
        plan(desk)
    with pytest.raises(NotFound):
        desk.do(maintenance.edit, ROOT, "pumps", MaintenanceDraft())
    later(desk, DAY)
    with pytest.raises(WrongState):
        desk.do(maintenance.edit, ROOT, "fans", MaintenanceDraft(note="x"))
    # The name of one that is over is free again; one that ended long ago is forgotten.
    plan(desk)
    later(desk, 40 * DAY)
    assert desk.do(maintenance.tidy) == 1
    assert desk.state.maintenance == {}
