"""Every error as an RFC 9457 problem: one form, a plain message, the numbers that explain it.

Decides how errors look. The use cases and the request models decide what is refused, and why. Internals of the server
are never revealed: unexpected errors are logged and answered with a bare 500.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from corral.control.errors import NotFound, Refusal
from corral.control.ports import (
    EngineUnavailable,
    HistoryUnavailable,
    NameTaken,
    OutcomeUnknown,
    StoreConflict,
    StoreSuperseded,
    StoreUnavailable,
)
from corral.server.http.validation import MOST_ERRORS, Finding, findings

log = logging.getLogger("corral.server")

MEDIA_TYPE = "application/problem+json"
#: Retry-After while the store is unavailable or the server stops.
RETRY_AFTER_SECONDS = 5

_SLUGS = {
    400: "bad-request",
    401: "not-signed-in",
    403: "not-allowed",
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
    429: "too-many-attempts",
    500: "internal-error",
    503: "unavailable",
}


class Problem(Exception):
    """An error answer of the server's own: sign-in, sizes, rates."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        slug: str | None = None,
        headers: Mapping[str, str] | None = None,
        numbers: Mapping[str, Any] | None = None,
        errors: Sequence[Finding] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug or _SLUGS.get(status, "error")
        self.title = title
        self.detail = detail
        self.headers = dict(headers or {})
        self.numbers = dict(numbers or {})
        self.errors = tuple(errors)

    def response(self) -> Response:
        body: dict[str, Any] = {
            **self.numbers,
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = [{"field": found.field, "message": found.message} for found in self.errors]
        # default=str: a problem must be sent even if one of its values is not JSON.
        content = json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
        return Response(content, status_code=self.status, media_type=MEDIA_TYPE, headers=self.headers)


class ProblemView(BaseModel):
    """RFC 9457 problem details. Further members are the numbers behind the refusal."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


def invalid(errors: Sequence[Finding]) -> Problem:
    """Fields that are not valid; the detail repeats the first ones."""
    first = "; ".join(f"{found.field}: {found.message}" for found in errors[:3])
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return Problem(422, "The request is not valid", first + more, slug="invalid-request", errors=errors)


def invalid_field(field: str, message: str) -> Problem:
    return invalid([Finding(location=(field,), message=message)])


def install_problem_handlers(app: FastAPI) -> None:
    """Installs the handlers that answer every known error as a problem."""
    app.add_exception_handler(Problem, _of_problem)
    app.add_exception_handler(Refusal, _of_refusal)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(NameTaken, _of_name_taken)
    app.add_exception_handler(StoreConflict, _of_conflict)
    app.add_exception_handler(StoreSuperseded, _of_superseded)
    app.add_exception_handler(StoreUnavailable, _of_store)
    app.add_exception_handler(EngineUnavailable, _of_engine)
    app.add_exception_handler(HistoryUnavailable, _of_history)


def unexpected() -> Response:
    """The answer for an unexpected error. The caller logs the error."""
    detail = "Something went wrong inside the server. It has been logged with the id in the X-Request-ID header."
    return Problem(500, "Internal error", detail).response()


@contextmanager
def showing_new() -> Iterator[None]:
    """Around the look at an object that was created a moment ago: another user may have deleted it since."""
    try:
        yield
    except NotFound as gone:
        detail = f"It was created, and deleted again by another user: {gone.detail}."
        raise Problem(409, "Deleted meanwhile", detail, slug="deleted-meanwhile") from None


async def _of_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


def refused(error: Refusal) -> Problem:
    named = [Finding(location=(error.field,), message=error.detail)] if error.field else []
    return Problem(
        error.status,
        error.title,
        error.detail,
        slug=error.slug,
        numbers=error.numbers,
        errors=named,
    )


async def _of_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refused(error).response()


async def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return invalid(_request_findings(request, error)).response()


def _request_findings(request: Request, error: RequestValidationError) -> list[Finding]:
    """The field without the prefixes "body" and "query"."""
    body_field = getattr(request.scope.get("route"), "body_field", None)
    annotation = body_field.field_info.annotation if body_field is not None else None
    model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    stripped = []
    for entry in error.errors()[:MOST_ERRORS]:
        place = tuple(entry["loc"][1:])
        if entry["type"] == "json_invalid":
            place = ()
        stripped.append({**entry, "loc": place or (str(entry["loc"][0]),)})
    return findings(stripped, model)


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = str(error.detail)
    if status is HTTPStatus.BAD_REQUEST:
        found = Finding(location=("body",), message="cannot be read as JSON")
        return Problem(400, "Bad request", "The body cannot be read as JSON.", errors=[found]).response()
    if status is HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {request.url.path}."
    elif status is HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.method} is not possible at {request.url.path}."
    return Problem(int(status), status.phrase, detail, headers=error.headers).response()


async def _of_name_taken(_: Request, error: Exception) -> Response:
    assert isinstance(error, NameTaken)
    found = Finding(location=("name",), message=str(error))
    return Problem(409, "Name taken", f"The {error}.", slug="name-taken", errors=[found]).response()


async def _of_conflict(_: Request, error: Exception) -> Response:
    return Problem(
        409, "Conflict", str(error) or "Another user changed it first: load it again.", slug="conflict"
    ).response()


async def _of_superseded(_: Request, error: Exception) -> Response:
    log.critical("another server has taken over the store")
    detail = "Another server has taken over this store; this one is stopping."
    return Problem(503, "Superseded", detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}).response()


async def _of_store(_: Request, error: Exception) -> Response:
    # The address and the error of the database are for operators only: they are in the log and in /readyz.
    log.debug("refused: %s", error)
    return store_unavailable(is_unknown=isinstance(error, OutcomeUnknown)).response()


def store_unavailable(*, is_unknown: bool = False) -> Problem:
    detail = "The store cannot be used now. Nothing was changed; try again in a moment."
    if is_unknown:
        detail = "The store went away while this was being saved. Look whether it was done before you try again."
    return Problem(
        503,
        "Store unavailable",
        detail,
        slug="store-unavailable",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def stopping() -> Problem:
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Problem(503, "Stopping", "The server is stopping; try again in a moment.", headers=headers)


async def _of_engine(_: Request, error: Exception) -> Response:
    return Problem(
        503,
        "Engine unavailable",
        str(error) or "The engine cannot be reached.",
        slug="engine-unavailable",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    ).response()


async def _of_history(_: Request, error: Exception) -> Response:
    return Problem(
        503,
        "History unavailable",
        str(error) or "The history of readings is unavailable now.",
        slug="history-unavailable",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    ).response()
