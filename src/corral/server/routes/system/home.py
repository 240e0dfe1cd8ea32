"""The console for browsers: its page at every address that nothing else answers, and the files that the page loads.

All of it is open to everybody and holds no data: what the page shows it asks from the API, in the name of whoever is
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

#: Scripts come from files of ours only. Styles may be set in the page, which its component library does.
CONSOLE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
#: A name with a digest in it never changes its content.
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_EACH_TIME = "no-cache"
#: Addresses of programs. What is not there is missing there, and never a page.
_NOT_PAGES = re.compile(
    r"/(api|assets|static|healthz|readyz|metrics)(/.*)?|/workbenches/[^/]+/jupyter(/.*)?", re.DOTALL
)


class PageRoute(APIRoute):
    """Any address of a page. It only answers who looks: a change at an unknown address stays a 404."""

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
    return _sent(found, request, caching=_FOR_EVER)


async def page(path: str, request: Request, console: Console) -> Response:
    """A file of the console if there is one of this name, else its page, which knows what belongs at this address."""
    file = console.get(path) if path != INDEX else None
    if file is not None:
        return _sent(file, request, caching=_ASK_EACH_TIME)
    if path and "text/html" not in request.headers.get("accept", ""):
        # A program or a picture, not somebody who goes somewhere.
        raise HTTPException(404)
    index = console.index()
    if index is None:
        return HTMLResponse(not_built_page(), status_code=503, headers={"Retry-After": "60"})
    answer = _sent(index, request, caching=_ASK_EACH_TIME)
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
