"""A route that refuses unknown query parameters, and characters that no name can contain.

FastAPI ignores unknown query parameters; a misspelt filter would then silently show everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response

from corral.server.http.preconditions import edited, refuse_unsupported, with_etag
from corral.server.http.problems import ProblemView, invalid
from corral.server.http.validation import MOST_ERRORS, Finding, unknown_name
from corral.server.system.idempotency import HEADER, run_once

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

PREFIX = "/api/v1"


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Handler:
        handler = super().get_route_handler()
        self.plain_handler = handler
        is_creating = creates(self.methods, self.status_code)
        known = frozenset(_query_names(self.dependant))

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_query(request, known)
            if any("\x00" in str(value) for value in request.path_params.values()):
                raise invalid([Finding(location=("path",), message="must not contain a NUL character")])
            if is_creating and (key := request.headers.get(HEADER)) is not None:
                return await run_once(request, key, self.operation_id or self.name, handler)
            return await self._answered(request, handler)

        return strict

    async def _answered(self, request: Request, handler: Handler) -> Response:
        """The answer; of objects that can be edited, with the ETag that an edit may name."""
        method = request.method
        if method not in ("GET", "PATCH"):
            return await handler(request)
        other = _sibling(request.app, self.path_format, "PATCH" if method == "GET" else "GET")
        if other is None:
            if method == "PATCH":
                refuse_unsupported(request)
            return await handler(request)
        if method == "GET":
            return with_etag(await handler(request), other.body_names)
        return await edited(request, self.body_names, other.plain_handler, handler)

    @property
    def body_names(self) -> frozenset[str]:
        """The names of the fields of the body."""
        return frozenset(getattr(self.dependant.body_params[0].field_info.annotation, "model_fields", ()))


def is_editable(routes: Iterable[object], path: str) -> bool:
    """Whether the object at this path can be read and edited, and so has an ETag."""
    found = {
        method
        for route in routes
        if isinstance(route, StrictRoute) and route.path_format == path
        for method in route.methods or ()
    }
    return {"GET", "PATCH"} <= found


def _sibling(app: FastAPI, path: str, method: str) -> StrictRoute | None:
    """The route of the same path with another method."""
    table: dict[tuple[str, str], StrictRoute] | None = getattr(app.state, "routes_by_path", None)
    if table is None:
        table = {
            (route.path_format, name): route
            for route in app.routes
            if isinstance(route, StrictRoute)
            for name in route.methods or ()
        }
        app.state.routes_by_path = table
    return table.get((path, method))


def creates(methods: Collection[str] | None, status: int | None) -> bool:
    """Whether requests of a route create something, and so may have a key."""
    return "POST" in (methods or ()) and status in (201, 202)


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
    429: "Too many attempts, or too many open connections",
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
        for name in sorted({name for name in request.query_params if name not in known})[:MOST_ERRORS]
    ]
    wrong += [
        Finding(location=(name,), message="must not contain a NUL character")
        for name, value in request.query_params.multi_items()
        if "\x00" in value
    ]
    if wrong:
        raise invalid(wrong)
