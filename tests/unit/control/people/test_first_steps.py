"""First steps: done as soon as the thing is there, hidden only where the user wants that, forgotten with the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from corral.control.alerts import channels
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import first_steps, user_accounts, user_inbox
from corral.control.people.first_steps import FirstSteps, Server
from corral.control.people.user_inbox import InboxKind
from corral.control.ports import AttemptPhase
from corral.control.records import ChannelRecord, CredentialKind, CredentialRecord, Function
from corral.core.model import EndReason
from tests.unit.control.world import ANN, ROOT, Desk, draft

EMPTY = Server(gpus=0, backs_up=False)
OPERATOR_STEPS = ["password", "gpus", "job", "people", "channel", "backup"]


def seen(desk: Desk, caller: Caller, server: Server = EMPTY) -> FirstSteps:
    with desk.store.read() as tx:
        return first_steps.first_steps(tx, caller, server)


def open_steps(desk: Desk, caller: Caller, server: Server = EMPTY) -> Sequence[str]:
    return [step.value for step, is_done in seen(desk, caller, server).steps if not is_done]


def one_time(work: Work) -> None:
    user = user_accounts.create_user(work, ROOT, "root", password_hash="h")
    work.tx.people.save_user(replace(user, must_change_password=True))


def test_the_steps_of_an_operator_follow_from_what_is_there(desk: Desk) -> None:
    desk.do(one_time)
    assert open_steps(desk, ROOT) == OPERATOR_STEPS
    desk.do(user_accounts.change_password, ROOT, "other")
    assert open_steps(desk, ROOT, Server(gpus=8, backs_up=True)) == ["job", "people", "channel"]
    failed, good = desk.started(draft(), draft(), caller=ROOT)
    desk.hear(failed, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    assert "job" in open_steps(desk, ROOT)
    desk.hear(good, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(user_accounts.create_user, ROOT, "ann", password_hash="h")
    desk.do(channels.create, ROOT, ChannelRecord(name="chat", url="sealed", shown="json://chat"))
    assert open_steps(desk, ROOT) == ["gpus", "backup"]
    assert open_steps(desk, ROOT, Server(gpus=1, backs_up=True)) == []
    # What goes away again is to do again.
    desk.do(user_accounts.delete_user, ROOT, "ann")
    desk.do(channels.delete, ROOT, "chat")
    assert open_steps(desk, ROOT) == ["gpus", "people", "channel", "backup"]


def test_the_steps_of_a_scientist_are_about_own_jobs(desk: Desk) -> None:
    desk.do(user_accounts.create_user, ROOT, "root", password_hash="h")
    desk.do(user_accounts.create_user, ROOT, "ann", password_hash="h")
    job = desk.started(draft(), caller=ROOT)[0]
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert open_steps(desk, ANN) == ["submit", "job", "token"]
    own = desk.started(draft())[0]
    assert open_steps(desk, ANN) == ["job", "token"]
    desk.hear(own, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    token = CredentialRecord(id="t-1", kind=CredentialKind.TOKEN, user="ann", secret_hash="h")
    session = CredentialRecord(id="s-1", kind=CredentialKind.SESSION, user="ann", secret_hash="s")
    desk.do(user_accounts.add_credential, ANN, session)
    desk.do(user_accounts.create_token, ANN, token, by="s-1")
    assert open_steps(desk, ANN) == []
    without_tokens = replace(ANN, functions=ANN.functions - {Function.TOKENS})
    assert [step.value for step, _ in seen(desk, without_tokens).steps] == ["submit", "job"]


def test_dismissed_steps_stay_hidden_until_they_are_requested(desk: Desk) -> None:
    desk.do(user_accounts.create_user, ROOT, "root", password_hash="h")
    desk.do(first_steps.dismiss, ROOT, dismissed=True)
    desk.do(first_steps.dismiss, ROOT, dismissed=True)
    assert seen(desk, ROOT) == FirstSteps(steps=(), dismissed=True)
    assert not seen(desk, ANN).dismissed
    desk.do(first_steps.dismiss, ROOT, dismissed=False)
    assert [step.value for step, _ in seen(desk, ROOT).steps] == OPERATOR_STEPS


def test_a_later_user_of_the_same_name_has_an_inbox_and_steps_of_their_own(desk: Desk) -> None:
    desk.do(user_accounts.create_user, ROOT, "root", password_hash="h")
    desk.do(user_accounts.create_user, ROOT, "ann", password_hash="h")
    desk.do(first_steps.dismiss, ANN, dismissed=True)
    desk.do(user_inbox.mute, ANN, [InboxKind.STARTED])
    desk.do(user_accounts.delete_user, ROOT, "ann")
    desk.do(user_accounts.create_user, ROOT, "ann", password_hash="h")
    assert not seen(desk, ANN).dismissed
    with desk.store.read() as tx:
        assert user_inbox.state_of(tx, "ann").muted == ()
