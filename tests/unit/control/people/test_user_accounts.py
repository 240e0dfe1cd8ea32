"""Users, roles and quotas."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, NotPermitted, SignedOut, Taken, WrongState
from corral.control.jobs import jobs
from corral.control.live.unit_of_work import Caller
from corral.control.people.quotas import set_quota
from corral.control.people.user_accounts import (
    add_credential,
    change_password,
    create_token,
    create_user,
    delete_user,
    drop_credential,
    edit_profile,
    edit_user,
    existing,
)
from corral.control.ports import Store
from corral.control.records import CredentialKind, CredentialRecord, Role, UserRecord
from corral.core.model import JobKind
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.snapshot.journal import digest_of
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, ROOT, Desk, draft


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    """An operator and a scientist."""
    desk = Desk(store)
    desk.do(create_user, ROOT, "root", password_hash="hash")
    desk.do(create_user, ROOT, "ann")
    return desk


def user(desk: Desk, name: str) -> UserRecord | None:
    with desk.store.read() as tx:
        return tx.people.user(name)


def test_the_first_user_is_an_operator_whatever_was_asked(desk: Desk) -> None:
    assert desk.do(create_user, ANN, "first", role=Role.SCIENTIST).role is Role.OPERATOR
    assert desk.do(create_user, ROOT, "second").role is Role.SCIENTIST
    assert desk.do(create_user, ROOT, "third", role=Role.OPERATOR).role is Role.OPERATOR


def test_only_operators_manage_users(staffed: Desk) -> None:
    for act in (
        lambda work: create_user(work, ANN, "bob"),
        lambda work: edit_user(work, ANN, "ann", role=Role.OPERATOR),
        lambda work: delete_user(work, ANN, "root"),
        lambda work: set_quota(work, ANN, "ann", {}),
    ):
        with pytest.raises(Forbidden):
            staffed.do(act)


@pytest.mark.parametrize("name", ["corral", "Ann", "", "x" * 33, "a b", "-ann"])
def test_bad_names_are_refused(staffed: Desk, name: str) -> None:
    with pytest.raises(Invalid):
        staffed.do(create_user, ROOT, name)


def test_a_name_is_taken_once(staffed: Desk) -> None:
    with pytest.raises(Taken):
        staffed.do(create_user, ROOT, "ann")


def test_the_last_operator_stays(staffed: Desk) -> None:
    for act in (
        lambda work: edit_user(work, ROOT, "root", role=Role.SCIENTIST),
        lambda work: edit_user(work, ROOT, "root", disabled=True),
        lambda work: delete_user(work, ROOT, "root"),
    ):
        with pytest.raises(WrongState, match="last operator"):
            staffed.do(act)
    staffed.do(edit_user, ROOT, "ann", role=Role.OPERATOR)
    with pytest.raises(WrongState, match="last operator"):
        # Signing in as ann is impossible: she has no password yet.
        staffed.do(edit_user, ROOT, "root", disabled=True)
    staffed.do(edit_user, ROOT, "ann", password_hash="hash")
    staffed.do(edit_user, ROOT, "root", disabled=True)
    with pytest.raises(WrongState, match="last operator"):
        staffed.do(delete_user, ROOT, "ann")


def test_a_user_with_active_jobs_cannot_be_deleted(staffed: Desk) -> None:
    (job,) = staffed.submit(draft("training"))
    staffed.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota(gpu_milli=1000)})
    with pytest.raises(InUse) as refusal:
        staffed.do(delete_user, ROOT, "ann")
    assert refusal.value.numbers == {"jobs": [job.id]}
    assert user(staffed, "ann") is not None
    staffed.do(jobs.stop, ANN, job.id)
    staffed.do(delete_user, ROOT, "ann")
    assert user(staffed, "ann") is None
    assert staffed.state.snapshot.quotas == {}
    assert digest_of(staffed.loaded().snapshot.contents()) == digest_of(staffed.state.snapshot.contents())
    with pytest.raises(NotFound):
        staffed.do(delete_user, ROOT, "ann")


def test_a_new_password_signs_out_everywhere(staffed: Desk) -> None:
    with staffed.store.write() as tx:
        for kind in CredentialKind:
            tx.credentials.add(CredentialRecord(id=f"c-{kind}", kind=kind, user="ann", secret_hash=f"h-{kind}"))
    changed = staffed.do(change_password, ANN, "new")
    assert (changed.password_hash, changed.must_change_password) == ("new", False)
    with staffed.store.read() as tx:
        assert tx.credentials.of_user("ann", CredentialKind.SESSION) == []
        assert len(tx.credentials.of_user("ann", CredentialKind.TOKEN)) == 1
    edited = staffed.do(edit_user, ROOT, "ann", password_hash="reset")
    assert edited.must_change_password
    with staffed.store.read() as tx:
        assert tx.credentials.of_user("ann", CredentialKind.TOKEN) == []


def test_a_quota_holds_for_the_next_start_only(staffed: Desk) -> None:
    (running,) = staffed.started(draft("running", gpus=2))
    (waiting,) = staffed.submit(draft("waiting", gpus=1))
    staffed.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota(gpu_milli=2000)})
    assert staffed.cycle() == [], "it was admitted before, but the quota as it is now counts"
    assert staffed.job(running.id).state == "running"
    staffed.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota()})
    assert staffed.cycle() == [waiting.id]


def test_the_name_of_a_former_user_with_jobs_stays_taken(staffed: Desk) -> None:
    staffed.submit(draft("held", hold=True), caller=ANN)
    staffed.do(delete_user, ROOT, "ann")
    with pytest.raises(Taken, match="former user"):
        staffed.do(create_user, ROOT, "ann")
    assert user(staffed, "ann") is None


def test_a_user_has_a_group_a_permission_group_and_a_profile(staffed: Desk) -> None:
    made = staffed.do(create_user, ROOT, "eve", display_name=" Eve Example ", email="eve@example.org")
    assert (made.group, made.permission_group, made.display_name) == ("default", "everyone", "Eve Example")
    assert staffed.state.snapshot.memberships["eve"].group == "default"
    alone = staffed.do(create_user, ROOT, "zoe", group=None)
    assert (alone.group, staffed.state.snapshot.memberships["zoe"]) == (None, Membership())
    assert digest_of(staffed.loaded().snapshot.contents()) == digest_of(staffed.state.snapshot.contents())
    staffed.do(delete_user, ROOT, "eve")
    assert "eve" not in staffed.state.snapshot.memberships
    assert digest_of(staffed.loaded().snapshot.contents()) == digest_of(staffed.state.snapshot.contents())


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"group": "nowhere"}, "group"),
        ({"permission_group": "nowhere"}, "permission_group"),
        ({"display_name": "two\nlines"}, "display_name"),
        ({"display_name": "x" * 101}, "display_name"),
        ({"email": "not an address"}, "email"),
        ({"email": "two@at@signs"}, "email"),
    ],
)
def test_a_wrong_value_creates_and_changes_no_user(staffed: Desk, values: dict[str, Any], field: str) -> None:
    with pytest.raises((Invalid, NotFound)) as refusal:
        staffed.do(create_user, ROOT, "eve", **values)
    assert refusal.value.field == field
    assert user(staffed, "eve") is None
    if "group" in values:
        return
    before = user(staffed, "ann")
    with pytest.raises((Invalid, NotFound)):
        staffed.do(edit_user, ROOT, "ann", **values)
    assert user(staffed, "ann") == before


def test_roles_go_up_and_down_and_the_audit_log_says_what_changed(staffed: Desk) -> None:
    assert staffed.do(edit_user, ROOT, "ann", role=Role.OPERATOR).role is Role.OPERATOR
    assert staffed.do(edit_user, ROOT, "ann", role=Role.SCIENTIST).role is Role.SCIENTIST
    staffed.do(edit_user, ROOT, "ann", password_hash="secret-hash", email="ann@example.org")
    edits = [event.detail for event in staffed.events() if event.action == "user.edited"]
    assert edits == [{"role": "operator"}, {"role": "scientist"}, {"email": "ann@example.org", "password": True}]


def test_everybody_edits_their_own_profile_and_nothing_else(staffed: Desk) -> None:
    changed = staffed.do(edit_profile, ANN, display_name="Ann", email="ann@example.org")
    assert (changed.display_name, changed.email, changed.role) == ("Ann", "ann@example.org", Role.SCIENTIST)
    assert staffed.do(edit_profile, ANN, email="").display_name == "Ann"


def test_a_disabled_user_is_signed_out_and_their_jobs_go_on(staffed: Desk) -> None:
    (job,) = staffed.started(draft("running"))
    with staffed.store.write() as tx:
        tx.credentials.add(CredentialRecord(id="c-1", kind=CredentialKind.TOKEN, user="ann", secret_hash="h"))
    staffed.do(edit_user, ROOT, "ann", disabled=True)
    with staffed.store.read() as tx:
        assert tx.credentials.of_user("ann", CredentialKind.TOKEN) == []
    assert staffed.job(job.id).state == "running"


def test_tokens_need_their_function(staffed: Desk) -> None:
    token = CredentialRecord(id="c-1", kind=CredentialKind.TOKEN, user="ann", secret_hash="h")
    session = CredentialRecord(id="s-1", kind=CredentialKind.SESSION, user="ann", secret_hash="s")
    staffed.do(add_credential, ANN, session)
    with pytest.raises(NotPermitted) as refusal:
        staffed.do(create_token, Caller(name="ann", functions=frozenset()), token, by="s-1")
    assert refusal.value.numbers == {"function": "tokens"}
    assert staffed.do(create_token, ANN, token, by="s-1") == token
    with staffed.store.write() as tx:
        tx.credentials.touch("c-1", 7.0)
        assert existing(tx, "ann").last_seen_at == 7.0


def test_a_session_that_was_revoked_meanwhile_gives_no_new_token(staffed: Desk) -> None:
    session = CredentialRecord(id="s-1", kind=CredentialKind.SESSION, user="ann", secret_hash="s")
    staffed.do(add_credential, ANN, session)
    staffed.do(change_password, ANN, "new", revoke_tokens=True)
    token = CredentialRecord(id="c-1", kind=CredentialKind.TOKEN, user="ann", secret_hash="h")
    with pytest.raises(SignedOut):
        staffed.do(create_token, ANN, token, by="s-1")


def test_a_sign_in_whose_password_was_changed_meanwhile_is_refused(staffed: Desk) -> None:
    """Passwords are compared for a moment: the old one must not open a session beside the change."""
    with staffed.store.read() as tx:
        before = existing(tx, "ann")
    staffed.do(change_password, ANN, "new", before=before)
    session = CredentialRecord(id="s-1", kind=CredentialKind.SESSION, user="ann", secret_hash="h")
    with pytest.raises(SignedOut):
        staffed.do(add_credential, ANN, session, before=before)
    with pytest.raises(SignedOut):
        staffed.do(change_password, ANN, "theirs", before=before)


@pytest.mark.parametrize("change", ["disabled", "deleted"])
def test_a_sign_in_to_an_account_that_ended_meanwhile_is_refused(staffed: Desk, change: str) -> None:
    """The session would be there when the account is enabled again."""
    if change == "disabled":
        staffed.do(edit_user, ROOT, "ann", disabled=True)
    else:
        staffed.do(delete_user, ROOT, "ann")
    session = CredentialRecord(id="s-1", kind=CredentialKind.SESSION, user="ann", secret_hash="h")
    with pytest.raises(SignedOut):
        staffed.do(add_credential, ANN, session)


def test_signing_in_counts_as_seen_and_stays_after_signing_out(staffed: Desk) -> None:
    session = CredentialRecord(id="s-1", kind=CredentialKind.SESSION, user="ann", secret_hash="h")
    staffed.do(add_credential, ANN, session)
    staffed.do(drop_credential, ANN, CredentialKind.SESSION, "s-1")
    with staffed.store.read() as tx:
        assert existing(tx, "ann").last_seen_at == staffed.now
