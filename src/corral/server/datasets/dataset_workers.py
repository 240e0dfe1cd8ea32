"""Long work on datasets beside the live system: a thread that hands out errands, and a process for each of them.

Commits, verifications and collections of garbage read and write for hours; their processes step behind everything else
on the machine and ask the server about versions, which alone writes to the store. A process that is killed, or a
server, leaves nothing visible: the errand is begun again, and uses what was stored by then.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

from corral.control.datasets import background_work, datasets, targets
from corral.control.errors import Refusal, WrongState
from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker
from corral.control.ports import Store, StoreUnavailable
from corral.control.records import DatasetRecord, ErrandKind, ErrandRecord, VersionRecord
from corral.datasets.history.records import Commit
from corral.objects.access import NotReachable
from corral.server.auth.secret_box import SecretBox
from corral.server.datasets.dataset_access import (
    Words,
    dataset_key,
    index_cache,
    metadata_words,
    sent_packs_path,
    storage_words,
)
from corral.server.datasets.dataset_sent import SentPacks
from corral.server.settings.disk_limits import disk_limits
from corral.server.settings.settings import Settings
from corral.stores.jobs.job_directories import DirectoryWorkspace

log = logging.getLogger("corral.server.datasets.dataset_workers")

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: Errands that are done at the same time, each about another dataset and each another user's.
AT_ONCE = 3
#: Behind what people wait for, before what nobody does.
NICENESS = 10
#: Whatever was missed is found then.
LOOK_SECONDS = 60.0
_ANSWER_SECONDS = 60.0
_LAST_WORDS = 400
_PORTION = 500


class Committing:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        settings: Settings,
        box: SecretBox,
        volume_path: Callable[[str], str | None],
        workspace: DirectoryWorkspace,
        tell: Callable[[str, str, Mapping[str, Any]], None] = lambda key, name, data: None,
    ) -> None:
        """`volume_path` says where this machine sees a volume; `tell(key, name, data)` says something to followers that
        is kept nowhere."""
        self._controller = controller
        self._store = store
        self._settings = settings
        self._box = box
        self._volume_path = volume_path
        self._workspace = workspace
        self._tell = tell
        self._guard = threading.Lock()
        #: what is being done: by errand, how far it is, and its process
        self._standing: dict[str, dict[str, Any]] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._busy: dict[str, str] = {}
        self._users: dict[str, str] = {}
        self._answers: Mapping[str, Callable[[ErrandRecord, Mapping[str, Any]], Any]] = {
            "datasets": self._answer_datasets,
            "log": self._answer_log,
            "get": self._answer_get,
            "tags": self._answer_tags,
            "append": self._answer_append,
            "take_over": self._answer_take_over,
        }
        self._worker = Worker("committing", self._look, every_seconds=LOOK_SECONDS, interrupt=self._end_processes)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """What is being done is begun again at the next start."""
        self._worker.stop()

    def wake(self) -> None:
        """Something was asked for."""
        self._worker.wake()

    def _end_processes(self) -> None:
        with self._guard:
            processes = list(self._processes.values())
        for process in processes:
            process.kill()

    def standing(self, errand_id: str) -> Mapping[str, Any] | None:
        """How far it is, while it is being done."""
        with self._guard:
            return self._standing.get(errand_id)

    def process_of(self, errand_id: str) -> int | None:
        with self._guard:
            process = self._processes.get(errand_id)
        return None if process is None else process.pid

    # ---------------------------------------------------------------- handing out

    def _look(self) -> None:
        with self._store.read() as tx:
            unfinished = tx.datasets.unfinished_errands()
        for errand in unfinished:
            with self._guard:
                # One at a time for each dataset: two commits would only race for the same place in its history.
                place = errand.dataset or f"target {errand.target}"
                if len(self._busy) >= AT_ONCE or place in self._busy.values() or errand.id in self._busy:
                    continue
                if errand.created_by in self._users.values():
                    continue
                self._busy[errand.id] = place
                self._users[errand.id] = errand.created_by
            threading.Thread(target=self._guarded, args=(errand.id,), name=errand.id, daemon=True).start()
        if not unfinished:
            self._execute(background_work.drop_old)

    def _guarded(self, errand_id: str) -> None:
        try:
            self._do(errand_id)
        except ControllerStopped:
            self._worker.ask_to_stop()
        except StoreUnavailable as error:
            log.warning("errand %s is begun again: %s", errand_id, error)
        except (Refusal, NotReachable) as error:
            self._execute(background_work.fail, errand_id, str(error))
        except Exception as error:
            log.exception("errand %s could not be done", errand_id)
            self._execute(background_work.fail, errand_id, f"{type(error).__name__}: {error}")
        finally:
            with self._guard:
                self._busy.pop(errand_id, None)
                self._users.pop(errand_id, None)
                self._standing.pop(errand_id, None)
            self._worker.wake()

    def _do(self, errand_id: str) -> None:
        errand = self._execute(background_work.begin, errand_id)
        if errand is None:
            return
        order = self._order(errand)
        words = self._settings.home / "dataset-errands"
        words.mkdir(mode=0o700, exist_ok=True)
        errors = words / f"{errand.id}.txt"
        with errors.open("w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "corral.server.datasets.dataset_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        try:
            # From outside: it shall not be in the way while it loads either.
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            with self._guard:
                self._processes[errand.id] = process
                self._standing[errand.id] = _standing({})
            ended = self._converse(errand, order, process)
        finally:
            with self._guard:
                self._processes.pop(errand.id, None)
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if not ended and not self._worker.is_stopping:
            self._died(errand, process.returncode, errors)
        else:
            errors.unlink(missing_ok=True)

    # ---------------------------------------------------------------- what a process is told

    def _order(self, errand: ErrandRecord) -> Words:
        with self._store.read() as tx:
            target = targets.existing(tx, errand.target)
            dataset = None if errand.dataset is None else tx.datasets.get(errand.dataset)
            storage = storage_words(tx, target, self._settings, self._box)
            identity = datasets.identity_of(tx, target.name)
        order: Words = {
            **errand.order,
            "kind": errand.kind.value,
            "dataset": None if dataset is None else dataset_key(dataset),
            "storage": storage,
            "git": metadata_words(target, self._settings, self._box),
            "identity": identity,
            "cache": str(index_cache(self._settings, target.name)),
        }
        if errand.kind is ErrandKind.COMMIT:
            order["source"] = self._source(errand)
        return order

    def _source(self, errand: ErrandRecord) -> Words:
        """Where the server itself sees what is to be committed; of sent pieces, which packs the author has sent."""
        source = errand.order["source"]
        parts = [part for part in str(source.get("path", "")).split("/") if part not in ("", ".")]
        if source["kind"] == "volume":
            base = self._volume_path(source["volume"])
            if base is None:
                raise WrongState("only the nodes see this volume: commit from within a job", field="from")
            with self._store.read() as tx:
                volume = tx.volumes.get(source["volume"])
            limit = None if volume is None else volume.size_bytes or None
            return {"kind": "directory", "base": base, "parts": parts, "max_bytes": limit}
        if source["kind"] == "job":
            outputs = self._workspace.output_dir(source["job"])
            # The job owns what is below its directory: no step there is trusted.
            below = [outputs.parent.name, outputs.name, *parts]
            limit = disk_limits(self._settings).job_bytes
            return {"kind": "directory", "base": str(outputs.parent.parent), "parts": below, "max_bytes": limit}
        sent = SentPacks(sent_packs_path(self._settings)).packs(errand.target, errand.created_by)
        return {**source, "sent": sorted(sent)}

    # ---------------------------------------------------------------- what it says and asks

    def _converse(self, errand: ErrandRecord, order: Words, process: subprocess.Popen[str]) -> bool:
        """Until it has said what came of it; False if it ended without a word."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, order)
            for line in process.stdout:
                words = json.loads(line)
                if "progress" in words:
                    self._see(errand, words["progress"])
                elif "ask" in words:
                    _send(process.stdin, self._answered(errand, words))
                elif "failed" in words:
                    self._execute(background_work.fail, errand.id, words["failed"])
                    return True
                elif "done" in words:
                    self._conclude(errand, words["done"])
                    return True
        except (BrokenPipeError, json.JSONDecodeError):
            pass
        return False

    def _see(self, errand: ErrandRecord, progress: Mapping[str, Any]) -> None:
        standing = _standing(progress)
        with self._guard:
            self._standing[errand.id] = standing
        data = {"id": errand.id, "kind": errand.kind.value, "dataset": errand.dataset, "target": errand.target}
        self._tell("dataset", "dataset.progress", {**data, **standing})

    def _answered(self, errand: ErrandRecord, words: Mapping[str, Any]) -> Words:
        try:
            return {"answer": self._answers[words["ask"]](errand, words)}
        except WrongState as refusal:
            if words["ask"] != "append":
                return {"error": refusal.detail}
            with self._store.read() as tx:
                dataset = tx.datasets.get(errand.dataset or "")
            return {"moved": None if dataset is None else dataset.head}
        except Refusal as refusal:
            return {"error": refusal.detail}

    def _answer_datasets(self, errand: ErrandRecord, words: Mapping[str, Any]) -> list[str]:
        with self._store.read() as tx:
            return [dataset_key(one) for one in tx.datasets.all() if one.target == errand.target and one.versions]

    def _answer_log(self, errand: ErrandRecord, words: Mapping[str, Any]) -> list[Words]:
        """Newest first; nothing for one that there is not."""
        found: list[Words] = []
        dataset = self._named(errand, words["dataset"])
        before: int | None = None
        while dataset is not None:
            with self._store.read() as tx:
                versions = tx.datasets.log(dataset.id, before=before, limit=_PORTION)
            found += [commit_of(dataset, version).to_dict() for version in versions]
            if len(versions) < _PORTION:
                break
            before = versions[-1].number
        return found

    def _answer_get(self, errand: ErrandRecord, words: Mapping[str, Any]) -> Words:
        dataset = self._named(errand, words["dataset"])
        with self._store.read() as tx:
            version = None if dataset is None else tx.datasets.version(dataset.id, words["version"])
        if dataset is None or version is None:
            raise WrongState(f"there is no version {words['version']}")
        return commit_of(dataset, version).to_dict()

    def _answer_tags(self, errand: ErrandRecord, words: Mapping[str, Any]) -> dict[str, str]:
        dataset = self._named(errand, words["dataset"])
        with self._store.read() as tx:
            return {} if dataset is None else {tag.tag: tag.version for tag in tx.datasets.tags([dataset.id])}

    def _answer_append(self, errand: ErrandRecord, words: Mapping[str, Any]) -> None:
        assert errand.dataset is not None
        version = version_of(errand.dataset, Commit.from_dict(words["commit"], expected_id=words["version"]))
        self._execute(background_work.record_commit, errand.id, version)

    def _answer_take_over(self, errand: ErrandRecord, words: Mapping[str, Any]) -> int:
        assert errand.dataset is not None
        versions = [version_of(errand.dataset, Commit.from_dict(one)) for one in words["commits"]]
        return self._execute(background_work.take_over, errand.id, versions, words["tags"])

    def _named(self, errand: ErrandRecord, key: str) -> DatasetRecord | None:
        with self._store.read() as tx:
            of_target = [one for one in tx.datasets.all() if one.target == errand.target]
        return next((one for one in of_target if dataset_key(one) == key), None)

    # ---------------------------------------------------------------- how it ends

    def _conclude(self, errand: ErrandRecord, result: Mapping[str, Any]) -> None:
        if errand.kind is not ErrandKind.COMMIT:
            self._execute(background_work.finish, errand.id, result)
            return
        assert errand.dataset is not None
        with self._store.read() as tx:
            version = tx.datasets.version(errand.dataset, result["version"])
        if version is None:
            self._execute(background_work.fail, errand.id, "the dataset was deleted meanwhile")
        else:
            self._execute(background_work.finish_commit, errand.id, version)

    def _died(self, errand: ErrandRecord, code: int, errors: Path) -> None:
        """It is begun again, unless that happened too often."""
        words = errors.read_text(encoding="utf-8", errors="replace").strip()[-_LAST_WORDS:]
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        log.warning("the process of errand %s %s: %s", errand.id, how, words)

    def _execute(
        self, use_case: Callable[Concatenate[Work, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Answer:
        return self._controller.execute(use_case, *args, **kwargs).result(_ANSWER_SECONDS)


def commit_of(dataset: DatasetRecord, version: VersionRecord) -> Commit:
    """A version as the library knows it: its id follows from all of this."""
    return Commit(
        dataset=dataset_key(dataset),
        tree=version.tree,
        parent=version.parent,
        message=version.message,
        author=version.author,
        at=version.at,
        job=version.produced_by,
        files=version.files,
        bytes=version.bytes,
        new_bytes=version.new_bytes,
    )


def version_of(dataset_id: str, commit: Commit) -> VersionRecord:
    """Its place in the line is given when it is added."""
    return VersionRecord(
        dataset=dataset_id,
        id=commit.id,
        number=0,
        parent=commit.parent,
        tree=commit.tree,
        message=commit.message,
        author=commit.author,
        at=commit.at,
        files=commit.files,
        bytes=commit.bytes,
        new_bytes=commit.new_bytes,
        produced_by=commit.job,
    )


def _send(pipe: IO[str], words: Words) -> None:
    pipe.write(json.dumps(words) + "\n")
    pipe.flush()


def _standing(progress: Mapping[str, Any]) -> dict[str, Any]:
    total = progress.get("bytes_total")
    return {
        "phase": progress.get("phase", "starting"),
        "fraction": progress["bytes_done"] / total if total else None,
        "done_files": progress.get("files_done", 0),
        "done_bytes": progress.get("bytes_done", 0),
        "total_files": progress.get("files_total"),
        "total_bytes": total,
    }
