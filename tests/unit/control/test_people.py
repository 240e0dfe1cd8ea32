"""Users, roles and quotas."""

from __future__ import annotations

import pytest

from corral.control import jobs
from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Taken, WrongState
from corral.control.people import change_password, create_user, delete_user, edit_user
from corral.control.quotas import set_quota
from corral.control.records import CredentialKind, CredentialRecord, Role, UserRecord
from corral.core.model import JobKind, Quota
from tests.unit.control.world import ANN, ROOT, Desk, draft


@pytest.fixture
def staffed(desk: Desk) -> Desk:
    """An operator and a scientist."""
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
    assert staffed.loaded().digest.hex() == staffed.state.digest.hex()
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


def test_nobody_comes_into_a_former_users_jobs(staffed: Desk) -> None:
    staffed.submit(draft("held", hold=True), caller=ANN)
    staffed.do(delete_user, ROOT, "ann")
    with pytest.raises(Taken, match="former user"):
        staffed.do(create_user, ROOT, "ann")
    assert user(staffed, "ann") is None
