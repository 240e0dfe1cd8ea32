"""Personal channels: what is sent, how often, after which confirmation, and how it is given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.alerts.channels import MAX_TRIES
from corral.control.errors import Invalid, NotFound, OverLimit, Taken, WrongState
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import inbox_channels as channels
from corral.control.people import user_accounts
from corral.control.people import user_inbox as inbox
from corral.control.people.inbox_channels import GAP_SECONDS, MAX_ASKED, MAX_CHANNELS, MAX_ITEMS, ChannelMessage
from corral.control.people.user_inbox import KINDS, InboxKind
from corral.control.ports import AttemptPhase
from corral.control.records import PersonalChannelKind, PersonalChannelRecord, UserRecord
from corral.core.model import EndReason
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft


@pytest.fixture(autouse=True)
def people(desk: Desk) -> None:
    for caller in (ANN, BOB):
        desk.do(user_accounts.create_user, ROOT, caller.name)


def channel(name: str = "chat", **fields: object) -> PersonalChannelRecord:
    usual = PersonalChannelRecord(
        user="", name=name, kind=PersonalChannelKind.SLACK, address="locked", shown="https://chat.example.org/…"
    )
    return replace(usual, **fields)  # type: ignore[arg-type]


def mail(name: str = "phone", code_digest: str = "d1") -> PersonalChannelRecord:
    return channel(name, kind=PersonalChannelKind.MAIL, shown="ann@example.org", code_digest=code_digest)


def own(desk: Desk, caller: Caller = ANN) -> list[PersonalChannelRecord]:
    with desk.store.read() as tx:
        return tx.personal_channels.of_user(caller.name)


def hang(work: Work, job_id: str) -> None:
    work.record(ROOT, "job.hung", job_id, owner="ann")


def pending(desk: Desk, users: set[str] | None = None) -> list[str]:
    with desk.store.read() as tx:
        return [found.name for found in channels.pending(tx, users)]


def begun(desk: Desk, name: str = "chat") -> ChannelMessage | None:
    return desk.do(channels.begin, "ann", name)


def test_every_kind_of_item_has_a_sentence() -> None:
    assert channels.SENTENCES.keys() == KINDS.keys()


def test_new_items_travel_together_and_at_most_once_a_minute(desk: Desk) -> None:
    desk.started(draft(name="before-it"))
    desk.do(channels.create, ANN, channel())
    assert (pending(desk), begun(desk)) == ([], None), "what happened before is not sent"
    first, _ = desk.started(draft(name="first-one"), draft(name="second-one"))
    assert (pending(desk), pending(desk, {"ann"}), pending(desk, {"bob"})) == (["chat"], ["chat"], [])
    message = begun(desk)
    assert message is not None
    assert [item.sentence for item in message.items] == ["first-one has started", "second-one has started"]
    assert message.more == 0
    desk.do(channels.finish, message)
    assert pending(desk) == []
    desk.hear(desk.job(first.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    assert (pending(desk), begun(desk)) == (["chat"], None)
    desk.now += GAP_SECONDS
    later = begun(desk)
    assert later is not None
    assert [(item.kind, item.name) for item in later.items] == [(InboxKind.FAILED, "first-one")]


def test_only_wanted_kinds_are_sent_and_nothing_that_the_inbox_hides(desk: Desk) -> None:
    desk.do(channels.create, ANN, channel(kinds=("failed", "started", "failed")))
    assert own(desk)[0].kinds == ("failed", "started")
    desk.do(inbox.mute, ANN, [InboxKind.STARTED])
    [job] = desk.started(draft(name="the-job"))
    assert pending(desk) == []
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    message = begun(desk)
    assert message is not None
    assert [item.action for item in message.items] == ["job.failed"]
    with pytest.raises(Invalid):
        desk.do(channels.edit, ANN, "chat", kinds=["everything"])


def test_many_items_are_counted_not_listed(desk: Desk) -> None:
    desk.do(channels.create, ANN, channel())
    for number in range(MAX_ITEMS + 3):
        desk.do(hang, f"j-{number}")
    message = begun(desk)
    assert message is not None
    assert (len(message.items), message.more) == (MAX_ITEMS, 3)
    assert message.items[-1].subject == f"j-{MAX_ITEMS + 2}"
    desk.do(channels.finish, message)
    assert pending(desk) == []


def test_a_message_that_fails_is_tried_again_and_given_up_at_last(desk: Desk) -> None:
    desk.do(channels.create, ANN, channel())
    desk.started(draft(name="some-job"))
    for number in range(MAX_TRIES):
        message = begun(desk)
        assert message is not None
        assert message.channel.tries == number + 1
        desk.do(channels.finish, message, "no answer")
        assert own(desk)[0].error == "no answer"
        desk.now += 3600
    assert pending(desk) == []
    [event] = [event for event in desk.events() if event.action == "inbox-channel.delivery-failed"]
    assert (event.owner, event.detail["error"]) == ("ann", "no answer")
    desk.started(draft(name="next-job"))
    message = begun(desk)
    assert message is not None
    assert [item.name for item in message.items] == ["next-job"]
    desk.do(channels.finish, message, "status 404", is_final=True)
    assert pending(desk) == []


def test_a_channel_that_is_switched_on_again_skips_what_happened_meanwhile(desk: Desk) -> None:
    desk.do(channels.create, ANN, channel())
    desk.do(channels.edit, ANN, "chat", enabled=False)
    desk.started(draft(name="meanwhile"))
    assert pending(desk) == []
    desk.do(channels.edit, ANN, "chat", enabled=True)
    assert pending(desk) == []
    desk.started(draft(name="after-it"))
    assert pending(desk) == ["chat"]


def test_a_user_who_is_disabled_or_deleted_gets_nothing(desk: Desk) -> None:
    desk.do(channels.create, ANN, channel())
    [job] = desk.started(draft(name="some-job"))
    desk.do(lambda work: work.tx.people.save_user(UserRecord(name="ann", disabled=True)))
    assert (pending(desk), begun(desk)) == ([], None)
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(user_accounts.delete_user, ROOT, "ann")
    assert own(desk) == []


def test_a_mail_address_is_used_after_its_code_only(desk: Desk) -> None:
    desk.do(channels.create, ANN, mail())
    desk.started(draft(name="too-early"))
    assert pending(desk) == []
    with pytest.raises(WrongState):
        desk.do(channels.begin_test, ANN, "phone")
    assert desk.do(channels.confirm, ANN, "phone", "d2") is None
    assert desk.do(channels.confirm, ANN, "phone", "d1") is not None
    assert pending(desk) == []
    desk.started(draft(name="in-time"))
    assert pending(desk) == ["phone"]
    with pytest.raises(WrongState):
        desk.do(channels.renew_code, ANN, "phone", "d3")


def test_a_code_cannot_be_guessed_and_does_not_last(desk: Desk) -> None:
    desk.do(channels.create, ANN, mail())
    for number in range(channels.MAX_WRONG_CODES):
        assert desk.do(channels.confirm, ANN, "phone", f"wrong-{number}") is None
    with pytest.raises(WrongState):
        desk.do(channels.confirm, ANN, "phone", "d1")
    desk.do(channels.renew_code, ANN, "phone", "d2")
    desk.now += channels.CODE_SECONDS + 1
    with pytest.raises(WrongState):
        desk.do(channels.confirm, ANN, "phone", "d2")


def test_codes_and_tests_are_few_also_over_new_channels(desk: Desk) -> None:
    for number in range(MAX_ASKED):
        desk.do(channels.create, ANN, mail(f"phone-{number}"))
        desk.do(channels.delete, ANN, f"phone-{number}")
    with pytest.raises(OverLimit):
        desk.do(channels.create, ANN, mail())
    desk.do(channels.create, ANN, channel())
    with pytest.raises(OverLimit):
        desk.do(channels.begin_test, ANN, "chat")
    desk.do(channels.create, BOB, channel())
    desk.do(channels.begin_test, BOB, "chat")
    desk.now += 3601
    assert desk.do(channels.begin_test, ANN, "chat").items == ()


def test_channels_are_ones_own_few_and_have_names(desk: Desk) -> None:
    for number in range(MAX_CHANNELS):
        desk.do(channels.create, ANN, channel(f"chat-{number}"))
    with pytest.raises(OverLimit):
        desk.do(channels.create, ANN, channel())
    with pytest.raises(Taken):
        desk.do(channels.create, ANN, channel("chat-0"))
    with pytest.raises(Invalid):
        desk.do(channels.create, BOB, channel("../x"))
    for use in (channels.delete, channels.begin_test):
        with pytest.raises(NotFound):
            desk.do(use, BOB, "chat-0")
    assert len(own(desk)) == MAX_CHANNELS


def test_addresses_are_renewed_unless_they_were_replaced(desk: Desk) -> None:
    desk.do(channels.create, ANN, channel())
    desk.do(channels.renew_secrets, {("ann", "chat"): ("older", "newer"), ("bob", "chat"): ("locked", "newer")})
    assert own(desk)[0].address == "locked"
    desk.do(channels.renew_secrets, {("ann", "chat"): ("locked", "newer")})
    assert own(desk)[0].address == "newer"
