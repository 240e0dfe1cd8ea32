"""The routes of jobs and tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.errors import ClientError
from corral.client.http.streams import LogEnd, LogText, Patience, follow_log
from corral.client.http.transport import Transport, segment
from corral.client.jobs.sessions import JobSession, open_session

if TYPE_CHECKING:
    from corral.client.views import (
        AttemptView,
        ChangePreviewView,
        CheckpointView,
        CurvesView,
        JobArray,
        JobClone,
        JobCreate,
        JobEdit,
        JobView,
        LogMatchView,
        PlanView,
        TaskView,
        WhyView,
    )

LIVE_STATES = ("created", "queued", "starting", "running", "stopping")
HOLDING_STATES = ("starting", "running", "stopping")
ENDED_STATES = ("stopped", "completed", "failed")


class Jobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, body: JobCreate) -> JobView:
        """Create a job and put it in its queue."""
        return cast("JobView", self._transport.post("/jobs", dict(body)))

    def submit_batch(self, bodies: Sequence[JobCreate]) -> list[JobView]:
        """All of them or none."""
        answer = self._transport.post("/jobs:batch", {"jobs": [dict(body) for body in bodies]})
        return cast("list[JobView]", answer["items"])

    def submit_array(self, body: JobArray) -> list[JobView]:
        """One job for every index in `array`, all of them or none."""
        answer = self._transport.post("/jobs:array", dict(body))
        return cast("list[JobView]", answer["items"])

    def stop_array(self, array: str) -> list[JobView]:
        """Stop all jobs of one of the caller's arrays that have not ended."""
        return cast("list[JobView]", self._transport.post("/jobs:stop", {"array": array})["items"])

    def clone(self, job: str, changes: JobClone) -> JobView:
        """Submit a job of the caller again, with these changes."""
        return cast("JobView", self._transport.post(_path(job, "clone"), dict(changes)))

    def open_shell(
        self,
        job: str,
        command: Sequence[str] = (),
        *,
        rank: int = 0,
        has_terminal: bool = False,
        has_input: bool = True,
    ) -> JobSession:
        """Run a command in a running job, where its cluster can; without a command, the shell of its image."""
        return open_session(self._transport, job, command, rank=rank, has_terminal=has_terminal, has_input=has_input)

    def requeue(self, job: str) -> JobView:
        """Send a running job back to its queue."""
        return cast("JobView", self._transport.post(_path(job, "requeue")))

    def plan(self, body: JobCreate) -> PlanView:
        """Preview this submission; nothing is submitted."""
        return cast("PlanView", self._transport.post("/jobs:plan", dict(body)))

    def list(
        self,
        *,
        states: Sequence[str] = (),
        kinds: Sequence[str] = (),
        user: str | Sequence[str] | None = None,
        queue: str | None = None,
        name: str | None = None,
        text: str | None = None,
        since: str | None = None,
        until: str | None = None,
        array: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Iterator[JobView]:
        """`text` is searched in id, name and user; `since` and `until` limit the time of creation."""
        params = {
            "state": list(states) or None,
            "kind": list(kinds) or None,
            "user": user or None,
            "queue": queue,
            "name": name,
            "q": text,
            "since": since,
            "until": until,
            "array": array,
            "sort": sort,
        }
        return self._transport.pages("/jobs", params, limit=limit)

    def get(self, job: str) -> JobView:
        """Get a job by id, or by the name of one of the caller's own jobs."""
        return cast("JobView", self._transport.get(_path(job)))

    def delete(self, job: str) -> None:
        """Remove an ended or never started job, with its attempts and logs."""
        self._transport.delete(_path(job))

    def edit(self, job: str, changes: JobEdit) -> JobView:
        """Change a job that does not run yet."""
        return cast("JobView", self._transport.patch(_path(job), dict(changes)))

    def start(self, job: str) -> JobView:
        """Queue a job that was created on hold."""
        return cast("JobView", self._transport.post(_path(job, "start")))

    def stop(self, job: str) -> JobView:
        """Stop a job: it gets SIGTERM, its grace time, then SIGKILL."""
        return cast("JobView", self._transport.post(_path(job, "stop")))

    def extend(self, job: str) -> JobView:
        """Give more time to a job that was warned because it is idle."""
        return cast("JobView", self._transport.post(_path(job, "extend")))

    def resize(self, job: str, gpus: int) -> JobView:
        """Restart a running elastic job with this number of GPUs."""
        return cast("JobView", self._transport.post(_path(job, "resize"), {"gpus": gpus}))

    def plan_resize(self, job: str, gpus: int) -> ChangePreviewView:
        """Preview a resize; nothing is resized."""
        return cast("ChangePreviewView", self._transport.post(_path(job, "resize:plan"), {"gpus": gpus}))

    def migrate(self, job: str, to: str | None = None) -> JobView:
        """Restart a running job on this node, or on the best other node."""
        return cast("JobView", self._transport.post(_path(job, "migrate"), {"to": to}))

    def plan_migration(self, job: str, to: str | None = None) -> ChangePreviewView:
        """Preview a move; nothing is moved."""
        return cast("ChangePreviewView", self._transport.post(_path(job, "migrate:plan"), {"to": to}))

    def keep(self, job: str) -> JobView:
        """Keep the job beyond the retention time."""
        return cast("JobView", self._transport.post(_path(job, "keep")))

    def let_go(self, job: str) -> JobView:
        """Unpin the job: retention removes it like other ended jobs."""
        return cast("JobView", self._transport.post(_path(job, "let-go")))

    def pin(self, job: str) -> JobView:
        """Move the job to the front of its waiting line."""
        return cast("JobView", self._transport.post(_path(job, "pin")))

    def unpin(self, job: str) -> JobView:
        """Remove the pin: the job is ordered by the policy of its queue again."""
        return cast("JobView", self._transport.post(_path(job, "unpin")))

    def move(self, job: str, *, before: str | None = None, after: str | None = None) -> JobView:
        """Move a waiting job directly before or after another of the caller's jobs, given by its id."""
        body = {"before": before} if before is not None else {"after": after}
        return cast("JobView", self._transport.post(_path(job, "move"), body))

    def why(self, job: str, *, at: str | None = None) -> WhyView:
        """Why the job waits, now or at a time in the past (RFC 3339)."""
        return cast("WhyView", self._transport.get(_path(job, "why"), {"at": at} if at else None))

    def attempts(self, job: str) -> Sequence[AttemptView]:
        """The attempts of a job: where each ran, how it ended, and what it used."""
        return cast("Sequence[AttemptView]", self._transport.get(_path(job, "attempts"))["items"])

    def checkpoints(self, job: str) -> Sequence[CheckpointView]:
        """The checkpoints that the job's program has saved, newest first."""
        return cast("Sequence[CheckpointView]", self._transport.get(_path(job, "checkpoints"))["items"])

    def curves(self, job: str) -> CurvesView:
        """Numbers that the job's program reports per step, such as its loss."""
        return cast("CurvesView", self._transport.get(_path(job, "curves")))

    def request_checkpoint(self, job: str) -> JobView:
        """Ask the job's program to save a checkpoint now."""
        return cast("JobView", self._transport.post(_path(job, "checkpoint")))

    def log(self, job: str, *, attempt: int | None = None, rank: int = 0, tail: int | None = None) -> str:
        """The log of an attempt, as a text; with `tail` only its last lines."""
        return self._transport.get_text(_path(job, "logs"), {"attempt": attempt, "rank": rank, "tail": tail})

    def follow_log(
        self,
        job: str,
        *,
        attempt: int | None = None,
        rank: int = 0,
        tail: int | None = None,
        patience: Patience | None = None,
    ) -> Iterator[LogText | LogEnd]:
        """Yields the log as it is written, over restarts of the server, until the job has ended."""
        params = {"attempt": attempt, "rank": rank, "tail": tail, "follow": "true"}
        return follow_log(self._transport, _path(job, "logs"), params, patience=patience or Patience())

    def search_log(
        self,
        job: str,
        text: str,
        *,
        attempt: str | None = None,
        rank: str | None = None,
        regex: bool = False,
        ignore_case: bool = False,
        limit: int | None = None,
    ) -> Iterator[LogMatchView]:
        """Lines that contain the text, as they are found; `all` means every attempt or rank."""
        params = {"q": text, "attempt": attempt, "rank": rank, "regex": regex, "ignore_case": ignore_case}
        return self._transport.pages(_path(job, "logs/search"), params, limit=limit)

    def wait(
        self,
        job: str,
        *,
        patience: Patience | None = None,
        on_change: Callable[[JobView], None] = lambda view: None,
        first: JobView | None = None,
        seconds: float | None = None,
    ) -> JobView:
        """Wait until the job has ended, for so long at most, and return it. `on_change` is called with every new state
        that was seen. The job is polled every few seconds; restarts of the server are waited for. `first` is the job as
        the caller already knows it."""
        patience = patience or Patience()
        until = None if seconds is None else time.monotonic() + seconds
        seen = None if first is None else (first["state"], first["attempt"])
        if first is not None:
            patience.reached()
        while True:
            try:
                view = self.get(job)
            except ClientError as error:
                patience.lost(error)
                continue
            patience.answered()
            if (view["state"], view["attempt"]) != seen:
                seen = (view["state"], view["attempt"])
                patience.reached()
                on_change(view)
            if view["state"] in ENDED_STATES or (until is not None and time.monotonic() >= until):
                return view
            patience.pause()

    def wait_for_start(
        self, job: JobView, *, seconds: float | None = None, patience: Patience | None = None
    ) -> JobView:
        """Wait until the job runs or has ended, for so long at most, and return it."""
        patience = patience or Patience()
        patience.reached()
        until = None if seconds is None else time.monotonic() + seconds
        while job["state"] in ("queued", "starting") and (until is None or time.monotonic() < until):
            patience.pause()
            try:
                view = self.get(job["id"])
            except ClientError as error:
                patience.lost(error)
                continue
            patience.answered()
            if view["state"] != job["state"]:
                patience.reached()
            job = view
        return job


class Tasks:
    """GPUs that are allocated under a task's name; a program is started on them later."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[TaskView]:
        """The caller's unfinished tasks; for operators, those of all users."""
        return self._transport.pages("/tasks")

    def allocate(self, task: str, *, gpus: int | None = None, wait: bool = False) -> TaskView:
        """Allocate GPUs. With `wait`, a task without room under the limits is queued, not refused."""
        body: dict[str, Any] = {"task": task}
        if wait:
            body["wait"] = True
        if gpus is not None:
            body["gpus"] = gpus
        return cast("TaskView", self._transport.post("/tasks", body))

    def start_program(self, task: str, command: Sequence[str] | None = None, workdir: str | None = None) -> JobView:
        """Start the task's program; possible once."""
        body: dict[str, Any] = {"command": [*command]} if command else {}
        if workdir is not None:
            body["workdir"] = workdir
        return cast("JobView", self._transport.post(f"/tasks/{segment(task)}/program", body))

    def release(self, task: str) -> JobView:
        """End the task and free its GPUs."""
        return cast("JobView", self._transport.delete(f"/tasks/{segment(task)}"))


def exit_status(state: str, exit_code: int | None) -> int:
    """The exit status of a command that waited for a job: the job's exit code, if it has one."""
    if state == "completed":
        return 0
    if exit_code is None or exit_code == 0:
        return 1
    # a process killed by a signal may be reported as minus the signal's number; shells report 128 + number
    return 128 - exit_code if exit_code < 0 else min(exit_code, 255)


def _path(job: str, action: str | None = None) -> str:
    path = f"/jobs/{segment(job)}"
    return path if action is None else f"{path}/{action}"
