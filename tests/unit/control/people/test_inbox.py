"""The inbox: what happened to a user's jobs and shares without the user, read once, and only kinds that are wanted."""

from __future__ import annotations

from corral.control.alerts.facts import failures
from corral.control.fleet.draining import drains
from corral.control.jobs import jobs
from corral.control.live.unit_of_work import Caller
from corral.control.monitoring import gpu_checks
from corral.control.monitoring.gpu_checks import CheckRules
from corral.control.people import user_inbox as inbox
from corral.control.people.user_inbox import InboxKind, InboxPage
from corral.control.ports import AttemptPhase
from corral.control.records import Role, UserRecord
from corral.core.model import EndReason
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft


def inbox_of(desk: Desk, caller: Caller, *, unread: bool = False) -> InboxPage:
    with desk.store.read() as tx:
        return inbox.page(tx, caller.name, unread_only=unread, cursor=None, limit=50)


def actions(page: InboxPage) -> list[str]:
    return [event.action for event in page.events.items]


def test_starts_and_ends_of_own_jobs_are_shown_with_names_until_read(desk: Desk) -> None:
    good, bad = desk.started(draft(name="good-one"), draft(name="bad-one"))
    desk.hear(desk.job(good.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.hear(desk.job(bad.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    found = inbox_of(desk, ANN)
    assert actions(found) == ["job.failed", "job.completed", "job.running", "job.running"]
    assert found.names == {good.id: "good-one", bad.id: "bad-one"}
    assert found.unread == 4
    assert actions(inbox_of(desk, BOB)) == []
    desk.do(inbox.mark_read, ANN, found.events.items[1].id)
    assert actions(inbox_of(desk, ANN, unread=True)) == ["job.failed"]
    assert inbox_of(desk, ANN).unread == 1
    # An older mark, or one of the future, does no harm.
    desk.do(inbox.mark_read, ANN, 1)
    assert inbox_of(desk, ANN).unread == 1
    desk.do(inbox.mark_read, ANN, 2**40)
    desk.started(draft(name="later-one"))
    assert actions(inbox_of(desk, ANN, unread=True)) == ["job.running"]


def test_unwanted_kinds_are_left_out_and_not_counted(desk: Desk) -> None:
    job = desk.started(draft())[0]
    desk.do(inbox.mute, ANN, [InboxKind.STARTED, InboxKind.STARTED])
    assert actions(inbox_of(desk, ANN)) == []
    desk.do(jobs.stop, ROOT, job.id)
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    found = inbox_of(desk, ANN)
    assert (actions(found), found.unread) == (["job.stopped"], 1)
    assert found.state.muted == ("started",)


def test_a_displaced_job_has_its_receipt_and_the_operator_hears_that_the_node_is_drained(desk: Desk) -> None:
    job = desk.started(draft(gpus=2))[0]
    allocation = desk.job(job.id).allocation
    assert allocation is not None
    node = allocation.grants[0].node
    desk.do(drains.drain, ROOT, node, desk.now)
    first = inbox_of(desk, ANN).events.items[0]
    assert first.action == "job.moving"
    assert first.detail["receipt"] == desk.state.receipts[job.id].id
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(drains.go_on)
    assert [(event.action, event.subject) for event in inbox_of(desk, ROOT).events.items] == [("node.drained", node)]


def test_checks_of_gpus_are_not_shown_in_the_inbox_of_an_operator(desk: Desk) -> None:
    rules = CheckRules(every_seconds=10.0, at_once=8)
    desk.do(lambda work: work.tx.people.add_user(UserRecord(name="root", role=Role.OPERATOR)))
    for outcome in (0, 1):
        desk.now += 100.0
        records = desk.do(gpu_checks.begin_scheduled, rules)
        assert len(records) == 8
        desk.cycle()
        for record in records:
            job = desk.job(record.job_id)
            desk.hear(job, AttemptPhase.RUNNING)
            desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=outcome)
            desk.do(gpu_checks.finish, record.job_id, None, rules)
    assert actions(inbox_of(desk, ROOT)) == []
    with desk.store.read() as tx:
        assert failures(tx, desk.now) == []
