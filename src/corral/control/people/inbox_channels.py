"""Personal channels: where a user's inbox is also sent, by mail, to a chat or to a URL.

A channel names the kinds of items that it gets; what the inbox does not show is not sent either. Addresses arrive here
encrypted. A mail address is used when its user has typed the code that was mailed there. Items that come within a
minute travel in one message. Sending is the server's business: it asks `begin` for a message and says with `finish` how
it went, so that a server that dies over a message sends it again later, and never for ever.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from corral.control.alerts.channels import MAX_ERROR, MAX_TRIES, backoff_seconds
from corral.control.errors import Invalid, NotFound, OverLimit, Taken, WrongState
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people import user_inbox
from corral.control.people.user_inbox import KINDS, InboxKind
from corral.control.ports import Transaction
from corral.control.records import EventRecord, PersonalChannelKind, PersonalChannelRecord
from corral.core.names import RULE_NAME

MAX_CHANNELS = 5
#: between two messages of one channel
GAP_SECONDS = 60.0
#: in one message; the others are counted
MAX_ITEMS = 20
CODE_SECONDS = 3600.0
MAX_WRONG_CODES = 5
#: codes and test messages of one user within an hour
MAX_ASKED = 10
_HOUR = 3600.0

#: How messages say what has happened.
SENTENCES: dict[str, str] = {
    "job.running": "{name} has started",
    "job.completed": "{name} has completed",
    "job.stopped": "{name} was stopped",
    "job.failed": "{name} has failed",
    "job.preempting": "{name} is preempted",
    "job.moving": "{name} moves to another node",
    "job.starts-earlier": "{name} is expected to start earlier",
    "job.starts-later": "{name} is expected to start later",
    "job.idle-warned": "{name} does not use its GPUs",
    "job.idle-stopped": "{name} was stopped because it did not use its GPUs",
    "job.hung": "{name} hangs: it does no more steps",
    "job.slow": "{name} is slower than before",
    "volume.nearly-full": "Volume {name} is nearly full",
    "quota.nearly-full": "The quota for {name} volumes is nearly used up",
    "budget.soft-limit-reached": "The soft limit of budget {name} is reached",
    "budget.hard-limit-reached": "The hard limit of budget {name} is reached",
    "volume.share-received": "Volume {name} was shared with you",
    "dataset.share-received": "Dataset {name} was shared with you",
    "node.drained": "Node {name} is drained",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelItem:
    """One item of an inbox, in words."""

    id: int
    at: float
    kind: InboxKind
    action: str
    subject: str
    name: str
    text: str
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelMessage:
    """The content of one message. A test message has no items."""

    channel: PersonalChannelRecord
    items: tuple[ChannelItem, ...] = ()
    #: items that did not fit
    more: int = 0
    #: the last event that the message is about
    until: int = 0


# ------------------------------------------------------------------------------------------------ a user's own


def create(work: Work, caller: Caller, channel: PersonalChannelRecord) -> PersonalChannelRecord:
    """A mail address comes with the digest of the code that the server mails to it."""
    own = work.tx.personal_channels.of_user(caller.name)
    if not RULE_NAME.fullmatch(channel.name):
        raise Invalid(
            f"the channel name {channel.name!r} is not allowed: up to 63 small letters, digits and -", field="name"
        )
    if any(other.name == channel.name for other in own):
        raise Taken(f"you have a channel {channel.name!r} already", field="name", name=channel.name)
    if len(own) >= MAX_CHANNELS:
        raise OverLimit(f"you have {len(own)} channels already: remove one first", held=len(own), limit=MAX_CHANNELS)
    needs_code = channel.kind is PersonalChannelKind.MAIL
    if needs_code != bool(channel.code_digest):
        raise ValueError("mail addresses, and no others, are confirmed by a code")
    if needs_code:
        _count_asked(work, caller)
    made = replace(
        channel,
        user=caller.name,
        kinds=_checked(channel.kinds),
        created_at=work.now,
        code_until=work.now + CODE_SECONDS if needs_code else 0.0,
        sent_until=work.tx.events.last_id(),
    )
    work.tx.personal_channels.save(made)
    _record(work, caller, "created", made)
    return made


def edit(
    work: Work, caller: Caller, name: str, *, kinds: Sequence[str] | None = None, enabled: bool | None = None
) -> PersonalChannelRecord:
    """A channel that is switched on again begins with what happens from then on."""
    before = existing(work.tx, caller, name)
    after = before if kinds is None else replace(before, kinds=_checked(kinds))
    if enabled is not None and enabled != before.enabled:
        after = replace(after, enabled=enabled, sent_until=work.tx.events.last_id(), tries=0, next_try_at=0.0, error="")
    if after != before:
        work.tx.personal_channels.save(after)
        _record(work, caller, "edited", after)
    return after


def delete(work: Work, caller: Caller, name: str) -> None:
    channel = existing(work.tx, caller, name)
    work.tx.personal_channels.delete(caller.name, name)
    _record(work, caller, "deleted", channel)


def renew_code(work: Work, caller: Caller, name: str, digest: str) -> PersonalChannelRecord:
    """Another code for an address that is not confirmed yet; the one before is not valid any more."""
    channel = existing(work.tx, caller, name)
    if channel.is_confirmed:
        raise WrongState(f"the address of channel {name} is confirmed already", field="name")
    _count_asked(work, caller)
    after = replace(channel, code_digest=digest, code_until=work.now + CODE_SECONDS, wrong_codes=0)
    work.tx.personal_channels.save(after)
    return after


def confirm(work: Work, caller: Caller, name: str, digest: str) -> PersonalChannelRecord | None:
    """Confirms the address with the digest of the code; None if it is the wrong one, which is counted."""
    channel = existing(work.tx, caller, name)
    if channel.is_confirmed:
        return channel
    if work.now > channel.code_until or channel.wrong_codes >= MAX_WRONG_CODES:
        raise WrongState(f"the code of channel {name} is not valid any more: ask for another one", field="code")
    if not hmac.compare_digest(channel.code_digest, digest):
        work.tx.personal_channels.save(replace(channel, wrong_codes=channel.wrong_codes + 1))
        return None
    after = replace(channel, code_digest="", code_until=0.0, error="", sent_until=work.tx.events.last_id())
    work.tx.personal_channels.save(after)
    _record(work, caller, "confirmed", after)
    return after


def begin_test(work: Work, caller: Caller, name: str) -> ChannelMessage:
    channel = existing(work.tx, caller, name)
    if not channel.is_confirmed:
        raise WrongState(f"the address of channel {name} is not confirmed yet", field="name")
    _count_asked(work, caller)
    return ChannelMessage(channel=channel)


def note_error(work: Work, user: str, name: str, error: str) -> PersonalChannelRecord | None:
    """How a test message or a code went; empty if it was accepted."""
    channel = _found(work.tx, user, name)
    if channel is None:
        return None
    after = replace(channel, error=error[:MAX_ERROR])
    if after != channel:
        work.tx.personal_channels.save(after)
    return after


def existing(tx: Transaction, caller: Caller, name: str) -> PersonalChannelRecord:
    channel = _found(tx, caller.name, name)
    if channel is None:
        raise NotFound(f"you have no channel {name[:80]!r}", field="channel")
    return channel


def forget(work: Work, user: str) -> None:
    """Remove the channels of a user who is deleted."""
    for channel in work.tx.personal_channels.of_user(user):
        work.tx.personal_channels.delete(user, channel.name)
    if work.tx.meta.get(_asked_key(user)):
        work.tx.meta.put(_asked_key(user), "")


def renew_secrets(work: Work, renewed: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    """The same addresses under a newer key: by user and name, as they were and as they are now."""
    for channel in work.tx.personal_channels.all():
        before, after = renewed.get((channel.user, channel.name), ("", ""))
        # Its user may have replaced the channel meanwhile.
        if after and channel.address == before:
            work.tx.personal_channels.save(replace(channel, address=after))


# ------------------------------------------------------------------------------------------------ sending


def pending(tx: Transaction, users: Collection[str] | None) -> list[PersonalChannelRecord]:
    """The channels with items that were not sent yet, only those of these users unless None."""
    if users is None:
        found = tx.personal_channels.all()
    else:
        found = [channel for user in sorted(users) for channel in tx.personal_channels.of_user(user)]
    return [channel for channel in found if _is_used(tx, channel) and _message(tx, channel) is not None]


def may_send(channel: PersonalChannelRecord, now: float) -> bool:
    """A time later than any pause is from before the clock was set back."""
    return not now < channel.next_try_at <= now + _HOUR


def begin(work: Work, user: str, name: str) -> ChannelMessage | None:
    """Count a try of the next message, or say that there is nothing to send now."""
    channel = _found(work.tx, user, name)
    if channel is None or not may_send(channel, work.now) or not _is_used(work.tx, channel):
        return None
    message = _message(work.tx, channel)
    if message is None:
        return None
    if channel.tries >= MAX_TRIES:
        # Only after a server that died over its last try.
        _give_up(work, channel, message.until, channel.error or "the server ended while it was sent")
        return None
    tried = channel.tries + 1
    begun = replace(channel, tries=tried, next_try_at=work.now + max(GAP_SECONDS, backoff_seconds(tried)))
    work.tx.personal_channels.save(begun)
    return replace(message, channel=begun)


def finish(work: Work, message: ChannelMessage, error: str | None = None, *, is_final: bool = False) -> None:
    """How a try ended: without an error it was sent; a final error is not tried again."""
    channel = _found(work.tx, message.channel.user, message.channel.name)
    if channel is None or channel.created_at != message.channel.created_at:
        return
    if error is None:
        until = max(channel.sent_until, message.until)
        work.tx.personal_channels.save(replace(channel, sent_until=until, tries=0, sent_at=work.now, error=""))
    elif is_final or channel.tries >= MAX_TRIES:
        _give_up(work, channel, message.until, error)
    else:
        work.tx.personal_channels.save(replace(channel, error=error[:MAX_ERROR]))


# ------------------------------------------------------------------------------------------------ inside


def _found(tx: Transaction, user: str, name: str) -> PersonalChannelRecord | None:
    return next((channel for channel in tx.personal_channels.of_user(user) if channel.name == name), None)


def _is_used(tx: Transaction, channel: PersonalChannelRecord) -> bool:
    if not channel.enabled or not channel.is_confirmed:
        return False
    record = tx.people.user(channel.user)
    return record is not None and not record.disabled


def _message(tx: Transaction, channel: PersonalChannelRecord) -> ChannelMessage | None:
    state = user_inbox.state_of(tx, channel.user)
    kinds = set(channel.kinds or InboxKind) - set(state.muted)
    where = replace(
        user_inbox.where_of(channel.user, state),
        actions=tuple(action for action, kind in KINDS.items() if kind.value in kinds),
        after_id=channel.sent_until,
    )
    if not where.actions:
        return None
    newest = tx.events.page(where, cursor=None, limit=MAX_ITEMS).items
    if not newest:
        return None
    more = tx.events.count(where) - len(newest)
    items = tuple(_item(tx, event) for event in reversed(newest))
    return ChannelMessage(channel=channel, items=items, more=more, until=newest[0].id)


def _item(tx: Transaction, event: EventRecord) -> ChannelItem:
    record = tx.jobs.get(event.subject) if event.action.startswith("job.") else None
    name = record.job.name if record is not None else str(event.detail.get("name", ""))
    return ChannelItem(
        id=event.id,
        at=event.at,
        kind=KINDS[event.action],
        action=event.action,
        subject=event.subject,
        name=name,
        text=str(event.detail.get("message") or event.detail.get("text") or ""),
        sentence=SENTENCES[event.action].format(name=name or event.subject),
    )


def _give_up(work: Work, channel: PersonalChannelRecord, until: int, error: str) -> None:
    after = replace(channel, sent_until=max(channel.sent_until, until), tries=0, error=error[:MAX_ERROR])
    work.tx.personal_channels.save(after)
    detail = {"kind": channel.kind.value, "shown": channel.shown, "error": after.error}
    work.record(SYSTEM, "inbox-channel.delivery-failed", channel.name, owner=channel.user, detail=detail)


def _checked(kinds: Sequence[str]) -> tuple[str, ...]:
    wrong = [kind for kind in kinds if kind not in set(InboxKind)]
    if wrong:
        raise Invalid(f"must be any of: {', '.join(InboxKind)}", field="kinds")
    return tuple(sorted(set(kinds)))


def _count_asked(work: Work, caller: Caller) -> None:
    """Codes and test messages go out at once: few of them, or a user could flood an address."""
    text = work.tx.meta.get(_asked_key(caller.name))
    recent = [at for at in (json.loads(text) if text else []) if work.now - _HOUR < at <= work.now]
    if len(recent) >= MAX_ASKED:
        raise OverLimit(
            f"at most {MAX_ASKED} codes and test messages in an hour: try again later",
            held=len(recent),
            limit=MAX_ASKED,
        )
    work.tx.meta.put(_asked_key(caller.name), json.dumps([*recent, work.now]))


def _asked_key(user: str) -> str:
    return f"inbox-asked.{user}"


def _record(work: Work, caller: Caller, what: str, channel: PersonalChannelRecord) -> None:
    detail = {
        "kind": channel.kind.value,
        "shown": channel.shown,
        "kinds": list(channel.kinds),
        "enabled": channel.enabled,
    }
    work.record(caller, f"inbox-channel.{what}", channel.name, owner=channel.user, detail=detail)
