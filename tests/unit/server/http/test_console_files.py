"""The console's page and files: which address gets what, in which form, and that nothing else ever leaves."""

from __future__ import annotations

import asyncio
import gzip
import os
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from corral.server.http.console_files import ConsoleFiles, accepted_encodings, matches

INDEX = b'<!doctype html><script type="module" src="/assets/index-1a2b3c4d.js"></script>'
SCRIPT = b"export const words = 'fair, shared and seen';\n" * 50
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SECRET = b"no one may read this"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The files of a build, beside a file that browsers must not get."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / ".vite").mkdir()
    (folder / ".vite" / "manifest.json").write_bytes(b"{}")
    (folder / "index.html").write_bytes(INDEX)
    (folder / "index.html.gz").write_bytes(gzip.compress(INDEX, mtime=0))
    (folder / "favicon.svg").write_bytes(b"<svg/>")
    (folder / "assets" / "index-1a2b3c4d.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-1a2b3c4d.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (folder / "assets" / "index-1a2b3c4d.js.br").write_bytes(b"as if by brotli")
    (folder / "assets" / "inter-5e6f.woff2").write_bytes(b"a font")
    (folder / "assets" / "linked.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "assets" / "out").symlink_to(tmp_path)
    return folder


@cache
def _routes() -> FastAPI:
    # To put the whole API together takes longer than all these tests: who collects tests does not wait for it.
    from corral.server.http.app import bare_app

    return bare_app()


def app_with(folder: Path) -> FastAPI:
    app = _routes()
    app.state.console = ConsoleFiles(folder)
    return app


def ask(folder: Path, path: str, method: str = "GET", **options: Any) -> httpx.Response:
    async def go() -> httpx.Response:
        app = app_with(folder)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
            client.headers["Accept-Encoding"] = "identity"
            return await client.request(method, path, **options)

    return asyncio.run(go())


def ask_as_written(folder: Path, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Requests a path as a server sees it, which no client would send unchanged."""
    app = app_with(folder)
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/signin?next=/jobs/j-1",
        "/settings?tab=tokens",
        "/jobs/j-1",
        "/gpus/node-1/GPU-0/2",
        "/nodes/gpu01.example.org",
        "/workbenches",
        "/workbenches/j-1",
        "/apiary",
    ],
)
def test_every_address_of_a_page_gets_the_page(built: Path, path: str) -> None:
    answer = ask(built, path, headers=HTML)
    assert (answer.status_code, answer.content) == (200, INDEX)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert ask(built, path, "HEAD", headers=HTML).headers["content-length"] == str(len(INDEX))


def test_the_page_may_load_scripts_from_files_of_ours_only(built: Path) -> None:
    headers = ask(built, "/jobs", headers=HTML).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["script-src"] == "'self'"
    assert policy["default-src"] == "'self'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
    # What is not the console keeps a policy without inline styles.
    assert "unsafe" not in ask(built, "/api/v1/nothing").headers["content-security-policy"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api"),
        ("GET", "/api/"),
        ("GET", "/api/v1/nothing"),
        ("GET", "/api/v2/jobs"),
        ("POST", "/api/v1/nothing"),
        ("GET", "/assets/index-0000.js"),
        ("GET", "/assets/"),
        ("GET", "/assets"),
        ("GET", "/static/other.css"),
        ("GET", "/metrics/more"),
        ("POST", "/jobs"),
        ("DELETE", "/jobs/j-1"),
        ("POST", "/signin"),
    ],
)
def test_missing_file_is_not_found_and_never_a_page(built: Path, method: str, path: str) -> None:
    answer = ask(built, path, method, headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.headers["cache-control"] == "no-store"


def test_programs_that_mistake_an_address_get_a_404(built: Path) -> None:
    for accept in ("application/json", "*/*", "image/avif,image/webp,*/*"):
        assert ask(built, "/jobs", headers={"Accept": accept}).status_code == 404
    assert ask(built, "/", headers={"Accept": "*/*"}).status_code == 200


def test_the_addresses_of_programs_keep_their_answers(built: Path) -> None:
    assert ask(built, "/healthz", headers=HTML).json() == {"status": "ok"}
    assert ask(built, "/healthz", "HEAD", headers=HTML).status_code == 405
    assert ask(built, "/static/corral.css").headers["content-type"].startswith("text/css")
    to_jupyter = ask(built, "/workbenches/j-1/jupyter", headers=HTML)
    assert (to_jupyter.status_code, to_jupyter.headers["location"]) == (307, "/workbenches/j-1/jupyter/")


@pytest.mark.parametrize(
    ("asked", "encoding", "sent"),
    [
        ("gzip, deflate, br, zstd", "br", b"as if by brotli"),
        # Without a time in it: it is part of the name of the test, which all processes of a run must agree on.
        ("gzip, deflate", "gzip", gzip.compress(SCRIPT, mtime=0)),
        ("br;q=0, gzip;q=0.5", "gzip", gzip.compress(SCRIPT, mtime=0)),
        ("identity", None, SCRIPT),
        ("zstd", None, SCRIPT),
        ("", None, SCRIPT),
    ],
)
def test_a_file_is_sent_as_the_browser_can_read_it(built: Path, asked: str, encoding: str | None, sent: bytes) -> None:
    headers = {"Accept-Encoding": asked}
    status, body = ask_as_written(built, "/assets/index-1a2b3c4d.js", headers)
    assert (status, len(body)) == (200, len(sent))
    answer = ask(built, "/assets/index-1a2b3c4d.js", "HEAD", headers=headers)
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"


def test_a_file_without_another_form_does_not_vary(built: Path) -> None:
    font = ask(built, "/assets/inter-5e6f.woff2", headers={"Accept-Encoding": "gzip"})
    assert (font.content, font.headers["content-type"]) == (b"a font", "font/woff2")
    assert "vary" not in font.headers
    assert "content-encoding" not in font.headers
    icon = ask(built, "/favicon.svg", headers={"Accept": "image/*"})
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/svg+xml")
    assert icon.headers["cache-control"] == "no-cache", "its name has no digest"


def test_cached_file_is_not_sent_again(built: Path) -> None:
    for path in ("/", "/jobs/j-1", "/assets/index-1a2b3c4d.js"):
        plain = ask(built, path, headers=HTML).headers["etag"]
        packed = ask(built, path, headers={**HTML, "Accept-Encoding": "gzip"}).headers["etag"]
        assert plain != packed, "two forms are two versions"
        for known in (plain, f"W/{plain}", f'"other", {plain}', "*"):
            again = ask(built, path, headers={**HTML, "If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", plain)
        assert ask(built, path, headers={**HTML, "If-None-Match": packed}).status_code == 200
    assert ask(built, "/jobs", headers=HTML).headers["etag"] == ask(built, "/", headers=HTML).headers["etag"]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/assets/../index.html",
        "/assets/./index-1a2b3c4d.js",
        "/assets//index-1a2b3c4d.js",
        "/assets/..\\..\\secret.txt",
        "/assets/linked.txt",
        "/assets/out/secret.txt",
        "/assets/out/console/index.html",
        "//etc/passwd",
        "/assets//etc/passwd",
        "/assets/\x00",
        "/.vite/manifest.json",
        "/assets/index-1a2b3c4d.js.gz",
    ],
)
def test_nothing_but_the_files_of_the_build_leaves(built: Path, path: str) -> None:
    status, body = ask_as_written(built, path, {"Accept": "*/*"})
    assert status == 404
    assert body.startswith(b"{")
    status, body = ask_as_written(built, path, HTML)
    assert (status, body) == (200, INDEX) or (status == 404 and path.startswith("/assets"))
    for sent in ("%2e%2e/secret.txt", "assets/%2e%2e%2f%2e%2e%2fsecret.txt", "assets/..%5c..%5csecret.txt"):
        assert ask(built, f"http://test/{sent}").status_code == 404
    assert ask(built, f"http://test/{built.parent}/secret.txt").status_code == 404


def test_an_index_that_is_a_link_is_none(built: Path) -> None:
    (built / "index.html").unlink()
    (built / "index.html").symlink_to(built.parent / "secret.txt")
    answer = ask(built, "/", headers=HTML)
    assert answer.status_code == 503
    assert SECRET not in answer.content


def test_without_a_build_the_page_says_what_to_run(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        answer = ask(folder, "/jobs", headers=HTML)
        assert (answer.status_code, answer.headers["cache-control"]) == (503, "no-store")
        assert "<pre>make console</pre>" in answer.text
        assert "<script" not in answer.text
        assert ask(folder, "/healthz").json() == {"status": "ok"}
        assert ask(folder, "/assets/index.js").status_code == 404


def test_a_new_build_is_served_without_a_restart(built: Path) -> None:
    console = ConsoleFiles(built)
    first = console.index()
    assert first is not None
    (built / "assets" / "index-9999.js").write_bytes(b"new")
    changed = INDEX.replace(b"1a2b3c4d", b"9999")
    os.unlink(built / "index.html")
    (built / "index.html").write_bytes(changed)
    assert console.get("assets/index-9999.js") is None, "until the page that names it is loaded"
    second = console.index()
    assert second is not None
    assert second.content == changed
    assert console.get("assets/index-9999.js") is not None
    os.unlink(built / "index.html")
    assert console.index() is None


def test_headers_are_read_as_they_are_meant() -> None:
    assert accepted_encodings("gzip;q=1.0, br ; q=0, deflate;q=x, zstd") == {"gzip", "zstd"}
    assert accepted_encodings("GZIP") == {"gzip"}
    assert matches('W/"a", "b"', '"b"')
    assert not matches("", '"b"')
    assert not matches('"bb"', '"b"')
