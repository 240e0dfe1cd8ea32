"""Does one errand on datasets in a process of its own: `python -m corral.server.datasets.dataset_worker`.

Told what to do by a line of JSON on its input, it answers with lines on its output: how far it is, questions to the
server about versions, and at last what came of it. It ends by itself when the server is gone.
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

from corral.datasets.content.content_places import open_blobs
from corral.datasets.errors import DatasetError, HeadMoved
from corral.datasets.history.records import Commit
from corral.datasets.history.versions import Manifest, VersionStore
from corral.datasets.repository import LATEST, Committed, Repository
from corral.datasets.work.adoption import adopt
from corral.datasets.work.progress import Progress
from corral.files import Place
from corral.objects.access import NotReachable
from corral.server.datasets.dataset_access import open_git

#: Between two lines about progress.
PROGRESS_SECONDS = 0.3


class Line:
    """The way to the server and back. Questions are asked by one thread at a time."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source = source
        self._out = out
        self._guard = threading.Lock()
        self._told_at = 0.0

    def tell(self, **words: Any) -> None:
        with self._guard:
            self._out.write(json.dumps(words) + "\n")
            self._out.flush()

    def ask(self, **words: Any) -> Any:
        """What the server answers. Raises HeadMoved or DatasetError where it refuses."""
        self.tell(**words)
        answer = json.loads(self.receive())
        if "moved" in answer:
            raise HeadMoved(words["commit"]["dataset"], words["commit"]["parent"], answer["moved"])
        if "error" in answer:
            raise DatasetError(answer["error"])
        return answer["answer"]

    def receive(self) -> str:
        line = self._source.readline()
        if not line:
            os._exit(3)  # the server is gone, and nobody would hear of what comes of this
        return line

    def progress(self, phase: str) -> Callable[[Progress], None]:
        def on_progress(progress: Progress) -> None:
            now = time.monotonic()
            if now - self._told_at >= PROGRESS_SECONDS:
                self._told_at = now
                self.tell(progress={"phase": phase, **asdict(progress)})

        return on_progress


class ServerVersions:
    """Implements `corral.datasets.history.versions.VersionStore`: the server is asked, its store keeps the history."""

    def __init__(self, line: Line, identity: str) -> None:
        self._line = line
        self.identity = identity

    def datasets(self) -> list[str]:
        return list(self._line.ask(ask="datasets"))

    def log(self, dataset: str) -> Iterator[Commit]:
        return iter([Commit.from_dict(words) for words in self._line.ask(ask="log", dataset=dataset)])

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
    """A Git repository keeps the history, and the server a copy of it, so that it can be looked at without Git.

    What is in the repository counts. A version that is there and not in the copy, because a process died in between, is
    taken over with the next errand.
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
        """The repository's first. What only the copy has is no version any more, but must not be collected."""
        known = set()
        for commit in self._git.log(dataset):
            known.add(commit.id)
            yield commit
        yield from (commit for commit in self._copy.log(dataset) if commit.id not in known)

    def history(self, dataset: str) -> list[Commit]:
        """What the repository has, oldest first."""
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
    line = Line(sys.stdin, sys.stdout)
    # Whatever a library prints must not look like a word to the server.
    sys.stdout = sys.stderr
    order = json.loads(line.receive())
    try:
        result = _do(order, line)
    except (DatasetError, NotReachable) as error:
        line.tell(failed=str(error))
        return 1
    except Exception as error:  # noqa: BLE001 - whoever asked shall hear what it was
        traceback.print_exc()
        line.tell(failed=f"{type(error).__name__}: {error}")
        return 1
    line.tell(done=result)
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


# ------------------------------------------------------------------------------------------------ the kinds of errands


def _commit(repository: Repository, order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    words: dict[str, Any] = {
        "message": order["message"],
        "author": order["author"],
        "job": order["job"],
        "parent": order["parent"] or LATEST,
    }
    source = order["source"]
    if source["kind"] == "tree":
        done = adopt(repository, order["dataset"], source["tree"], sent=frozenset(source["sent"]), **words)
        return _committed(done)
    with _inside(source["base"], source["parts"]) as directory:
        on_progress = line.progress("storing")
        words["max_bytes"] = source["max_bytes"]
        return _committed(repository.commit(order["dataset"], directory, on_progress=on_progress, **words))


def _committed(done: Committed) -> dict[str, Any]:
    return {"version": done.commit.id, "created": done.created}


@contextmanager
def _inside(base: str, parts: Sequence[str]) -> Iterator[Path]:
    """A directory below one that is trusted, reached without following a link that somebody put there."""
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
            "object": one.object,
            "reason": one.reason,
            "files": sorted({path for paths in one.uses.values() for path in paths})[:20],
        }
        for one in found.damages[:50]
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
            {"pack": one.id, "bytes": one.size, "age_seconds": one.age_seconds} for one in report.garbage[:20]
        ],
    }


def _pull(repository: Repository, order: Mapping[str, Any], line: Line) -> dict[str, Any]:
    """What is new was taken over before."""
    return {"versions": sum(1 for _ in repository.metadata.log(order["dataset"]))}


_KINDS: Mapping[str, Callable[[Repository, Mapping[str, Any], Line], dict[str, Any]]] = {
    "commit": _commit,
    "verify": _verify,
    "collect": _collect,
    "pull": _pull,
}


if __name__ == "__main__":
    sys.exit(main())
