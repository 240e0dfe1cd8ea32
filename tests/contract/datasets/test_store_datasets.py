"""Targets, datasets, versions, tags, uses and long work, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import NameTaken, Store, StoreConflict
from corral.control.records import (
    ByteStorage,
    DatasetRecord,
    DatasetTargetRecord,
    DatasetUse,
    MetadataKind,
    OperationKind,
    OperationRecord,
    OperationState,
    Share,
    ShareKind,
    ShareMode,
    TagRecord,
    VersionRecord,
)

pytest_plugins = ("tests.servers.fixtures",)

DIGITS = DatasetRecord(
    id="d-1",
    name="digits",
    owner="ann",
    description="手写 digits",
    shares=(Share(kind=ShareKind.GROUP, name="vision", mode=ShareMode.WRITE),),
    created_at=12.5,
)
FIRST = VersionRecord(
    dataset="d-1",
    id="aa" * 32,
    number=1,
    tree="t1" * 32,
    message="first\nline",
    author="ann",
    at=100.5,
    files=3,
    bytes=9,
)
SECOND = replace(FIRST, id="ab" * 32, number=2, parent=FIRST.id, tree="t2" * 32, new_bytes=2**40, produced_by="j-7")
OPERATION = OperationRecord(
    id="e-1",
    kind=OperationKind.COMMIT,
    target="default",
    dataset="d-1",
    order={"message": "it's \u0000 odd"},
    created_by="ann",
    created_at=5.0,
)


def test_targets_come_back_as_they_were(store: Store) -> None:
    plain = DatasetTargetRecord(name="disk", path="/srv/sets", created_by="operator", created_at=1.0)
    in_git = DatasetTargetRecord(
        name="forge",
        metadata=MetadataKind.GIT,
        git_url="https://git.example.org/sets.git",
        git_branch="main",
        git_token="gAAAA",
        storage=ByteStorage.OBJECT,
        object_store="minio",
        prefix="sets",
    )
    with store.write() as tx:
        tx.datasets.save_target(in_git)
        tx.datasets.save_target(plain)
        tx.datasets.save_target(replace(plain, path="/srv/other"))
    with store.read() as tx:
        assert tx.datasets.targets() == [replace(plain, path="/srv/other"), in_git]
    with store.write() as tx:
        tx.datasets.delete_target("disk")
        tx.datasets.delete_target("nowhere")
        assert tx.datasets.targets() == [in_git]


def test_datasets_are_found_by_id_and_by_name_of_their_owner(store: Store) -> None:
    with store.write() as tx:
        assert [tx.datasets.next_id() for _ in range(2)] == ["d-1", "d-2"]
        tx.datasets.save(DIGITS)
        tx.datasets.save(replace(DIGITS, id="d-2", owner="bob", shares=()))
        tx.datasets.save(replace(DIGITS, head="aa", versions=1, size_bytes=2**45))
    with store.read() as tx:
        assert tx.datasets.get("d-1") == replace(DIGITS, head="aa", versions=1, size_bytes=2**45)
        assert [dataset.owner for dataset in tx.datasets.all()] == ["ann", "bob"]
        found = tx.datasets.find("bob", "digits")
        assert found is not None
        assert found.id == "d-2"
        assert tx.datasets.find("carl", "digits") is None
    with pytest.raises(NameTaken), store.write() as tx:
        tx.datasets.save(replace(DIGITS, id="d-3"))


@pytest.mark.parametrize("no_id", ["", "d-", "d-0", "d-01", "d-x", "e-1", "d-99999999999999999999", "D-1"])
def test_invalid_dataset_id_is_not_found(store: Store, no_id: str) -> None:
    with store.write() as tx:
        tx.datasets.save(DIGITS)
        assert tx.datasets.get(no_id) is None
        assert tx.datasets.log(no_id, before=None, limit=5) == []
        tx.datasets.delete(no_id)
        assert tx.datasets.get("d-1") == DIGITS


def test_versions_stand_in_one_line(store: Store) -> None:
    with store.write() as tx:
        tx.datasets.save(replace(DIGITS, head=SECOND.id))
        tx.datasets.add_versions([FIRST, SECOND])
        tx.datasets.add_versions([])
    with store.read() as tx:
        assert tx.datasets.version("d-1", SECOND.id) == SECOND
        assert tx.datasets.version("d-2", SECOND.id) is None
        assert tx.datasets.log("d-1", before=None, limit=10) == [SECOND, FIRST]
        assert tx.datasets.log("d-1", before=2, limit=10) == [FIRST]
        assert tx.datasets.versions_like("d-1", "a", 5) == [SECOND, FIRST]
        assert tx.datasets.versions_like("d-1", "ab", 5) == [SECOND]
        assert tx.datasets.versions_like("d-1", "f", 5) == []
        assert tx.datasets.heads(["d-1", "d-2", "x"]) == {"d-1": SECOND}
        assert tx.datasets.produced_by("j-7") == [SECOND]
    for twin in (replace(SECOND, number=3), replace(SECOND, id="ac" * 32)):
        with pytest.raises(StoreConflict), store.write() as tx:
            tx.datasets.add_versions([twin])


def test_a_tag_means_one_version_and_can_mean_another(store: Store) -> None:
    with store.write() as tx:
        tx.datasets.save(DIGITS)
        for tag, version in (("v2", "b"), ("v1", "a"), ("v2", "c")):
            tx.datasets.save_tag(TagRecord(dataset="d-1", tag=tag, version=version))
        assert [(tag.tag, tag.version) for tag in tx.datasets.tags(["d-1", "d-9"])] == [("v1", "a"), ("v2", "c")]
        tx.datasets.delete_tag("d-1", "v1")
        tx.datasets.delete_tag("d-1", "v1")
        assert [tag.tag for tag in tx.datasets.tags(["d-1"])] == ["v2"]
        assert tx.datasets.tags([]) == []


def test_uses_are_kept_once_and_outlive_the_dataset(store: Store) -> None:
    use = DatasetUse(job_id="j-3", attempt=1, dataset="d-1", version="a", job_name="train", user="ann", at=10.0)
    again = replace(use, attempt=2, version="b", at=20.0)
    with store.write() as tx:
        tx.datasets.save(DIGITS)
        tx.datasets.add_versions([FIRST])
        tx.datasets.save_tag(TagRecord(dataset="d-1", tag="v1", version=FIRST.id))
        tx.datasets.save_operation(OPERATION)
        tx.datasets.add_uses([use, again])
        tx.datasets.add_uses([replace(use, at=99.0)])
        tx.datasets.delete("d-1")
    with store.read() as tx:
        assert tx.datasets.uses("d-1", limit=10) == [again, use]
        assert tx.datasets.uses("d-1", limit=1) == [again]
        assert tx.datasets.uses("d-1", version="a", limit=10) == [use]
        assert tx.datasets.uses_of_job("j-3") == [again, use]
        assert tx.datasets.log("d-1", before=None, limit=5) == []
        assert tx.datasets.tags(["d-1"]) == []
        assert tx.datasets.operation("e-1") is None


def test_operations_are_listed_newest_first_and_old_ones_go(store: Store) -> None:
    states = [
        OperationState.READY,
        OperationState.WORKING,
        OperationState.FAILED,
        OperationState.WAITING,
        OperationState.READY,
    ]
    made = [
        replace(OPERATION, id=f"e-{number}", state=state, dataset=None if number == 3 else "d-1", result={"files": 1})
        for number, state in enumerate(states, start=1)
    ]
    with store.write() as tx:
        tx.datasets.save(DIGITS)
        assert [tx.datasets.next_operation_id() for _ in range(2)] == ["e-1", "e-2"]
        for operation in made:
            tx.datasets.save_operation(operation)
    with store.read() as tx:
        assert tx.datasets.operation("e-2") == made[1]
        assert tx.datasets.operation("d-1") is None
        assert tx.datasets.unfinished_operations() == [made[1], made[3]]
        page = tx.datasets.operations(target="default", dataset="d-1", cursor=None, limit=3)
        assert [operation.id for operation in page.items] == ["e-5", "e-4", "e-2"]
        rest = tx.datasets.operations(target=None, dataset="d-1", cursor=page.next_cursor, limit=3)
        assert ([operation.id for operation in rest.items], rest.next_cursor) == (["e-1"], None)
        assert tx.datasets.operations(target="other", dataset=None, cursor=None, limit=3).items == ()
        with pytest.raises(ValueError, match="cursor"):
            tx.datasets.operations(target=None, dataset=None, cursor="x", limit=3)
    with store.write() as tx:
        assert tx.datasets.keep_operations(1) == 2
        assert tx.datasets.keep_operations(1) == 0
        left = tx.datasets.operations(target=None, dataset=None, cursor=None, limit=9).items
        assert [operation.id for operation in left] == ["e-5", "e-4", "e-2"]
