"""Datasets: who makes, sees, shares and deletes them, what versions and tags mean, and what jobs mount of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.datasets import datasets, operations, targets
from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Refusal, Taken, WrongState
from corral.control.jobs.jobs import stop
from corral.control.launch.orders import launch_order
from corral.control.live.unit_of_work import Caller
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import AttemptPhase, Store
from corral.control.records import (
    DEFAULT_GROUP,
    ByteStorage,
    DatasetRecord,
    DatasetTargetRecord,
    DatasetUse,
    MetadataKind,
    OperationState,
    Share,
    ShareKind,
    ShareMode,
    VersionRecord,
)
from corral.control.storage import mounts
from corral.control.storage.mount_text import parse_mount, requested_again
from corral.core.model import EndReason
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

IDS = [digit * 64 for digit in "abc"]
FORGE = DatasetTargetRecord(
    name="forge",
    metadata=MetadataKind.GIT,
    git_url="https://git.example.org/sets.git",
    git_branch="main",
    git_token="locked",
    path="/srv/sets",
)


def version(number: int, **fields: object) -> VersionRecord:
    parent = IDS[number - 2] if number > 1 else None
    made = VersionRecord(
        dataset="d-1", id=IDS[number - 1], number=0, parent=parent, tree="t" * 64, at=float(number), new_bytes=number
    )
    return replace(made, **fields)  # type: ignore[arg-type]


@pytest.fixture
@once
def stored(store: Store) -> Desk:
    """ann has a dataset with two versions, the first of which is v1."""
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    made = desk.do(datasets.create, ANN, name="digits", target="default", description="")
    commit(desk, made.id, version(1))
    commit(desk, made.id, version(2))
    desk.do(datasets.tag, ANN, "digits", "v1", IDS[0])
    return desk


def commit(desk: Desk, ref: str, made: VersionRecord) -> None:
    asked = desk.do(
        operations.request_commit,
        ANN,
        ref,
        source={"kind": "tree", "tree": made.tree},
        message="",
        parent=None,
        produced_by=None,
    )
    desk.do(operations.begin, asked.id)
    desk.do(operations.record_commit, asked.id, made)


def found(desk: Desk, caller: Caller, ref: str) -> DatasetRecord:
    with desk.store.read() as tx:
        return datasets.found(tx, caller, ref)


def meant(desk: Desk, word: str) -> str:
    with desk.store.read() as tx:
        return datasets.version_meant(tx, datasets.found(tx, ANN, "digits"), word).id


# ------------------------------------------------------------------------------------------------ versions


def test_versions_stand_in_one_line_and_are_found_by_tag_by_digits_and_as_the_latest(stored: Desk) -> None:
    dataset = found(stored, ANN, "digits")
    assert (dataset.versions, dataset.head, dataset.size_bytes) == (2, IDS[1], 3)
    assert [meant(stored, word) for word in ("latest", "v1", "bbbb", IDS[0])] == [IDS[1], IDS[0], IDS[1], IDS[0]]
    for word in ("v2", "bbb", "cccc", "", "B" * 64):
        with pytest.raises((NotFound, Invalid)):
            meant(stored, word)


def test_a_commit_on_an_old_version_is_refused(stored: Desk) -> None:
    late = version(2, id="f" * 64)
    with pytest.raises(WrongState, match="gone on to bbbbbbbbbbbb"):
        commit(stored, "digits", late)
    assert found(stored, ANN, "digits").head == IDS[1]
    with pytest.raises(WrongState, match="not the newest"):
        stored.do(operations.request_commit, ANN, "digits", source={}, message="", parent="v1", produced_by=None)


def test_an_operation_ends_with_its_version_and_is_not_done_twice(stored: Desk) -> None:
    asked = stored.do(operations.request_commit, ANN, "digits", source={}, message="", parent=None, produced_by=None)
    for _ in range(2):
        assert stored.do(operations.begin, asked.id) is not None
    stored.do(operations.record_commit, asked.id, version(3))
    with stored.store.read() as tx:
        done = tx.datasets.operation(asked.id)
    assert done is not None
    assert (done.state, done.starts, done.result and done.result["version"]) == (OperationState.READY, 2, IDS[2])
    assert stored.do(operations.begin, asked.id) is None
    stored.do(operations.fail, asked.id, "too late")
    with stored.store.read() as tx:
        assert tx.datasets.operation(asked.id) == done


def test_an_operation_over_which_everything_dies_is_given_up(stored: Desk) -> None:
    asked = stored.do(operations.request_verify, ANN, "digits", "v1")
    for _ in range(operations.MOST_STARTS):
        assert stored.do(operations.begin, asked.id) is not None
    assert stored.do(operations.begin, asked.id) is None
    with stored.store.read() as tx:
        given_up = tx.datasets.operation(asked.id)
    assert given_up is not None
    assert (given_up.state, "5 times" in given_up.error) == (OperationState.FAILED, True)


def test_pull_takes_versions_of_git_and_refuses_a_rewritten_history(stored: Desk) -> None:
    stored.do(targets.create, ROOT, FORGE)
    made = stored.do(datasets.create, ANN, name="forged", target="forge", description="")
    asked = stored.do(operations.request_pull, ANN, made.id)
    stored.do(operations.begin, asked.id)
    history = [version(1, dataset=made.id), version(2, dataset=made.id)]
    assert stored.do(operations.take_over, asked.id, history[:1], {"v1": IDS[0]}) == 1
    assert stored.do(operations.take_over, asked.id, history, {"v2": IDS[1], "odd": "elsewhere"}) == 1
    with stored.store.read() as tx:
        assert {tag.tag: tag.version for tag in tx.datasets.tags([made.id])} == {"v2": IDS[1]}
    with pytest.raises(WrongState, match="rewritten"):
        stored.do(operations.take_over, asked.id, [version(1, id="f" * 64)], {})
    with pytest.raises(WrongState, match="not kept in Git"):
        stored.do(operations.request_pull, ANN, "digits")


# ------------------------------------------------------------------------------------------------ people


@pytest.mark.parametrize("name", ["", "x", "-x", "a b", "x" * 64, "d-1", "a/b", "ü1"])
def test_names_that_are_not_allowed(stored: Desk, name: str) -> None:
    with pytest.raises(Invalid):
        stored.do(datasets.create, ANN, name=name, target="default", description="")


@pytest.mark.parametrize("tag", ["", "latest", "-v1", "a b", "v1.lock", "a..b", "v1.", "x" * 64, "abcdef012345"])
def test_tags_that_are_not_allowed(stored: Desk, tag: str) -> None:
    with pytest.raises(Invalid):
        stored.do(datasets.tag, ANN, "digits", tag, "latest")


def test_unshared_dataset_is_not_found_and_read_only_share_is_not_changed(stored: Desk) -> None:
    for ref in ("digits", "ann/digits", "d-1"):
        with pytest.raises(NotFound):
            found(stored, BOB, ref)
    stored.do(datasets.share, ANN, "digits", [Share(kind=ShareKind.GROUP, name=DEFAULT_GROUP)])
    assert found(stored, BOB, "digits").id == "d-1"
    with pytest.raises(Forbidden, match="to read"):
        stored.do(datasets.tag, BOB, "digits", "mine", "latest")
    stored.do(datasets.share, ANN, "digits", [Share(kind=ShareKind.USER, name="bob", mode=ShareMode.WRITE)])
    stored.do(datasets.tag, BOB, "ann/digits", "mine", "latest")
    with pytest.raises(Forbidden, match="only its owner"):
        stored.do(datasets.delete, BOB, "digits")
    for shares in ([Share(kind=ShareKind.USER, name="nobody")], [Share(kind=ShareKind.USER, name="bob")] * 2):
        with pytest.raises(Invalid):
            stored.do(datasets.share, ANN, "digits", shares)


def test_among_datasets_of_one_name_the_own_one_goes_first(stored: Desk) -> None:
    stored.do(create_user, ROOT, "carl", password_hash="hash")
    carl = Caller(name="carl")
    stored.do(datasets.create, BOB, name="digits", target="default", description="")
    with pytest.raises(Taken):
        stored.do(datasets.create, BOB, name="digits", target="default", description="")
    assert found(stored, BOB, "digits").owner == "bob"
    for owner in (ANN, BOB):
        stored.do(datasets.share, owner, "digits", [Share(kind=ShareKind.USER, name="carl")])
    with pytest.raises(Invalid, match="ann/digits, bob/digits"):
        found(stored, carl, "digits")
    assert found(stored, carl, "bob/digits").owner == "bob"


def test_a_user_with_datasets_stays_and_one_who_goes_leaves_no_share(stored: Desk) -> None:
    with pytest.raises(InUse, match="digits"):
        stored.do(delete_user, ROOT, "ann")
    stored.do(datasets.share, ANN, "digits", [Share(kind=ShareKind.USER, name="bob")])
    stored.do(delete_user, ROOT, "bob")
    assert found(stored, ANN, "digits").shares == ()


# ------------------------------------------------------------------------------------------------ targets


def test_a_target_stays_where_it_is_while_it_keeps_datasets(stored: Desk) -> None:
    stored.do(targets.create, ROOT, FORGE)
    assert stored.do(targets.edit, ROOT, "forge", {"path": "/srv//other/"}).path == "/srv/other"
    stored.do(datasets.create, ANN, name="kept", target="forge", description="")
    assert stored.do(targets.edit, ROOT, "forge", {"git_token": "newer"}).git_token == "newer"
    for change in ({"path": "/srv/x"}, {"git_url": "https://git.example.org/y.git"}):
        with pytest.raises(InUse, match="ann/kept"):
            stored.do(targets.edit, ROOT, "forge", change)
    with pytest.raises(InUse):
        stored.do(targets.delete, ROOT, "forge")
    stored.do(datasets.delete, ANN, "kept")
    stored.do(targets.delete, ROOT, "forge")
    with pytest.raises(Forbidden):
        stored.do(targets.create, ANN, FORGE)
    bucket = DatasetTargetRecord(name="b", storage=ByteStorage.OBJECT, object_store="none")
    with pytest.raises(Refusal, match="no object store"):
        stored.do(targets.create, ROOT, bucket)


@pytest.mark.parametrize(
    "url",
    ["", "x", "ext::sh -c id", "-x", "https://", "https://h", "https://a:b@h/x", "https://tok@h/x", "file://h/x",
     "ftp://h/x", "git@h:-x", "https://h/a b", "https://h/\nx", "https://h/" + "x" * 1000],
)  # fmt: skip
def test_addresses_that_are_no_repository(url: str) -> None:
    with pytest.raises(Invalid):
        targets.check_git_url(url)


@pytest.mark.parametrize("url", ["https://h/x.git", "ssh://git@h/x", "git@h.org:team/x.git", "file:///srv/x.git"])
def test_addresses_of_repositories(url: str) -> None:
    targets.check_git_url(url)


# ------------------------------------------------------------------------------------------------ jobs


def test_a_mount_is_an_id_for_good(stored: Desk) -> None:
    with stored.store.read() as tx:
        (mount,) = mounts.resolved(tx, ANN, [parse_mount("dataset:digits@v1:/data")])
    assert (mount.dataset_id, mount.version, mount.read_only) == ("d-1", IDS[0], True)
    stored.do(datasets.tag, ANN, "digits", "v1", "latest")
    with stored.store.read() as tx:
        assert mounts.resolved(tx, ANN, requested_again([mount])) == (mount,)
        (now,) = mounts.resolved(tx, ANN, [parse_mount("dataset:digits@v1:/data")])
        assert now.version == IDS[1]
        for words in ("dataset:digits@v9:/data", "dataset:none:/data", "dataset:digits:/data:rw"):
            with pytest.raises(Invalid) as refusal:
                mounts.resolved(tx, ANN, [parse_mount(words)])
            assert refusal.value.field == "mounts"


def test_a_job_knows_its_version_is_traced_and_keeps_the_dataset(stored: Desk) -> None:
    mount = parse_mount("dataset:digits@v1:/data")
    [job] = stored.submit(draft("reader", mounts=(mount,)), caller=ANN)
    with pytest.raises(InUse, match=job.id):
        stored.do(datasets.delete, ANN, "digits")
    stored.cycle()
    stored.hear(stored.job(job.id), AttemptPhase.RUNNING)
    running = stored.job(job.id)
    order = launch_order(running, stored.record(job.id).spec, stored.state.snapshot.nodes, {})
    assert order.env["CORRAL_DATASET_DIGITS_VERSION"] == IDS[0]
    with stored.store.read() as tx:
        (use,) = tx.datasets.uses_of_job(job.id)
        assert (use.version, use.attempt, use.job_name) == (IDS[0], running.attempt, "reader")
    stored.do(stop, ANN, job.id)
    stored.hear(stored.job(job.id), AttemptPhase.ENDED, EndReason.STOPPED_BY_USER)
    stored.do(datasets.delete, ANN, "digits")


def test_uses_are_summed_by_version_and_job() -> None:
    use = DatasetUse(job_id="j-1", attempt=2, dataset="d-1", version="a", job_name="x", user="ann", at=2.0)
    uses = [use, replace(use, attempt=1, at=1.0), replace(use, job_id="j-2"), replace(use, version="b")]
    found_uses = datasets.used_by(uses)
    assert {
        version: [(one.job_id, one.attempts, one.last_at) for one in jobs] for version, jobs in found_uses.items()
    } == {
        "a": [("j-1", (1, 2), 2.0), ("j-2", (2,), 2.0)],
        "b": [("j-1", (2,), 2.0)],
    }
