"""The traffic to and from a workbench's Jupyter: pure parts of the proxy, as data and as properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import HTTPConnection

from corral.server.workbenches.proxy import (
    confined_cookie,
    foreign_cookies,
    host_for,
    request_headers,
    response_headers,
    target_of,
)

BASE = "/workbenches/j-1/jupyter/"
TOKENS = st.text("abcdefghijklmnopqrstuvwxyz_-", min_size=1, max_size=12)


def names(headers: list[tuple[bytes, bytes]]) -> set[bytes]:
    return {name.lower() for name, _ in headers}


def test_a_request_loses_what_is_corrals_and_what_is_for_one_connection() -> None:
    sent = [
        (b"Host", b"corral.example"),
        (b"Authorization", b"Bearer secret"),
        (b"X-CSRF-Token", b"secret"),
        (b"Cookie", b"corral_session=secret; _xsrf=2|ab; corral_ticket=x"),
        (b"Connection", b"keep-alive, X-Odd"),
        (b"X-Odd", b"1"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Upgrade", b"h2c"),
        (b"X-Forwarded-For", b"10.0.0.1"),
        (b"X-XSRFToken", b"2|ab"),
        (b"Content-Type", b"application/json"),
    ]
    assert request_headers(sent, "corral.example") == [
        (b"host", b"corral.example"),
        (b"cookie", b"_xsrf=2|ab"),
        (b"X-XSRFToken", b"2|ab"),
        (b"Content-Type", b"application/json"),
    ]


def test_an_answer_loses_what_reaches_further_than_its_path() -> None:
    sent = [
        (b"Content-Type", b"text/html"),
        (b"Content-Security-Policy", b"frame-ancestors 'self'"),
        (b"Set-Cookie", b"_xsrf=1; Path=/workbenches/j-1/jupyter/; HttpOnly"),
        (b"Set-Cookie", b"corral_session=stolen; Path=/"),
        (b"Service-Worker-Allowed", b"/"),
        (b"Clear-Site-Data", b'"*"'),
        (b"Strict-Transport-Security", b"max-age=1"),
        (b"Connection", b"close"),
        (b"Server", b"TornadoServer"),
    ]
    assert response_headers(sent, BASE) == [
        (b"content-type", b"text/html"),
        (b"content-security-policy", b"frame-ancestors 'self'"),
        (b"set-cookie", b"_xsrf=1; Path=/workbenches/j-1/jupyter/; HttpOnly"),
    ]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("a=1", f"a=1; Path={BASE}"),
        ("a=1; path=/", f"a=1; Path={BASE}"),
        ("a=1; Path=/workbenches/", f"a=1; Path={BASE}"),
        ("a=1; Path=/workbenches/j-1/jupyter-not", f"a=1; Path={BASE}"),
        ("a=1; Path=/workbenches/j-1/jupyter/lab", "a=1; Path=/workbenches/j-1/jupyter/lab"),
        ("a=1; Domain=example.org; Secure; SameSite=None", f"a=1; Path={BASE}; Secure; SameSite=None"),
        ("CORRAL_session=1", None),
        ("__Host-a=1; Path=/; Secure", None),
    ],
)
def test_a_cookie_is_for_the_workbench_alone(sent: str, kept: str | None) -> None:
    assert confined_cookie(sent, BASE) == kept


@pytest.mark.parametrize(
    "planted",
    [
        "corral_session=x",
        "Corral_Session=x",
        "__Host-corral_session=x",
        "__Secure-corral_workbench=x",
        "__host-other=x",
        # Without a name browsers send the value alone, and that looks like a session.
        "=corral_session=x",
        " = corral_session=x",
        "corral_session",
        "",
    ],
)
def test_no_cookie_of_corrals_is_planted(planted: str) -> None:
    assert confined_cookie(f"{planted}; Path=/", BASE) is None


@given(st.dictionaries(TOKENS, TOKENS, max_size=6), st.dictionaries(TOKENS, TOKENS, max_size=3))
def test_no_cookie_of_corrals_ever_passes(others: dict[str, str], own: dict[str, str]) -> None:
    parts = [f"{name}={value}" for name, value in others.items()] + [f"corral_{n}={v}" for n, v in own.items()]
    passed = foreign_cookies("; ".join(parts))
    assert "corral_" not in passed.replace("=corral_", "")
    for name, value in others.items():
        if not name.startswith("corral_"):
            assert f"{name}={value}" in passed


@given(st.lists(st.tuples(st.sampled_from([b"Connection", b"Te", b"Trailer", b"Keep-Alive", b"X-A"]), st.just(b"x-a"))))
def test_nothing_for_one_connection_passes(headers: list[tuple[bytes, bytes]]) -> None:
    passed = names(request_headers(headers, "h")) | names(response_headers(headers, BASE))
    assert not passed & {b"connection", b"te", b"trailer", b"keep-alive"}
    assert (b"x-a" in passed) <= all(name != b"Connection" for name, _ in headers)


def connection(path: bytes, query: bytes = b"", **headers: str) -> HTTPConnection:
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": path.decode(), "raw_path": path, "query_string": query, "headers": given}
    return HTTPConnection(scope)


def test_the_address_goes_on_exactly_as_it_was_asked_for() -> None:
    asked = connection(b"/workbenches/j-1/jupyter/files/a%2Fb%20c.txt", b"download=1&x=%2F")
    assert target_of(asked) == b"/workbenches/j-1/jupyter/files/a%2Fb%20c.txt?download=1&x=%2F"


def test_jupyter_hears_the_host_that_fits_the_origin() -> None:
    assert host_for(connection(b"/", host="inside:8470")) == "inside:8470"
    assert host_for(connection(b"/", host="inside:8470", origin="https://corral.example")) == "corral.example"
    assert host_for(connection(b"/")) == "localhost"
