"""The few pages of the server itself: a style sheet, and the list of routes."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from corral.server.auth.callers import AnyCaller
from corral.server.http.description.api_description import describe, docs_page
from corral.server.http.strict_route import PREFIX, StrictRoute

router = APIRouter(route_class=StrictRoute, include_in_schema=False)

_PAGES = resources.files("corral.server.http.pages")
_STYLE = (_PAGES / "corral.css").read_text(encoding="utf-8")


@router.get("/static/corral.css")
async def style() -> Response:
    return Response(_STYLE, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


@router.get("/api/docs")
async def api_docs(request: Request, caller: AnyCaller) -> HTMLResponse:
    return HTMLResponse(docs_page(describe(request.app)))


@router.get(f"{PREFIX}/openapi.json")
async def openapi(request: Request, caller: AnyCaller) -> JSONResponse:
    return JSONResponse(describe(request.app))
