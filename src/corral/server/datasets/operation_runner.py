"""Runs the long operations on datasets: a worker starts one process (`operation_process`) for each of them.

Commits, verifications and garbage collections may read and write for hours. Their processes run with a low priority
and ask the server about versions; only the server writes to the store. If a process or the server is killed, no partial
result is visible: the operation starts again and uses the objects that were stored by then.
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

from corral.control.datasets import datasets, operations, targets
from corral.control.errors import Refusal, WrongState
from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.unit_of_work import Work
from corral.control.live.worker import Worker
from corral.control.ports import Store, StoreUnavailable
from corral.control.records import DatasetRecord, OperationKind, OperationRecord, VersionRecord
from corral.datasets.history.records import Commit
from corral.objects.access import NotReachable
from corral.server.auth.secret_box import SecretBox
from corral.server.datasets.dataset_access import (
    Message,
    dataset_key,
    git_access,
    index_cache,
    sent_packs_path,
    storage_access,
)
from corral.server.datasets.dataset_sent import SentPacks
from corral.server.settings.disk_limits import disk_limits
from corral.server.settings.settings import Settings
from corral.stores.jobs.job_directories import DirectoryWorkspace

log = logging.getLogger("corral.server.datasets.operation_runner")

Params = ParamSpec("Params")
Answer = TypeVar("Answer")

#: Operations that run at the same time, each on another dataset and each of another user.
AT_ONCE = 3
#: Lower priority than the server, higher than idle work.
NICENESS = 10
#: Between two reads of the store; an operation for which `wake` was missed starts then.
POLL_SECONDS = 60.0
_ANSWER_SECONDS = 60.0
#: The limit of the error output of a process that died.
_LAST_CHARACTERS = 400
_PORTION = 500


class OperationRunner:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        settings: Settings,
        box: SecretBox,
        volume_path: Callable[[str], str | None],
        workspace: DirectoryWorkspace,
        notify: Callable[[str, str, Mapping[str, Any]], None] = lambda key, name, data: None,
    ) -> None:
        """`volume_path` returns a volume's path on this machine; `notify(key, name, data)` sends an event that is not
        stored to the followers of the event stream."""
        self._controller = controller
        self._store = store
        self._settings = settings
        self._box = box
        self._volume_path = volume_path
        self._workspace = workspace
        self._notify = notify
        self._guard = threading.Lock()
        #: the progress, process, subject and user of each running operation
        self._progress: dict[str, dict[str, Any]] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._busy: dict[str, str] = {}
        self._users: dict[str, str] = {}
        self._answers: Mapping[str, Callable[[OperationRecord, Mapping[str, Any]], Any]] = {
            "datasets": self._answer_datasets,
            "log": self._answer_log,
            "get": self._answer_get,
            "tags": self._answer_tags,
            "append": self._answer_append,
            "take_over": self._answer_take_over,
        }
        self._worker = Worker("committing", self._start_due, every_seconds=POLL_SECONDS, interrupt=self._end_processes)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Kill the processes. Their operations start again with the next server."""
        self._worker.stop()

    def wake(self) -> None:
        """Start the next operation now: one was requested."""
        self._worker.wake()

    def _end_processes(self) -> None:
        with self._guard:
            processes = list(self._processes.values())
        for process in processes:
            process.kill()

    def progress(self, operation_id: str) -> Mapping[str, Any] | None:
        """The progress of a running operation; None if it is not running."""
        with self._guard:
            return self._progress.get(operation_id)

    # ---------------------------------------------------------------- starting operations

    def _start_due(self) -> None:
        with self._store.read() as tx:
            unfinished = tx.datasets.unfinished_operations()
        for operation in unfinished:
            with self._guard:
                # One at a time for each dataset: of two commits with the same parent, one would fail.
                place = operation.dataset or f"target {operation.target}"
                if len(self._busy) >= AT_ONCE or place in self._busy.values() or operation.id in self._busy:
                    continue
                if operation.created_by in self._users.values():
                    continue
                self._busy[operation.id] = place
                self._users[operation.id] = operation.created_by
            threading.Thread(target=self._guarded, args=(operation.id,), name=operation.id, daemon=True).start()
        if not unfinished:
            self._execute(operations.drop_old)

    def _guarded(self, operation_id: str) -> None:
        try:
            self._do(operation_id)
        except ControllerStopped:
            self._worker.ask_to_stop()
        except StoreUnavailable as error:
            log.warning("operation %s starts again: %s", operation_id, error)
        except (Refusal, NotReachable) as error:
            self._execute(operations.fail, operation_id, str(error))
        except Exception as error:
            log.exception("operation %s failed", operation_id)
            self._execute(operations.fail, operation_id, f"{type(error).__name__}: {error}")
        finally:
            with self._guard:
                self._busy.pop(operation_id, None)
                self._users.pop(operation_id, None)
                self._progress.pop(operation_id, None)
            self._worker.wake()

    def _do(self, operation_id: str) -> None:
        operation = self._execute(operations.begin, operation_id)
        if operation is None:
            return
        order = self._order(operation)
        folder = self._settings.home / "dataset-errands"
        folder.mkdir(mode=0o700, exist_ok=True)
        errors = folder / f"{operation.id}.txt"
        with errors.open("w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "corral.server.datasets.operation_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        try:
            # Set by the server, so that it holds while the process loads its modules too.
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            with self._guard:
                self._processes[operation.id] = process
                self._progress[operation.id] = _shown_progress({})
            ended = self._converse(operation, order, process)
        finally:
            with self._guard:
                self._processes.pop(operation.id, None)
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if not ended and not self._worker.is_stopping:
            self._died(operation, process.returncode, errors)
        else:
            errors.unlink(missing_ok=True)

    # ---------------------------------------------------------------- the message that starts a process

    def _order(self, operation: OperationRecord) -> Message:
        with self._store.read() as tx:
            target = targets.existing(tx, operation.target)
            dataset = None if operation.dataset is None else tx.datasets.get(operation.dataset)
            storage = storage_access(tx, target, self._settings, self._box)
            identity = datasets.identity_of(tx, target.name)
        order: Message = {
            **operation.order,
            "kind": operation.kind.value,
            "dataset": None if dataset is None else dataset_key(dataset),
            "storage": storage,
            "git": git_access(target, self._settings, self._box),
            "identity": identity,
            "cache": str(index_cache(self._settings, target.name)),
        }
        if operation.kind is OperationKind.COMMIT:
            order["source"] = self._source(operation)
        return order

    def _source(self, operation: OperationRecord) -> Message:
        """The directory to commit, as the server sees it; of a tree of sent objects, the packs that its author sent."""
        source = operation.order["source"]
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
            # The job can change everything below its directory: no path component there is trusted.
            below = [outputs.parent.name, outputs.name, *parts]
            limit = disk_limits(self._settings).job_bytes
            return {"kind": "directory", "base": str(outputs.parent.parent), "parts": below, "max_bytes": limit}
        sent = SentPacks(sent_packs_path(self._settings)).packs(operation.target, operation.created_by)
        return {**source, "sent": sorted(sent)}

    # ---------------------------------------------------------------- messages of the process

    def _converse(self, operation: OperationRecord, order: Message, process: subprocess.Popen[str]) -> bool:
        """Serve the process until it reports its result. False if it ended without a result."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, order)
            for line in process.stdout:
                message = json.loads(line)
                if "progress" in message:
                    self._report_progress(operation, message["progress"])
                elif "ask" in message:
                    _send(process.stdin, self._answered(operation, message))
                elif "failed" in message:
                    self._execute(operations.fail, operation.id, message["failed"])
                    return True
                elif "done" in message:
                    self._conclude(operation, message["done"])
                    return True
        except (BrokenPipeError, json.JSONDecodeError):
            pass
        return False

    def _report_progress(self, operation: OperationRecord, progress: Mapping[str, Any]) -> None:
        shown = _shown_progress(progress)
        with self._guard:
            self._progress[operation.id] = shown
        data = {
            "id": operation.id,
            "kind": operation.kind.value,
            "dataset": operation.dataset,
            "target": operation.target,
        }
        self._notify("dataset", "dataset.progress", {**data, **shown})

    def _answered(self, operation: OperationRecord, message: Mapping[str, Any]) -> Message:
        try:
            return {"answer": self._answers[message["ask"]](operation, message)}
        except WrongState as refusal:
            if message["ask"] != "append":
                return {"error": refusal.detail}
            with self._store.read() as tx:
                dataset = tx.datasets.get(operation.dataset or "")
            return {"moved": None if dataset is None else dataset.head}
        except Refusal as refusal:
            return {"error": refusal.detail}

    def _answer_datasets(self, operation: OperationRecord, message: Mapping[str, Any]) -> list[str]:
        with self._store.read() as tx:
            return [
                dataset_key(dataset)
                for dataset in tx.datasets.all()
                if dataset.target == operation.target and dataset.versions
            ]

    def _answer_log(self, operation: OperationRecord, message: Mapping[str, Any]) -> list[Message]:
        """Newest first; empty if the dataset does not exist."""
        found: list[Message] = []
        dataset = self._named(operation, message["dataset"])
        before: int | None = None
        while dataset is not None:
            with self._store.read() as tx:
                versions = tx.datasets.log(dataset.id, before=before, limit=_PORTION)
            found += [commit_of(dataset, version).to_dict() for version in versions]
            if len(versions) < _PORTION:
                break
            before = versions[-1].number
        return found

    def _answer_get(self, operation: OperationRecord, message: Mapping[str, Any]) -> Message:
        dataset = self._named(operation, message["dataset"])
        with self._store.read() as tx:
            version = None if dataset is None else tx.datasets.version(dataset.id, message["version"])
        if dataset is None or version is None:
            raise WrongState(f"there is no version {message['version']}")
        return commit_of(dataset, version).to_dict()

    def _answer_tags(self, operation: OperationRecord, message: Mapping[str, Any]) -> dict[str, str]:
        dataset = self._named(operation, message["dataset"])
        with self._store.read() as tx:
            return {} if dataset is None else {tag.tag: tag.version for tag in tx.datasets.tags([dataset.id])}

    def _answer_append(self, operation: OperationRecord, message: Mapping[str, Any]) -> None:
        assert operation.dataset is not None
        version = version_of(operation.dataset, Commit.from_dict(message["commit"], expected_id=message["version"]))
        self._execute(operations.record_commit, operation.id, version)

    def _answer_take_over(self, operation: OperationRecord, message: Mapping[str, Any]) -> int:
        assert operation.dataset is not None
        versions = [version_of(operation.dataset, Commit.from_dict(commit)) for commit in message["commits"]]
        return self._execute(operations.take_over, operation.id, versions, message["tags"])

    def _named(self, operation: OperationRecord, key: str) -> DatasetRecord | None:
        with self._store.read() as tx:
            of_target = [dataset for dataset in tx.datasets.all() if dataset.target == operation.target]
        return next((dataset for dataset in of_target if dataset_key(dataset) == key), None)

    # ---------------------------------------------------------------- the result

    def _conclude(self, operation: OperationRecord, result: Mapping[str, Any]) -> None:
        if operation.kind is not OperationKind.COMMIT:
            self._execute(operations.finish, operation.id, result)
            return
        assert operation.dataset is not None
        with self._store.read() as tx:
            version = tx.datasets.version(operation.dataset, result["version"])
        if version is None:
            self._execute(operations.fail, operation.id, "the dataset was deleted meanwhile")
        else:
            self._execute(operations.finish_commit, operation.id, version)

    def _died(self, operation: OperationRecord, code: int, errors: Path) -> None:
        """Log why. The operation starts again, unless it has been started too often."""
        text = errors.read_text(encoding="utf-8", errors="replace").strip()[-_LAST_CHARACTERS:]
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        log.warning("the process of operation %s %s: %s", operation.id, how, text)

    def _execute(
        self, use_case: Callable[Concatenate[Work, Params], Answer], *args: Params.args, **kwargs: Params.kwargs
    ) -> Answer:
        return self._controller.execute(use_case, *args, **kwargs).result(_ANSWER_SECONDS)


def commit_of(dataset: DatasetRecord, version: VersionRecord) -> Commit:
    """A version as the dataset library knows it: the id is computed from all these fields."""
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
    """`number` is assigned when the version is added."""
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


def _send(pipe: IO[str], message: Message) -> None:
    pipe.write(json.dumps(message) + "\n")
    pipe.flush()


def _shown_progress(progress: Mapping[str, Any]) -> dict[str, Any]:
    total = progress.get("bytes_total")
    return {
        "phase": progress.get("phase", "starting"),
        "fraction": progress["bytes_done"] / total if total else None,
        "done_files": progress.get("files_done", 0),
        "done_bytes": progress.get("bytes_done", 0),
        "total_files": progress.get("files_total"),
        "total_bytes": total,
    }
