"""Channels: where notices are sent, which notices wait, and how often sending is tried.

Addresses arrive here encrypted, with a form of them that can be shown: an Apprise URL is a secret. Sending is the
server's business; it asks `begin` for what it may send, and says with `finish` how it went. A notice that was begun
counts as tried, so that a server that dies over it tries again later, and never for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.errors import InUse, Invalid, NotFound, Taken, WrongState
from corral.control.live.unit_of_work import PLATFORM, SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import ChannelRecord, DeliveryRecord, DeliveryState
from corral.core.names import RULE_NAME

#: Channels of the configuration file are config-1, config-2, …
CONFIG_PREFIX = "config-"
MAX_DESCRIPTION = 500
#: How long after each failed try the next one comes; after the last one it is given up.
BACKOFF_SECONDS = (1.0, 5.0, 30.0, 120.0, 600.0)
MAX_TRIES = len(BACKOFF_SECONDS) + 1
MAX_ERROR = 500
TEST = "test"


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """A notice that may be sent now."""

    delivery: DeliveryRecord
    channel: ChannelRecord


# ------------------------------------------------------------------------------------------------ channels


def create(work: Work, caller: Caller, channel: ChannelRecord) -> ChannelRecord:
    require_operator(caller, "manage channels")
    if not RULE_NAME.fullmatch(channel.name) or channel.name.startswith(CONFIG_PREFIX):
        raise Invalid(
            f"the channel name {channel.name!r} is not allowed: up to 63 small letters, digits and -, "
            f"and not {CONFIG_PREFIX}…, which are those of the configuration file",
            field="name",
        )
    if any(other.name == channel.name for other in work.tx.channels.all()):
        raise Taken(f"there is a channel {channel.name!r} already", field="name", name=channel.name)
    _check(channel)
    made = replace(channel, created_at=work.now, from_config=False)
    work.tx.channels.save(made)
    work.record(caller, "channel.created", made.name, detail=_detail(made))
    return made


def edit(work: Work, caller: Caller, name: str, changes: Mapping[str, Any]) -> ChannelRecord:
    """Change some fields. The address of a channel of the configuration file is changed there."""
    require_operator(caller, "manage channels")
    before = existing(work.tx, name)
    if before.from_config and "url" in changes:
        raise WrongState(
            f"channel {name} comes from the configuration file: change notification.channels there", field="url"
        )
    after = replace(before, **changes)
    _check(after)
    if after != before:
        work.tx.channels.save(after)
        work.record(caller, "channel.edited", name, detail={**_detail(after), "changed": sorted(changes)})
    return after


def delete(work: Work, caller: Caller, name: str) -> None:
    """Deletes a channel that no rule names. Pending notices are dropped; the delivery history is kept."""
    require_operator(caller, "manage channels")
    channel = existing(work.tx, name)
    if channel.from_config:
        raise WrongState(f"channel {name} comes from the configuration file: take it out there", field="name")
    rules = [rule.name for rule in work.tx.alerts.rules() if name in rule.channels]
    if rules:
        raise InUse(f"rules name channel {name}: {', '.join(rules[:5])}", field="name", rules=rules[:20])
    _remove(work, caller, channel)


def follow_settings(work: Work, wanted: Sequence[ChannelRecord]) -> None:
    """Makes the channels from the configuration file match it. What operators have set besides the address is kept: the
    least severity, and whether the channel is enabled.
    """
    known = {channel.name: channel for channel in work.tx.channels.all() if channel.from_config}
    for channel in wanted:
        before = known.pop(channel.name, None)
        if before is None:
            after = replace(channel, from_config=True, created_at=work.now)
        elif before.url != channel.url:
            after = replace(before, url=channel.url, shown=channel.shown, description=channel.description)
        else:
            continue
        work.tx.channels.save(after)
        work.record(SYSTEM, "channel.edited" if before else "channel.created", after.name, detail=_detail(after))
    for channel in known.values():
        _remove(work, SYSTEM, channel)


def renew_secrets(work: Work, renewed: Mapping[str, tuple[str, str]]) -> None:
    """The same addresses under a newer key: by channel, as they were and as they are now."""
    for channel in work.tx.channels.all():
        before, after = renewed.get(channel.name, ("", ""))
        # An operator may have replaced the secret meanwhile.
        if after and channel.url == before:
            work.tx.channels.save(replace(channel, url=after))
    work.record(SYSTEM, "channel.secrets-renewed", PLATFORM, detail={"secrets": len(renewed)})


def existing(tx: Transaction, name: str) -> ChannelRecord:
    for channel in tx.channels.all():
        if channel.name == name:
            return channel
    raise NotFound(f"there is no channel {name!r}", field="channel")


# ------------------------------------------------------------------------------------------------ notices


def enqueue(
    work: Work, channels: Sequence[str], kind: str, title: str, body: str, attachments: Sequence[str] = ()
) -> list[DeliveryRecord]:
    """Queue one notice for each of these channels; those that are gone or switched off are left out."""
    usable = {channel.name for channel in work.tx.channels.all() if channel.enabled}
    return work.tx.channels.add_deliveries(
        [
            DeliveryRecord(
                channel=name,
                kind=kind,
                title=title,
                body=body,
                attachments=tuple(attachments),
                created_at=work.now,
                next_try_at=work.now,
            )
            for name in dict.fromkeys(channels)
            if name in usable
        ]
    )


def test(work: Work, caller: Caller, name: str) -> DeliveryRecord:
    """Send a message that says nothing, also to a channel that is switched off. It is tried once."""
    require_operator(caller, "manage channels")
    channel = existing(work.tx, name)
    message = DeliveryRecord(
        channel=name,
        kind=TEST,
        title="[corral] Test message",
        body=f"This is a test of channel {name}, asked for by {caller.name}. If you can read it, the channel works.",
        created_at=work.now,
        next_try_at=work.now,
    )
    work.record(caller, "channel.tested", channel.name)
    return work.tx.channels.add_deliveries([message])[0]


def begin(work: Work, delivery_id: int) -> Begun | None:
    """Count a try, or say that there is nothing to send (any more)."""
    delivery = work.tx.channels.delivery(delivery_id)
    if delivery is None or delivery.state is not DeliveryState.WAITING:
        return None
    channel = next((item for item in work.tx.channels.all() if item.name == delivery.channel), None)
    if channel is None or not (channel.enabled or delivery.kind == TEST):
        gone = "was deleted" if channel is None else "is switched off"
        _give_up(work, delivery, f"channel {delivery.channel} {gone}")
        return None
    if delivery.attempts >= MAX_TRIES:
        # Only after a server that died over its last try.
        _give_up(work, delivery, delivery.error or "the server ended while it was sent")
        return None
    tried = delivery.attempts + 1
    begun = replace(delivery, attempts=tried, next_try_at=work.now + backoff_seconds(tried))
    work.tx.channels.save_delivery(begun)
    return Begun(delivery=begun, channel=channel)


def finish(work: Work, delivery_id: int, error: str | None = None, *, is_final: bool = False) -> DeliveryRecord | None:
    """How a try ended: without an error it was sent; a final error is not tried again."""
    delivery = work.tx.channels.delivery(delivery_id)
    if delivery is None or delivery.state is not DeliveryState.WAITING:
        return delivery
    if error is None:
        sent = replace(delivery, state=DeliveryState.SENT, sent_at=work.now, error="")
        work.tx.channels.save_delivery(sent)
        return sent
    failed = replace(delivery, error=error[:MAX_ERROR])
    if is_final or delivery.kind == TEST or delivery.attempts >= MAX_TRIES:
        return _give_up(work, failed, failed.error)
    failed = replace(failed, next_try_at=work.now + backoff_seconds(delivery.attempts))
    work.tx.channels.save_delivery(failed)
    return failed


def resend(work: Work, caller: Caller, delivery_id: int) -> DeliveryRecord:
    """Try one that was given up again, from the beginning."""
    require_operator(caller, "manage channels")
    delivery = work.tx.channels.delivery(delivery_id)
    if delivery is None:
        raise NotFound(f"there is no delivery {delivery_id}", field="delivery")
    if delivery.state is not DeliveryState.FAILED:
        raise WrongState(f"delivery {delivery_id} is {delivery.state}: only a failed one is sent again", field="id")
    existing(work.tx, delivery.channel)
    again = replace(delivery, state=DeliveryState.WAITING, attempts=0, next_try_at=work.now, error="")
    work.tx.channels.save_delivery(again)
    work.record(caller, "channel.resent", delivery.channel, detail={"delivery": delivery_id})
    return again


def backoff_seconds(tries: int) -> float:
    """How long after so many tries the next one comes."""
    return BACKOFF_SECONDS[min(max(tries, 1), len(BACKOFF_SECONDS)) - 1]


# ------------------------------------------------------------------------------------------------ inside


def _remove(work: Work, caller: Caller, channel: ChannelRecord) -> None:
    for delivery in work.tx.channels.waiting():
        if delivery.channel == channel.name:
            _give_up(work, delivery, f"channel {channel.name} was deleted")
    work.tx.channels.delete(channel.name)
    work.record(caller, "channel.deleted", channel.name)


def _give_up(work: Work, delivery: DeliveryRecord, error: str) -> DeliveryRecord:
    failed = replace(delivery, state=DeliveryState.FAILED, error=error)
    work.tx.channels.save_delivery(failed)
    detail = {"delivery": delivery.id, "kind": delivery.kind, "title": delivery.title, "error": error}
    work.record(SYSTEM, "channel.delivery-failed", delivery.channel, detail=detail)
    return failed


def _check(channel: ChannelRecord) -> None:
    if not channel.url:
        raise Invalid("a channel needs an address", field="url")
    if len(channel.description) > MAX_DESCRIPTION:
        raise Invalid(f"at most {MAX_DESCRIPTION} characters", field="description", limit=MAX_DESCRIPTION)


def _detail(channel: ChannelRecord) -> dict[str, Any]:
    """The details of a channel for the audit log, without secrets."""
    return {"shown": channel.shown, "enabled": channel.enabled, "min_severity": channel.min_severity}
