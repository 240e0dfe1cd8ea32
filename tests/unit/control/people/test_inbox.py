"""The inbox: what happened to a user's jobs and shares without the user, read once, and only kinds that are wanted."""

from __future__ import annotations

import re
from pathlib import Path

from corral.control.alerts.facts import failures
from corral.control.fleet.draining import drains
from corral.control.jobs import jobs
from corral.control.live.unit_of_work import Caller
from corral.control.monitoring import gpu_checks
from corral.control.monitoring.gpu_checks import CheckRules
from corral.control.people import groups, quotas, user_accounts
from corral.control.people import user_inbox as inbox
from corral.control.people.user_inbox import InboxKind, InboxPage
from corral.control.ports import AttemptPhase
from corral.control.records import Role, Share, ShareKind, UserRecord
from corral.control.storage import volumes
from corral.control.storage.volumes import VolumeDraft
from corral.core.model import EndReason
from corral.core.storage.volumes import VolumeType
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

GIB = 1 << 30


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


def test_a_share_for_a_group_is_received_by_its_members_once(desk: Desk) -> None:
    desk.do(user_accounts.create_user, ROOT, "root", password_hash="h")
    desk.do(groups.create, ROOT, "vision")
    for name, group in (("ann", "vision"), ("bob", "vision"), ("carl", "default")):
        desk.do(user_accounts.create_user, ROOT, name, password_hash="h", group=group)
    data = VolumeDraft(name="data", type=VolumeType.BLOCK, size_bytes=GIB)
    volume = desk.do(volumes.create, ANN, data)
    for_bob, for_group = Share(kind=ShareKind.USER, name="bob"), Share(kind=ShareKind.GROUP, name="vision")
    desk.do(volumes.share, ANN, volume.id, [for_group])
    received = inbox_of(desk, BOB)
    assert [(event.action, event.detail["name"]) for event in received.events.items] == [
        ("volume.share-received", "data")
    ]
    # Neither the sharer, nor users outside of the group, nor a member who has the volume already.
    desk.do(volumes.share, ANN, volume.id, [for_group, for_bob])
    desk.do(volumes.share, ANN, volume.id, [for_bob])
    desk.do(volumes.share, ANN, volume.id, [for_bob, for_group])
    assert "volume.share-received" not in actions(inbox_of(desk, ANN))
    assert actions(inbox_of(desk, Caller(name="carl"))) == []
    assert len(actions(inbox_of(desk, BOB))) == 2


def test_a_quota_for_volumes_that_becomes_nearly_full_is_shown_once(desk: Desk) -> None:
    desk.do(user_accounts.create_user, ROOT, "root", password_hash="h")
    desk.do(user_accounts.create_user, ROOT, "ann", password_hash="h")
    desk.do(quotas.set_quota, ROOT, "ann", {}, {VolumeType.BLOCK: 10 * GIB})
    small = VolumeDraft(name="small", type=VolumeType.BLOCK, size_bytes=8 * GIB)
    volume = desk.do(volumes.create, ANN, small)
    assert actions(inbox_of(desk, ANN)) == []
    desk.do(volumes.resize, ANN, volume.id, 9 * GIB)
    desk.do(volumes.resize, ANN, volume.id, 10 * GIB)
    found = inbox_of(desk, ANN)
    assert actions(found) == ["quota.nearly-full"]
    assert found.events.items[0].detail["message"] == "9GiB of 10GiB for block volumes"


def test_the_inbox_of_the_console_knows_every_action() -> None:
    """The console looks at the inbox after these events, and has a sentence for each."""
    source = Path(__file__).parents[4] / "console" / "src"
    for name in ("app/shell/inboxNotice.ts", "pages/people/inbox/texts.ts"):
        named = set(re.findall(r'"([a-z]+\.[a-z-]+)"', (source / name).read_text(encoding="utf-8")))
        assert set(inbox.KINDS) <= named, name
