"""The routes of datasets and of the targets that store them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.errors import NotFound
from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import (
        DatasetTargetView,
        DatasetView,
        DiffView,
        JobLineageView,
        LineageView,
        OperationView,
        TagView,
        TargetTestView,
        VersionFileView,
        VersionView,
    )

#: The interval at which `wait` polls.
POLL_SECONDS = 0.3


class Datasets:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, name: str | None = None, owner: str | None = None, target: str | None = None, mine: bool | None = None
    ) -> Iterator[DatasetView]:
        """Datasets of the caller and those that are shared with the caller; operators see all."""
        params = {"name": name, "owner": owner, "target": target, "mine": "true" if mine else None}
        return self._transport.pages("/datasets", params)

    def find(self, ref: str) -> DatasetView:
        """Find a dataset by id, name, or owner/name."""
        owner, slash, name = ref.partition("/")
        if not slash:
            return cast("DatasetView", self._transport.get(_path(ref)))
        for found in self.list(name=name, owner=owner):
            return found
        raise NotFound(404, {"detail": f"there is no dataset {ref!r}", "title": "There is no such thing"})

    def create(self, body: Mapping[str, Any]) -> DatasetView:
        """Create an empty dataset; `commits` add versions."""
        return cast("DatasetView", self._transport.post("/datasets", dict(body)))

    def share(self, dataset: str, shares: Sequence[Mapping[str, str]]) -> DatasetView:
        """Share a dataset with users and groups."""
        body = {"shares": [dict(share) for share in shares]}
        return cast("DatasetView", self._transport.put(f"{_path(dataset)}/shares", body))

    def delete(self, dataset: str) -> None:
        """Delete a dataset with all its versions."""
        self._transport.delete(_path(dataset))

    def log(self, dataset: str, *, limit: int | None = None) -> Iterator[VersionView]:
        """The versions of a dataset, the newest first."""
        return self._transport.pages(f"{_path(dataset)}/versions", limit=limit)

    def version(self, dataset: str, version: str) -> VersionView:
        """One version of a dataset."""
        return cast("VersionView", self._transport.get(_version(dataset, version)))

    def files(self, dataset: str, version: str, path: str = "") -> Iterator[VersionFileView]:
        """The files of a version."""
        return self._transport.pages(f"{_version(dataset, version)}/files", {"path": path})

    def diff(self, dataset: str, old: str | None, new: str) -> DiffView:
        """The files that differ between two versions."""
        return cast("DiffView", self._transport.get(f"{_path(dataset)}/diff", {"from": old, "to": new}))

    def tag(self, dataset: str, tag: str, version: str) -> TagView:
        """Give a version a name."""
        return cast("TagView", self._transport.put(f"{_path(dataset)}/tags/{segment(tag)}", {"version": version}))

    def untag(self, dataset: str, tag: str) -> None:
        """Remove the name of a version."""
        self._transport.delete(f"{_path(dataset)}/tags/{segment(tag)}")

    def lineage(self, dataset: str, version: str | None = None) -> LineageView:
        """The jobs that used and made the versions of a dataset."""
        return cast("LineageView", self._transport.get(f"{_path(dataset)}/lineage", {"version": version, "limit": 500}))

    def of_job(self, job: str) -> JobLineageView:
        """The versions that a job's attempts used, and those that the job made."""
        return cast("JobLineageView", self._transport.get(f"/jobs/{segment(job)}/datasets"))

    # ---------------------------------------------------------------- operations that take long

    def commit(self, dataset: str, body: Mapping[str, Any]) -> OperationView:
        """Begin a new version; the operation has its progress and its result."""
        return cast("OperationView", self._transport.post(f"{_path(dataset)}/commits", dict(body)))

    def verify(self, dataset: str, version: str) -> OperationView:
        """Begin to check the stored files of a version."""
        return cast("OperationView", self._transport.post(f"{_version(dataset, version)}/verify"))

    def collect(self, target: str, *, dry_run: bool, grace_seconds: float) -> OperationView:
        """Begin to remove stored data that no version needs."""
        body = {"dry_run": dry_run, "grace_seconds": grace_seconds}
        return cast("OperationView", self._transport.post(f"{_target(target)}/collections", body))

    def operation(self, operation: OperationView) -> OperationView:
        """The current state of an operation."""
        if operation["dataset"] is None:
            address = f"{_target(operation['target'])}/collections/{operation['id']}"
        else:
            address = f"{_path(operation['dataset'])}/commits/{operation['id']}"
        return cast("OperationView", self._transport.get(address))

    def wait(
        self, operation: OperationView, on_poll: Callable[[OperationView], None] = lambda view: None
    ) -> OperationView:
        """Polls until the operation has ended, and returns it. `on_poll` is called with every answer."""
        while operation["state"] in ("waiting", "working"):
            self._transport.sleep(POLL_SECONDS)
            operation = self.operation(operation)
            on_poll(operation)
        return operation

    # ---------------------------------------------------------------- pieces

    def missing(self, dataset: str, ids: Sequence[str]) -> Sequence[str]:
        """The pieces that the target does not have yet."""
        answer = self._transport.post(f"{_path(dataset)}/objects:missing", {"ids": [*ids]})
        return [str(digest) for digest in answer["missing"]]

    def put_pack(self, dataset: str, pack: str, index: bytes, parts: Sequence[bytes | memoryview]) -> None:
        """Store a pack of pieces."""
        address = f"{_path(dataset)}/objects/{pack}?index_bytes={len(index)}"
        self._transport.put_bytes(address, b"".join([index, *parts]))

    def lengths(self, dataset: str, version: str, ids: Sequence[str]) -> Sequence[int | None]:
        """The lengths of pieces that are stored."""
        answer = self._transport.post(f"{_version(dataset, version)}/objects:lengths", {"ids": [*ids]})
        return tuple(answer["lengths"])

    def read_pieces(self, dataset: str, version: str, ids: Sequence[str]) -> bytes:
        """The contents of several pieces, joined. Idempotent, so it may be retried."""
        return self._transport.post_for_bytes(f"{_version(dataset, version)}/objects:read", {"ids": [*ids]})


class DatasetTargets:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[DatasetTargetView]:
        """The places where datasets are stored; secrets are never shown."""
        return self._transport.pages("/dataset-targets")

    def get(self, name: str) -> DatasetTargetView:
        """One place for datasets."""
        return cast("DatasetTargetView", self._transport.get(_target(name)))

    def create(self, body: Mapping[str, Any]) -> DatasetTargetView:
        """Create a place for datasets: a directory or bucket for the files, corral's store or a Git repository for
        the history."""
        return cast("DatasetTargetView", self._transport.post("/dataset-targets", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> DatasetTargetView:
        """Change the access to a place for datasets."""
        return cast("DatasetTargetView", self._transport.patch(_target(name), dict(changes)))

    def delete(self, name: str) -> None:
        """Delete a place without datasets."""
        self._transport.delete(_target(name))

    def test(self, name: str) -> TargetTestView:
        """Test whether the place can be read and written."""
        return cast("TargetTestView", self._transport.post(f"{_target(name)}/test", timeout_seconds=90.0))


def _path(dataset: str) -> str:
    return f"/datasets/{segment(dataset)}"


def _version(dataset: str, version: str) -> str:
    return f"{_path(dataset)}/versions/{segment(version)}"


def _target(name: str) -> str:
    return f"/dataset-targets/{segment(name)}"
