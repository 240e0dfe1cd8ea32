"""The supervisor's part in preparing storage: starts the process that prepares it, sends it its orders, reports its
progress, and ends it on a stop. It is forked from the spawner, so this module uses the standard library only.

The orders hold secrets: they go through a pipe, never through a command line or a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corral.core.os_errors import placed_reason
from corral.engines.attempts.instance_messages import InstanceSpec, PreparerSpec
from corral.engines.attempts.job_places import remove_tree
from corral.engines.attempts.json_files import write_json
from corral.engines.attempts.processes import die_with_parent
from corral.engines.storage.job_mounts import (
    PRIVATE,
    StorageMissing,
    dataset_lines,
    enter_mounts,
    make_ready,
    mount_environment,
)
from corral.files import used_bytes

if TYPE_CHECKING:
    import subprocess

#: In the directory of an instance while it starts: a message for users about the progress of the preparation.
PROGRESS = "progress"
_READ_BYTES = 1 << 16
_PROGRESS_SECONDS = 1.0
_LOG_SECONDS = 10.0
_GIB = 1 << 30


class PrepareFailed(Exception):
    """Storage could not be prepared; the message says which and why."""


class PrepareStopped(Exception):
    """A stop came before the storage was ready."""


class InstanceStorage:
    """The storage of one instance, from its preparation to its end."""

    def __init__(self, spec: InstanceSpec) -> None:
        self._spec = spec
        self._storage = spec["storage"]
        self._reported_at = -_PROGRESS_SECONDS
        self._logged_at = time.monotonic()

    @property
    def _has_mounts(self) -> bool:
        return bool(self._storage) or self._spec["container"] is not None

    @property
    def takes_long(self) -> bool:
        return self._spec["preparer"] is not None

    def prepare(self, wake: int, wants_stop: Callable[[], bool], say: Callable[[str], None]) -> None:
        """Waits until all storage is ready. `wake` becomes readable when a signal came. Raises PrepareFailed or
        PrepareStopped."""
        if self._has_mounts:
            os.makedirs(os.path.join(self._spec["rank_dir"], PRIVATE), exist_ok=True)
        if not self._storage:
            return
        if self._spec["preparer"] is not None:
            self._follow(_start(self._spec["preparer"]), wake, wants_stop, say)
        try:
            make_ready(self._storage, self._spec["owner"], self._spec["top"])
        except StorageMissing as error:
            raise PrepareFailed(str(error)) from error
        except OSError as error:
            raise PrepareFailed(f"storage cannot be prepared: {placed_reason(error)}") from error

    def enter(self, say: Callable[[str], None]) -> dict[str, str]:
        """Called in the process that becomes the job: makes mounts and links; returns the variables. Raises OSError."""
        spec, job_dir = self._spec, self._spec["env"].get("CORRAL_JOB_DIR", "")
        return enter_mounts(self._storage, spec["owner"], job_dir, spec["rank_dir"], say)

    def seen_in_container(self, say: Callable[[str], None]) -> dict[str, str]:
        seen = {spec["path"]: spec["path"] for spec in self._storage}
        for line in dataset_lines(self._storage, seen):
            say(line)
        return mount_environment(self._storage, seen)

    def leave(self, say: Callable[[str], None]) -> None:
        """The attempt is over: remove its files on the node's own disk, and report in its log if they were larger than
        requested."""
        if self._has_mounts:
            remove_tree(os.path.join(self._spec["rank_dir"], PRIVATE))
        if not self._storage:
            return
        for spec in self._storage:
            if spec["kind"] == "local" and spec["size_bytes"] and os.path.isdir(spec["source"]):
                used = used_bytes(spec["source"])
                if used > spec["size_bytes"]:
                    asked = spec["size_bytes"] / _GIB
                    say(f"local storage {spec['path']} held {used / _GIB:.2f} GiB, and {asked:.2f} GiB were asked for")
        remove_tree(self._spec["scratch"])

    # -------------------------------------------------------------------------------------------- the process

    def _follow(
        self, process: subprocess.Popen[bytes], wake: int, wants_stop: Callable[[], bool], say: Callable[[str], None]
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it reports itself why it ended
            process.stdin.write(json.dumps(self._orders()).encode())
            process.stdin.close()
        report = process.stdout.fileno()
        os.set_blocking(report, False)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(report, select.POLLIN)
        failure, pending = "", b""
        while True:
            if wants_stop():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise PrepareStopped
            poll.poll()
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            try:
                data = os.read(report, _READ_BYTES)
            except BlockingIOError:
                continue
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                failure = self._take(_parsed(line), say) or failure
            if not data:
                break
        code = process.wait()
        if code != 0 or failure:
            raise PrepareFailed(failure or f"the process that prepares storage ended with code {code}")
        missing = [spec["name"] for spec in self._storage if not spec["source"]]
        if missing:
            raise PrepareFailed(f"not prepared: {', '.join(missing)}")

    def _orders(self) -> dict[str, Any]:
        spec = self._spec
        assert spec["preparer"] is not None
        about = {"attempt_id": spec["attempt_id"], "rank_dir": spec["rank_dir"], "scratch": spec["scratch"]}
        return {**about, "places": spec["preparer"]["places"], "storage": self._storage}

    def _take(self, report: dict[str, Any], say: Callable[[str], None]) -> str:
        """Process a line of the process; returns the failure that it reports, or ""."""
        if "say" in report:
            say(str(report["say"]))
        if "progress" in report:
            self._report_progress(str(report["progress"]), say)
        for index, source in report.get("sources", {}).items():
            self._storage[int(index)]["source"] = source
        return str(report.get("error", ""))

    def _report_progress(self, text: str, say: Callable[[str], None]) -> None:
        """Write the progress for users who look at the attempt, and into its log; not too often."""
        now = time.monotonic()
        if now - self._reported_at >= _PROGRESS_SECONDS:
            self._reported_at = now
            write_json(os.path.join(self._spec["rank_dir"], PROGRESS), {"message": text})
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            say(text)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        body = json.loads(line)
    except ValueError:
        return {"say": line.decode(errors="replace")}
    return body if isinstance(body, dict) else {}


def _start(spec: PreparerSpec) -> subprocess.Popen[bytes]:
    # Not loaded by the spawner: it loads `threading`, whose handler costs every fork a quarter of its time.
    import subprocess

    try:
        return subprocess.Popen(
            spec["command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,  # the spawner's log
            env=spec["env"],
            cwd="/",
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    except OSError as error:
        raise PrepareFailed(f"storage cannot be prepared: {spec['command'][0]}: {error.strerror}") from error
