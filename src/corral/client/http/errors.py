"""The errors of the client, with messages for users.

This module does not import the HTTP library, so that the command line can handle these errors before it loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """A request failed. `hint` says what the user can do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ServerUnreachable(ClientError):
    """No server answers at the address, or it stopped answering."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"cannot reach {server}: is the server running?",
            hint=f"Start it with `corral up`, or name another one with --server or CORRAL_SERVER. ({reason})",
        )
        self.server = server
        self.reason = reason


class UnexpectedAnswer(ClientError):
    """The answer did not come from a corral server."""

    def __init__(self, server: str, detail: str) -> None:
        super().__init__(
            f"{server} did not answer like a corral server: {detail}",
            hint="Check the address given by --server or CORRAL_SERVER.",
        )


class BadAddress(ClientError):
    """The address is not one of a server."""


class CredentialsUnreadable(ClientError):
    """The file with the stored tokens cannot be used."""


class ApiProblem(ClientError):
    """The server refused a request; the problem details (RFC 9457) say why."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        title = str(problem.get("title") or f"HTTP status {status}")
        detail = str(problem.get("detail") or "")
        super().__init__(detail or title, hint=hint_for(status, problem))
        self.status = status
        self.problem = dict(problem)
        self.title = title
        self.detail = detail

    @property
    def slug(self) -> str:
        """The last part of the problem's type, such as "insufficient-quota"."""
        return str(self.problem.get("type") or "").rstrip("/").rpartition("/")[2]

    @property
    def field_errors(self) -> list[tuple[str, str]]:
        """Field and message of every invalid field."""
        found = self.problem.get("errors")
        if not isinstance(found, list):
            return []
        return [(str(e.get("field", "")), str(e.get("message", ""))) for e in found if isinstance(e, Mapping)]


class NotSignedIn(ApiProblem):
    """The request has no valid token."""


class Forbidden(ApiProblem):
    """The user may not do this."""


class NotFound(ApiProblem):
    """The named object does not exist, or this user may not see it."""


#: Hints for problems whose HTTP status would give a wrong hint.
_HINTS = {
    "name-taken": "Choose another name, or delete the object that has this name.",
    "changed-meanwhile": "Read the object again, and repeat your change.",
    "wrong-password": "Try again; an operator can give you a new password with `corral user password`.",
}
_BY_STATUS: dict[int, type[ApiProblem]] = {401: NotSignedIn, 403: Forbidden, 404: NotFound}


def problem_of(status: int, problem: Mapping[str, Any]) -> ApiProblem:
    """The error for an answer with this status."""
    return _BY_STATUS.get(status, ApiProblem)(status, problem)


def hint_for(status: int, problem: Mapping[str, Any]) -> str:
    """A hint for the user. The server's hint takes precedence."""
    own = problem.get("hint")
    if isinstance(own, str) and own:
        return own
    slug = str(problem.get("type") or "").rpartition("/")[2]
    if slug in _HINTS:
        return _HINTS[slug]
    if status == 401:
        return "Sign in first: run `corral login`."
    if status == 403:
        return "`corral whoami` shows who you are signed in as; an operator may be able to help."
    if status == 429:
        return "Wait a moment before you try again."
    if status >= 500:
        return "The server's own log has the details."
    return ""
