"""How a job ended, for the commands that wait for an end: state, exit code, reason, and what its owner can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corral.cli.jobs.job_texts import end_text
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.http.streams import LogEnd
    from corral.client.views import AttemptView, JobView

#: The state in which a log ends whose job was deleted meanwhile.
DELETED = "deleted"


#: Endings of scripts, with their interpreters.
INTERPRETERS = {".py": "python3", ".sh": "bash"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """The end of the job, or of the attempt that was followed."""

    state: str
    exit_code: int | None
    end_reason: str | None = None
    message: str = ""
    lines: Sequence[str]

    @property
    def document(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "exit_code": self.exit_code,
            "end_reason": self.end_reason,
            "message": self.message,
        }


def hint_lines(job: JobView) -> list[str]:
    """Advice for the owner about an end; none for a job that completed."""
    from corral.core.jobs.end_texts import advice_for

    if job["state"] == "completed":
        return []
    program = (job.get("command") or [""])[0]
    if job["end_reason"] == "launch_error" and program.endswith(tuple(INTERPRETERS)):
        return [f"Hint: A script is started by its interpreter: `-- {INTERPRETERS[program[-3:]]} {program}`."]
    advice = advice_for(job["id"], job["end_reason"] or "", job["exit_code"])
    return [f"Hint: {advice}"] if advice else []


def ending_of_log(client: Client, job: str, attempt: int | None, end: LogEnd) -> Ending:
    """The end behind a log that was followed: the log itself gives no reason."""
    unread = f"-- {job} {end.state}{_code(end.exit_code)}"
    if end.state == DELETED:
        return Ending(state=end.state, exit_code=end.exit_code, lines=[unread])
    try:
        view = client.jobs.get(job)
        attempts = client.jobs.attempts(job) if attempt is not None else ()
    except ClientError as error:
        lines = [unread, f"-- the reason of the end could not be read: {error.message}"]
        return Ending(state=end.state, exit_code=end.exit_code, lines=lines)
    followed = next((candidate for candidate in attempts if candidate["number"] == attempt), None)
    if followed is not None and attempt != view["attempt"]:
        code = followed["exit_code"]
        lines = [f"-- attempt {followed['id']} ended{_code(code)}{_reason(followed)}", f"-- {job} is {view['state']}"]
        state, reason, message = "failed" if code else view["state"], followed["end_reason"], followed["message"]
    else:
        state, code, reason, message = view["state"], view["exit_code"], view["end_reason"], view["message"]
        lines = [f"-- {job} {state}{_code(code)}{_reason(view)}", *hint_lines(view)]
    return Ending(state=state, exit_code=code, end_reason=reason, message=message, lines=lines)


def _code(exit_code: int | None) -> str:
    return "" if exit_code is None else f", exit code {exit_code}"


def _reason(ended: JobView | AttemptView) -> str:
    """The text of the end without the exit code."""
    text = end_text(ended)
    code = f"exit code {ended['exit_code']}"
    rest = "; ".join(part for part in text.split("; ") if part != code)
    return f": {rest}" if rest else ""
