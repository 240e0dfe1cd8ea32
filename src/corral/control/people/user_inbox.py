"""The inbox of a user: events that concern the user and were caused by another user or by corral.

An inbox is a view of the event log, which has the owner of each event: nothing is written when something happens, and
reading costs one range of an index. Stored are only the last event that the user has read, and the kinds that the user
does not want.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.ports import Transaction
from corral.control.records import EventFilter, EventRecord, Page, Share, ShareKind


class InboxKind(StrEnum):
    STARTED = "started"
    ENDED = "ended"
    FAILED = "failed"
    PREEMPTED = "preempted"
    ESTIMATE = "estimate"
    IDLE = "idle"
    STALLED = "stalled"
    STORAGE = "storage"
    QUOTA = "quota"
    SHARED = "shared"
    FLEET = "fleet"


#: Which events are shown, as which kind.
KINDS: dict[str, InboxKind] = {
    "job.running": InboxKind.STARTED,
    "job.completed": InboxKind.ENDED,
    "job.stopped": InboxKind.ENDED,
    "job.failed": InboxKind.FAILED,
    "job.preempting": InboxKind.PREEMPTED,
    "job.moving": InboxKind.PREEMPTED,
    "job.starts-earlier": InboxKind.ESTIMATE,
    "job.starts-later": InboxKind.ESTIMATE,
    "job.idle-warned": InboxKind.IDLE,
    "job.idle-stopped": InboxKind.IDLE,
    "job.hung": InboxKind.STALLED,
    "job.slow": InboxKind.STALLED,
    "volume.nearly-full": InboxKind.STORAGE,
    "quota.nearly-full": InboxKind.QUOTA,
    "budget.soft-limit-reached": InboxKind.QUOTA,
    "budget.hard-limit-reached": InboxKind.QUOTA,
    "volume.share-received": InboxKind.SHARED,
    "dataset.share-received": InboxKind.SHARED,
    "node.drained": InboxKind.FLEET,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxState:
    #: the id of the last event that the user has read
    read_until: int = 0
    muted: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxPage:
    events: Page[EventRecord]
    #: names of the jobs, by id
    names: dict[str, str]
    unread: int
    state: InboxState


def state_of(tx: Transaction, user: str) -> InboxState:
    text = tx.meta.get(_key(user))
    if not text:
        return InboxState()
    stored = json.loads(text)
    return InboxState(read_until=stored["read_until"], muted=tuple(stored["muted"]))


def page(tx: Transaction, user: str, *, unread_only: bool, cursor: str | None, limit: int) -> InboxPage:
    """Newest first. Raises ValueError for a bad cursor."""
    state = state_of(tx, user)
    where = where_of(user, state)
    unread = replace(where, after_id=state.read_until)
    found = tx.events.page(unread if unread_only else where, cursor=cursor, limit=limit)
    jobs = {event.subject for event in found.items if event.action.startswith("job.")}
    records = {job_id: tx.jobs.get(job_id) for job_id in jobs}
    names = {job_id: record.job.name for job_id, record in records.items() if record is not None}
    return InboxPage(events=found, names=names, unread=tx.events.count(unread), state=state)


def mark_read(work: Work, caller: Caller, until: int) -> InboxState:
    """Marks everything up to this event as read; an older mark changes nothing."""
    before = state_of(work.tx, caller.name)
    after = replace(before, read_until=max(before.read_until, min(until, work.tx.events.last_id())))
    return _kept(work, caller, before, after)


def mute(work: Work, caller: Caller, kinds: Sequence[InboxKind]) -> InboxState:
    """The kinds that the user does not want; all others are shown."""
    before = state_of(work.tx, caller.name)
    return _kept(work, caller, before, replace(before, muted=tuple(sorted({kind.value for kind in kinds}))))


def forget(work: Work, user: str) -> None:
    """A later user of this name begins with an inbox of its own."""
    if work.tx.meta.get(_key(user)):
        work.tx.meta.put(_key(user), "")


def note_shares(
    work: Work, caller: Caller, noun: str, subject: str, name: str, before: Sequence[Share], after: Sequence[Share]
) -> None:
    """An event for each user who gets a share of a volume or dataset, also as a member of a group."""
    known = {(share.kind, share.name) for share in before}
    new = [share for share in after if (share.kind, share.name) not in known]
    received: dict[str, Share] = {}
    if groups := {share.name: share for share in new if share.kind is ShareKind.GROUP}:
        received = {user.name: groups[user.group] for user in work.tx.people.users() if user.group in groups}
    received |= {share.name: share for share in new if share.kind is ShareKind.USER}
    had = {name for kind, name in known if kind is ShareKind.USER}
    for user, share in received.items():
        if user != caller.name and user not in had:
            detail = {"name": name, "by": caller.name, "mode": share.mode.value}
            work.record(SYSTEM, f"{noun}.share-received", subject, owner=user, detail=detail)


def where_of(user: str, state: InboxState) -> EventFilter:
    """The events that the inbox of the user shows."""
    wanted = tuple(action for action, kind in KINDS.items() if kind.value not in state.muted)
    return EventFilter(owner=user, actions=wanted, not_by=user)


def _kept(work: Work, caller: Caller, before: InboxState, after: InboxState) -> InboxState:
    if after != before:
        work.tx.meta.put(_key(caller.name), json.dumps(asdict(after)))
    return after


def _key(user: str) -> str:
    return f"inbox.{user}"
