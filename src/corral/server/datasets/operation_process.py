"""Runs one operation on datasets in a process of its own: `python -m corral.server.datasets.operation_process`.

The process reads its order from a line of JSON on its standard input and writes lines to its standard output: its
progress, questions to the server about versions, and finally the result. It exits when the server is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from corral.core.quantities import format_bytes
from corral.datasets.content.content_places import open_blobs
from corral.datasets.errors import DatasetError, HeadMoved
from corral.datasets.history.records import Commit
from corral.datasets.history.versions import Manifest, VersionStore
from corral.datasets.repository import LATEST, Committed, Repository
from corral.datasets.work.adoption import adopt
from corral.datasets.work.progress import Progress
from corral.files import Place
from corral.files.memory_limit import limit_memory, memory_limit_bytes
from corral.objects.access import NotReachable
from corral.server.datasets.dataset_access import open_git

#: Between two lines about progress.
PROGRESS_SECONDS = 0.3


class Line:
    """The connection to the server. One thread at a time asks questions."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source = source
        self._out = out
        self._guard = threading.Lock()
        self._reported_at = 0.0

    def send(self, **message: Any) -> None:
        with self._guard:
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()

    def ask(self, **message: Any) -> Any:
        """The server's answer. Raises HeadMoved or DatasetError if the server refuses."""
        self.send(**message)
        answer = json.loads(self.receive())
        if "moved" in answer:
            raise HeadMoved(message["commit"]["dataset"], message["commit"]["parent"], answer["moved"])
        if "error" in answer:
            raise DatasetError(answer["error"])
        return answer["answer"]

    def receive(self) -> str:
        line = self._source.readline()
        if not line:
            os._exit(3)  # the server is gone: no process reads the result
        return line

    def progress(self, phase: str) -> Callable[[Progress], None]:
        def on_progress(progress: Progress) -> None:
            now = time.monotonic()
            if now - self._reported_at >= PROGRESS_SECONDS:
                self._reported_at = now
                self.send(progress={"phase": phase, **asdict(progress)})

        return on_progress


class ServerVersions:
    """Implements `corral.datasets.history.versions.VersionStore`: the history is in the server's store."""

    def __init__(self, line: Line, identity: str) -> None:
        self._line = line
        self.identity = identity

    def datasets(self) -> list[str]:
        return list(self._line.ask(ask="datasets"))

    def log(self, dataset: str) -> Iterator[Commit]:
        return iter([Commit.from_dict(plain) for plain in self._line.ask(ask="log", dataset=dataset)])

    def get(self, dataset: str, version: str) -> Commit:
        return Commit.from_dict(self._line.ask(ask="get", dataset=dataset, version=version))

    def append(self, commit: Commit, *, expected_parent: str | None, manifest: Manifest) -> None:
        self._line.ask(ask="append", commit=commit.to_dict(), version=commit.id)

    def tags(self, dataset: str) -> dict[str, str]:
        return dict(self._line.ask(ask="tags", dataset=dataset))

    def tag(self, dataset: str, tag: str, version: str) -> None:
        raise DatasetError("tags are put by the server")

    def untag(self, dataset: str, tag: str) -> None:
        raise DatasetError("tags are put by the server")

    def remove(self, dataset: str) -> None:
        raise DatasetError("datasets are removed by the server")


class MirroredVersions:
    """The history is in a Git repository; the server has a copy, so that it can be read without Git.

    The repository is authoritative. A version that is missing in the copy, because a process died in between, is copied
    by the next operation.
    """

    def __init__(self, git: VersionStore, copy: ServerVersions) -> None:
        self._git = git
        self._copy = copy

    @property
    def identity(self) -> str:
        return self._git.identity

    def datasets(self) -> list[str]:
        return sorted({*self._git.datasets(), *self._copy.datasets()})

    def log(self, dataset: str) -> Iterator[Commit]:
        """The repository's commits first. Commits that only the copy has are not versions any more, but garbage
        collection must keep their objects."""
        known = set()
        for commit in self._git.log(dataset):
            known.add(commit.id)
            yield commit
        yield from (commit for commit in self._copy.log(dataset) if commit.id not in known)

    def history(self, dataset: str) -> list[Commit]:
        """The repository's commits, oldest first."""
        return list(self._git.log(dataset))[::-1]

    def get(self, dataset: str, version: str) -> Commit:
        return self._git.get(dataset, version)

    def append(self, commit: Commit, *, expected_parent: str | None, manifest: Manifest) -> None:
        self._git.append(commit, expected_parent=expected_parent, manifest=manifest)
        self._copy.append(commit, expected_parent=expected_parent, manifest=manifest)

    def tags(self, dataset: str) -> dict[str, str]:
        return self._git.tags(dataset)

    def tag(self, dataset: str, tag: str, version: str) -> None:
        self._git.tag(dataset, tag, version)

    def untag(self, dataset: str, tag: str) -> None:
        self._git.untag(dataset, tag)

    def remove(self, dataset: str) -> None:
        self._git.remove(dataset)


