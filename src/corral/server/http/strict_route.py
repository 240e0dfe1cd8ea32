"""A route that refuses unknown query parameters, and characters that no name can contain.

FastAPI ignores unknown query parameters; a misspelt filter would then silently show everything.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response

from corral.server.http.problems import ProblemView, invalid
from corral.server.http.validation import Finding, unknown_name

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

PREFIX = "/api/v1"


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Handler:
        handler = super().get_route_handler()
        known = frozenset(_query_names(self.dependant))

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_query(request, known)
            if any("\x00" in str(value) for value in request.path_params.values()):
                raise invalid([Finding(location=("path",), message="must not contain a NUL character")])
            return await handler(request)

        return strict


def resource_router(path: str, tag: str) -> APIRouter:
    """A router for one resource under the API's prefix."""
    return APIRouter(prefix=PREFIX + path, tags=[tag], route_class=StrictRoute)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented error answers of a route; routes that need a sign-in can also answer 401 and 422."""
    media = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemView"}}}
    return {
        status: {"description": _DESCRIPTIONS[status], "content": media} for status in sorted({401, 422, *statuses})
    }


_DESCRIPTIONS = {
    400: "The body cannot be read",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict: wrong state, name taken, over a limit",
    412: "Changed meanwhile",
    413: "Body too large",
    415: "The body is not JSON",
    416: "There is no such range",
    422: "A field is not valid",
    429: "Too many attempts",
    502: "The provider cannot be reached",
    503: "Unavailable at this moment",
}

__all__ = ["PREFIX", "ProblemView", "StrictRoute", "problems", "resource_router"]


def _query_names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _check_query(request: Request, known: frozenset[str]) -> None:
    wrong = [
        Finding(location=(name,), message=unknown_name(name, known, what="query parameter"))
        for name in sorted({name for name in request.query_params if name not in known})
    ]
    wrong += [
        Finding(location=(name,), message="must not contain a NUL character")
        for name, value in request.query_params.multi_items()
        if "\x00" in value
    ]
    if wrong:
        raise invalid(wrong)
