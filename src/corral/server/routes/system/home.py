"""The console: its page at every address that no other route answers, and the files that the page loads.

None of it needs a sign-in, and none of it contains data: the page reads its data from the API, as the user who is
signed in.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from corral.server.http.console_files import INDEX, ConsoleFile, ConsoleFiles, matches
from corral.server.http.pages.plain import not_built_page

#: Scripts come from the server's own files only. Inline styles are allowed: the component library uses them.
CONSOLE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
#: A name with a digest in it never changes its content.
_CACHE_UNCHANGED = "public, max-age=31536000, immutable"
_ALWAYS_REVALIDATE = "no-cache"
#: Addresses for programs: an unknown address below them is a 404, never the console's page.
_NOT_PAGES = re.compile(
    r"/(api|assets|static|healthz|readyz|metrics)(/.*)?|/workbenches/[^/]+/jupyter(/.*)?", re.DOTALL
)


class PageRoute(APIRoute):
    """Any address of a page. Answers GET and HEAD only: other methods at an unknown address give 404."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or _NOT_PAGES.fullmatch(scope["path"]):
            return Match.NONE, {}
        return super().matches(scope)


async def console_of(request: Request) -> ConsoleFiles:
    console = request.app.state.console
    assert isinstance(console, ConsoleFiles)
    return console


Console = Annotated[ConsoleFiles, Depends(console_of)]

router = APIRouter(include_in_schema=False)


@router.api_route("/assets/{name:path}", methods=["GET", "HEAD"])
async def asset(name: str, request: Request, console: Console) -> Response:
    found = console.get(f"assets/{name}")
    if found is None:
        raise HTTPException(404)
    return _sent(found, request, caching=_CACHE_UNCHANGED)


async def page(path: str, request: Request, console: Console) -> Response:
    """A file of the console if there is one of this name, otherwise its page, which routes by the address."""
    file = console.get(path) if path != INDEX else None
    if file is not None:
        return _sent(file, request, caching=_ALWAYS_REVALIDATE)
    if path and "text/html" not in request.headers.get("accept", ""):
        # The browser asks for a script or an image, not for a page.
        raise HTTPException(404)
    index = console.index()
    if index is None:
        return HTMLResponse(not_built_page(), status_code=503, headers={"Retry-After": "60"})
    answer = _sent(index, request, caching=_ALWAYS_REVALIDATE)
    answer.headers["Content-Security-Policy"] = CONSOLE_POLICY
    return answer


router.add_api_route("/{path:path}", page, methods=["GET", "HEAD"], route_class_override=PageRoute)


def _sent(file: ConsoleFile, request: Request, *, caching: str) -> Response:
    encoding, content = file.choose(request.headers.get("accept-encoding", ""))
    etag = file.etag(encoding)
    headers = {"ETag": etag, "Cache-Control": caching}
    if file.encoded:
        headers["Vary"] = "Accept-Encoding"
    if matches(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    return Response(content, media_type=file.media_type, headers=headers)