def main() -> int:
    limit_memory()
    line = Line(sys.stdin, sys.stdout)
    # Text that a library prints must not look like a message to the server.
    sys.stdout = sys.stderr
    order = json.loads(line.receive())
    try:
        result = _do(order, line)
    except (DatasetError, NotReachable) as error:
        line.send(failed=str(error))
        return 1
    except MemoryError:
        line.send(failed=f"it needs more memory than the {format_bytes(memory_limit_bytes())} that an operation gets")
        return 1
    except Exception as error:  # noqa: BLE001 - the error is reported to the user who requested the operation
        traceback.print_exc()
        line.send(failed=f"{type(error).__name__}: {error}")
        return 1
    line.send(done=result)
    return 0


def _do(order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    repository = _opened(order, line)
    kind: str = order["kind"]
    if isinstance(repository.metadata, MirroredVersions) and kind in ("commit", "pull"):
        _take_over(repository.metadata, order["dataset"], line)
    return _KINDS[kind](repository, order, line)


def _opened(order: Mapping[str, Any], line: Line) -> Repository:
    versions: VersionStore = ServerVersions(line, order["identity"])
    if order["git"] is not None:
        assert isinstance(versions, ServerVersions)
        versions = MirroredVersions(open_git(order["git"]), versions)
    return Repository(open_blobs(order["storage"]), versions, cache=Path(order["cache"]))


def _take_over(versions: MirroredVersions, dataset: str, line: Line) -> int:
    commits = [commit.to_dict() for commit in versions.history(dataset)]
    return int(line.ask(ask="take_over", commits=commits, tags=versions.tags(dataset)))


# ------------------------------------------------------------------------------------------------ operations by kind


def _commit(repository: Repository, order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    details: dict[str, Any] = {
        "message": order["message"],
        "author": order["author"],
        "job": order["job"],
        "parent": order["parent"] or LATEST,
    }
    source = order["source"]
    if source["kind"] == "tree":
        done = adopt(repository, order["dataset"], source["tree"], sent=frozenset(source["sent"]), **details)
        return _committed(done)
    with _inside(source["base"], source["parts"]) as directory:
        on_progress = line.progress("storing")
        details["max_bytes"] = source["max_bytes"]
        return _committed(repository.commit(order["dataset"], directory, on_progress=on_progress, **details))


def _committed(done: Committed) -> dict[str, Any]:
    return {"version": done.commit.id, "created": done.created}


@contextmanager
def _inside(base: str, parts: Sequence[str]) -> Iterator[Path]:
    """A directory below a trusted one, opened without following symbolic links."""
    try:
        place = Place.at(base, *parts)
    except OSError as error:
        raise DatasetError(f"there is no directory {'/'.join(parts)!r}: {error.strerror}") from None
    with place:
        yield Path(place.path)


def _verify(repository: Repository, order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    found = repository.verify(order["dataset"], order["version"])
    damages = [
        {
            "object": damage.object,
            "reason": damage.reason,
            "files": sorted({path for paths in damage.uses.values() for path in paths})[:20],
        }
        for damage in found.damages[:50]
    ]
    return {
        "version": order["version"],
        "ok": not found.damages,
        "pieces": found.pieces,
        "bytes": found.bytes,
        "damaged": len(found.damages),
        "damages": damages,
    }


def _collect(repository: Repository, order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    report = repository.collect_garbage(dry_run=order["dry_run"], grace_seconds=order["grace_seconds"])
    return {
        "dry_run": report.dry_run,
        "packs": report.packs,
        "bytes": report.bytes,
        "garbage_packs": len(report.garbage),
        "garbage_bytes": report.garbage_bytes,
        "fresh_bytes": report.fresh_bytes,
        "partly_used_packs": len(report.partly_used),
        "removed_packs": report.removed_packs,
        "removed_bytes": report.removed_bytes,
        "waiting_packs": report.waiting_packs,
        "examples": [
            {"pack": piece.id, "bytes": piece.size, "age_seconds": piece.age_seconds} for piece in report.garbage[:20]
        ],
    }


def _pull(repository: Repository, order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    """New versions were copied before, by `_take_over`."""
    return {"versions": sum(1 for _ in repository.metadata.log(order["dataset"]))}


_KINDS: Mapping[str, Callable[[Repository, Mapping[str, Any], Line], dict[str, Any]]] = {
    "commit": _commit,
    "verify": _verify,
    "collect": _collect,
    "pull": _pull,
}


if __name__ == "__main__":
    sys.exit(main())
