"""Calls of Python functions as jobs."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from corral.client.functions.payload import RESULT, CallFailed, command_of, is_call, value_of
from corral.client.http.errors import Forbidden, NotFound
from corral.client.http.streams import LogText
from corral.client.jobs.jobs import ENDED_STATES

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import JobArray, JobCreate, JobView

T = TypeVar("T")
P = ParamSpec("P")

LAST_LINES = 20
POLL_SECONDS = (0.1, 2.0)


class Call(Generic[T]):
    """One call: a job, and its result when it has completed."""

    def __init__(self, client: Client, job: JobView) -> None:
        self._client = client
        #: The job as it was last seen.
        self.job = job

    @property
    def id(self) -> str:
        """The id of the job."""
        return self.job["id"]

    @property
    def state(self) -> str:
        """The state of the job, as it was last read."""
        return self.job["state"]

    def refresh(self) -> JobView:
        """Read the job again."""
        if self.state not in ENDED_STATES:
            self.job = self._client.jobs.get(self.id)
        return self.job

    def done(self) -> bool:
        """Whether the job has ended; reads it again."""
        return self.refresh()["state"] in ENDED_STATES

    def stop(self) -> None:
        """Stop the job."""
        self.job = self._client.jobs.stop(self.id)

    def logs(self) -> Iterator[str]:
        """Yields the output of the function until the job has ended."""
        for part in self._client.jobs.follow_log(self.id):
            if isinstance(part, LogText):
                yield part.text

    def wait(self, timeout: float | None = None) -> JobView:
        """Wait until the job has ended, for so many seconds at most (`TimeoutError`)."""
        if timeout is None:
            if self.state not in ENDED_STATES:
                self.job = self._client.jobs.wait(self.id)
            return self.job
        deadline = time.monotonic() + timeout
        delay, longest = POLL_SECONDS
        while not self.done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{self.id} has not ended within {timeout:g} seconds; it is {self.state}")
            time.sleep(min(delay, left))
            delay = min(delay * 2, longest)
        return self.job

    def result(self, timeout: float | None = None) -> T:
        """Returns the result of the function. An exception of the function is raised here, with its traceback as the
        cause.
        """
        self.wait(timeout)
        return cast("T", value_of(self._content()))

    def _content(self) -> bytes:
        me = self._client.people.me()["name"]
        if self.job["user"] != me:
            # Unpickling runs code that the job's owner chose.
            raise CallFailed(f"{self.id} is a job of {self.job['user']}: only results of your own jobs are loaded")
        with tempfile.TemporaryFile() as file:
            try:
                self._client.files.fetch(self.id, RESULT, file)
            except (NotFound, Forbidden) as error:
                raise CallFailed(f"{self.id} {self.state} without a result: {self._reason()}") from error
            file.seek(0)
            return file.read()

    def _reason(self) -> str:
        try:
            lines = self._client.jobs.log(self.id, tail=LAST_LINES).rstrip()
        except NotFound:
            lines = ""
        return "\n".join((str(self.job["end_reason"] or "no reason is known"), lines)).rstrip()

    def __repr__(self) -> str:
        return f"<Call {self.id} {self.state}>"


class Functions:
    """Calls functions in jobs of these settings, which are the fields of a submission: `gpus`, `time`, `queue`, …"""

    def __init__(self, client: Client, settings: JobCreate, python: str | None = None) -> None:
        self._client = client
        self._settings: dict[str, Any] = {**settings}
        in_other_environment = bool(self._settings.get("image") or self._settings.get("venv"))
        self._python = python or ("python3" if in_other_environment else sys.executable)
        if not in_other_environment:
            # Modules beside the caller's program are imported from there.
            self._settings.setdefault("workdir", os.getcwd())

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        """Call the function in a job."""
        command = command_of(function, [(args, kwargs)], python=self._python)
        body = self._body(function) | {"command": command}
        return Call(self._client, self._client.jobs.submit(cast("JobCreate", body)))

    def map(self, function: Callable[[Any], T], inputs: Iterable[Any]) -> list[Call[T]]:
        """Call the function with each input, in the jobs of one array; in the order of the inputs."""
        return self.starmap(function, ((call_input,) for call_input in inputs))

    def starmap(self, function: Callable[..., T], inputs: Iterable[Sequence[Any]]) -> list[Call[T]]:
        """Like `map`, with several arguments for each call."""
        calls = [(tuple(args), dict[str, Any]()) for args in inputs]
        if not calls:
            return []
        body = self._body(function) | {
            "command": command_of(function, calls, python=self._python),
            "array": f"0-{len(calls) - 1}",
        }
        body.setdefault("name", f"{_name_of(function)}-{secrets.token_hex(3)}")
        jobs = self._client.jobs.submit_array(cast("JobArray", body))
        return [Call(self._client, job) for job in jobs]

    def attach(self, job: str) -> Call[Any]:
        """The call of a job that was submitted earlier, by its id or name."""
        view = self._client.jobs.get(job)
        if not is_call(view["command"]):
            raise CallFailed(f"{view['id']} does not call a function")
        return Call(self._client, view)

    def _body(self, function: Callable[..., Any]) -> dict[str, Any]:
        return {"description": f"calls the Python function {_name_of(function)}", **self._settings}


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    cleaned = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name).strip("-").lower()
    return cleaned[:40].strip("-") or "function"
