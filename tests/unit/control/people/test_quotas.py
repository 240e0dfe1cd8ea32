"""Quotas: per kind and type of volume, for one or for many, by default, and what is held of them."""

from __future__ import annotations

import pytest

from corral.control.errors import Forbidden, InsufficientQuota, Invalid, NotFound
from corral.control.people.quotas import QuotaEdit, QuotaUsage, edit_quotas, set_quota, usage_of, volume_quotas_of
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import Store
from corral.control.system.policies import Policies
from corral.core.model import JobKind, Request
from corral.core.people.quota import Quota
from corral.core.snapshot.journal import digest_of
from corral.core.storage.volumes import VolumeType
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

TRAINING, WORKBENCH = JobKind.TRAINING, JobKind.WORKBENCH
BLOCK, LOCAL = VolumeType.BLOCK, VolumeType.LOCAL


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


def usage(desk: Desk, user: str) -> QuotaUsage:
    with desk.store.read() as tx:
        volumes = volume_quotas_of(tx)
    (found,) = usage_of(desk.state, [user], volumes)
    assert digest_of(desk.loaded().snapshot.contents()) == digest_of(desk.state.snapshot.contents()), (
        "the store says the same"
    )
    return found


def test_no_user_has_a_quota_by_default(staffed: Desk) -> None:
    found = usage(staffed, "ann")
    assert {item.quota for item in found.kinds.values()} == {Quota()}
    assert {item.max_bytes for item in found.volumes.values()} == {None}


def test_a_quota_is_per_kind_and_per_type_of_volume(staffed: Desk) -> None:
    staffed.do(set_quota, ROOT, "ann", {TRAINING: Quota(gpu_milli=2000, memory_bytes=100)}, {BLOCK: 10, LOCAL: 0})
    found = usage(staffed, "ann")
    assert found.kinds[TRAINING].quota == Quota(gpu_milli=2000, memory_bytes=100)
    assert found.kinds[WORKBENCH].quota == Quota()
    assert (found.volumes[BLOCK].max_bytes, found.volumes[LOCAL].max_bytes) == (10, 0)
    staffed.do(set_quota, ROOT, "ann", {TRAINING: Quota()}, {BLOCK: None})
    found = usage(staffed, "ann")
    assert (found.kinds[TRAINING].quota, found.volumes[BLOCK].max_bytes) == (Quota(), None)
    assert found.volumes[LOCAL].max_bytes == 0, "what is not named stays"
    assert staffed.actions("ann") == ["user.created", "user.quota-set", "user.quota-set"]


def test_held_and_asked_is_what_a_submission_is_measured_against(staffed: Desk) -> None:
    staffed.do(set_quota, ROOT, "ann", {TRAINING: Quota(gpu_milli=4000)})
    staffed.started(draft("runs", request=Request(gpus=2, cpu_milli=500)))
    staffed.submit(draft("waits", gpus=1), draft("bench", gpus=4, kind=WORKBENCH))
    training = usage(staffed, "ann").kinds[TRAINING]
    assert (training.held.gpu_milli, training.held.cpu_milli) == (2000, 500)
    assert (training.asked.gpu_milli, training.asked.cpu_milli) == (1000, 0)
    with pytest.raises(InsufficientQuota) as refusal:
        staffed.submit(draft("too-much", gpus=2))
    numbers = refusal.value.numbers
    assert (numbers["asked"], numbers["held"], numbers["limit"]) == (2, 3, 4)
    staffed.submit(draft("just-right", gpus=1))


def test_the_same_change_for_many_leaves_the_rest_alone(staffed: Desk) -> None:
    staffed.do(set_quota, ROOT, "ann", {TRAINING: Quota(gpu_milli=1000, cpu_milli=7000), WORKBENCH: Quota(gpu_milli=1)})
    edit = QuotaEdit(kinds={TRAINING: {"gpu_milli": 8000}}, volumes={BLOCK: 5})
    assert staffed.do(edit_quotas, ROOT, ["ann", "bob", "ann"], edit) == ["ann", "bob"]
    ann, bob = usage(staffed, "ann"), usage(staffed, "bob")
    assert ann.kinds[TRAINING].quota == Quota(gpu_milli=8000, cpu_milli=7000)
    assert ann.kinds[WORKBENCH].quota == Quota(gpu_milli=1)
    assert bob.kinds[TRAINING].quota == Quota(gpu_milli=8000)
    assert ann.volumes[BLOCK].max_bytes == bob.volumes[BLOCK].max_bytes == 5
    assert usage(staffed, "root").kinds[TRAINING].quota == Quota()
    lifted = QuotaEdit(kinds={TRAINING: {"gpu_milli": None}})
    assert staffed.do(edit_quotas, ROOT, None, lifted) == ["ann", "bob", "root"]
    assert usage(staffed, "ann").kinds[TRAINING].quota == Quota(cpu_milli=7000)
    assert usage(staffed, "bob").kinds[TRAINING].quota == Quota()


def test_for_all_of_them_or_for_none(staffed: Desk) -> None:
    edit = QuotaEdit(kinds={TRAINING: {"gpu_milli": 0}})
    with pytest.raises(NotFound) as refusal:
        staffed.do(edit_quotas, ROOT, ["ann", "nobody", "noone"], edit)
    assert refusal.value.numbers == {"missing": ["nobody", "noone"]}
    assert usage(staffed, "ann").kinds[TRAINING].quota == Quota()
    with pytest.raises(NotFound):
        staffed.do(set_quota, ROOT, "nobody", {TRAINING: Quota(gpu_milli=1)})
    with pytest.raises(Invalid):
        staffed.do(edit_quotas, ROOT, None, QuotaEdit())


def test_only_operators_set_quotas(staffed: Desk) -> None:
    for act in (
        lambda work: set_quota(work, ANN, "ann", {TRAINING: Quota()}),
        lambda work: edit_quotas(work, BOB, None, QuotaEdit(volumes={BLOCK: None})),
    ):
        with pytest.raises(Forbidden):
            staffed.do(act)


def test_new_users_get_the_default_and_old_ones_keep_theirs(store: Store) -> None:
    before = Desk(store)
    before.do(create_user, ROOT, "root")
    policies = Policies(default_quota={WORKBENCH: Quota(gpu_milli=3000)}, default_volume_bytes={BLOCK: 2**40})
    desk = Desk(store, policies)
    desk.do(create_user, ROOT, "ann")
    assert usage(desk, "root").kinds[WORKBENCH].quota == Quota()
    found = usage(desk, "ann")
    assert (found.kinds[WORKBENCH].quota, found.kinds[TRAINING].quota) == (Quota(gpu_milli=3000), Quota())
    assert found.volumes[BLOCK].max_bytes == 2**40
    with pytest.raises(InsufficientQuota, match="asked 4, held 0, limit 3"):
        desk.submit(draft("bench", gpus=4, kind=WORKBENCH))


def test_a_deleted_user_leaves_no_quota_behind(staffed: Desk) -> None:
    staffed.do(set_quota, ROOT, "bob", {TRAINING: Quota(gpu_milli=1)}, {BLOCK: 1})
    staffed.do(delete_user, ROOT, "bob")
    staffed.do(create_user, ROOT, "bob")
    found = usage(staffed, "bob")
    assert (found.kinds[TRAINING].quota, found.volumes[BLOCK].max_bytes) == (Quota(), None)
