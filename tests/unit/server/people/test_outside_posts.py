"""Requests to URLs of users reach nothing inside, whatever the URL, the name or the receiver says."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from corral.control.ports import NoticeFailed, NoticeRefused
from corral.server.people.outside_posts import OutsidePosts, is_outside
from tests.servers.certificates import make_certificate

OUTSIDE = "93.184.215.14"


class Names:
    """A name service that counts what it was asked, and may change its mind."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


@contextmanager
def receiver(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A port of this machine that gives one answer to each connection; and what it got."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    got.append(whole_request(connection))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], got
        server.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=10)


def whole_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(
        next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1]
    )
    while len(body) < length:
        body += received(connection)
    return head + b"\r\n\r\n" + body


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    assert data, "the request ended early"
    return data


def refused(url: str, *addresses: str, inside: Sequence[str] = ()) -> str:
    names = Names(addresses or (OUTSIDE,))
    with pytest.raises(NoticeRefused) as caught:
        OutsidePosts(inside, look_up=names).check(url)
    return str(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "233.252.0.9",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "64:ff9b::a9fe:a9fe",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        # Forms of 127.0.0.1, a network of sites, and one of routers.
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "fec0::1",
        "5f00::1",
    ],
)
def test_addresses_inside_are_not_reached(place: str) -> None:
    assert not is_outside(ipaddress.ip_address(place))
    assert "or is inside of this network" in refused("https://chat.example.org/hook", place)
    assert "or is inside of this network" in refused("https://chat.example.org/hook", OUTSIDE, place)


@pytest.mark.parametrize("place", [OUTSIDE, "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::808:808"])
def test_addresses_outside_are_reached(place: str) -> None:
    assert is_outside(ipaddress.ip_address(place))
    OutsidePosts(look_up=Names([place])).check("https://chat.example.org/hook")


def test_the_own_public_address_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.server.people.outside_posts._is_own", lambda place: str(place) == OUTSIDE)
    assert "inside" in refused("https://chat.example.org/hook", OUTSIDE)


@pytest.mark.parametrize(
    "url",
    [
        "http://chat.example.org/hook",
        "file:///etc/passwd",
        "gopher://chat.example.org/",
        "https:///hook",
        "https://",
        "chat.example.org/hook",
        "https://ann:secret@chat.example.org/hook",
        "https://chat.example.org@127.0.0.1/hook",
        "https://chat.example.org:0/hook",
        "https://chat.example.org:99999/hook",
        "https://chat.example.org/hook\r\nX-Header: 1",
        "https://chat.example.org/a b",
        "https://chat.example.org\\@127.0.0.1/",
        "https://[::1/hook",
        "https://chat.exämple.org/hook",
    ],
)
def test_other_urls_are_refused_before_anything_is_looked_up(url: str) -> None:
    names = Names([OUTSIDE])
    with pytest.raises(NoticeRefused):
        OutsidePosts(look_up=names).check(url)
    assert names.asked == 0


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost", "[::1]", "0"])
def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    with pytest.raises(NoticeRefused):
        OutsidePosts().check(f"https://{host}/hook")


def test_a_refusal_says_nothing_about_names_inside() -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    with pytest.raises(NoticeRefused) as caught:
        OutsidePosts(look_up=unknown).check("https://chat.example.org/hook")
    assert str(caught.value) == refused("https://chat.example.org/hook", "10.0.0.1")


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """A name that means another address a moment later leads nowhere else."""
    with receiver(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (port, got):
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        posts = OutsidePosts(["127.0.0.0/8", "chat.example.org"], look_up=names)
        posts.post(f"http://chat.example.org:{port}/hook?key=1", {"text": "good news"})
    assert names.asked == 1
    head, _, body = got[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook?key=1 HTTP/1.1\r\n")
    assert f"host: chat.example.org:{port}".encode() in head.lower()
    assert json.loads(body) == {"text": "good news"}


def test_a_redirect_is_not_followed() -> None:
    with receiver(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (inner, reached):
        answer = f"HTTP/1.1 307 Go on\r\nLocation: http://127.0.0.1:{inner}/admin\r\nContent-Length: 0\r\n\r\n"
        with receiver(answer.encode()) as (port, got), pytest.raises(NoticeRefused, match="redirect"):
            OutsidePosts(["localhost"], look_up=Names(["127.0.0.1"])).post(f"http://localhost:{port}/", {})
    assert (len(got), reached) == (1, [])


def test_nothing_of_an_answer_but_its_status_is_passed_on() -> None:
    answer = b"HTTP/1.1 500 very secret reason\r\nContent-Length: 11\r\n\r\nvery secret"
    with receiver(answer) as (port, _), pytest.raises(NoticeFailed) as caught:
        OutsidePosts(["localhost"], look_up=Names(["127.0.0.1"])).post(f"http://localhost:{port}/", {})
    assert str(caught.value) == "localhost answers with status 500"


def test_an_answer_that_never_ends_is_cut_off() -> None:
    released = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                whole_request(connection)
                while not released.wait(0.02):
                    try:
                        connection.sendall(b"HTTP/1.1 200 OK\r\n"[:1])
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        posts = OutsidePosts(["localhost"], look_up=Names(["127.0.0.1"]), seconds=0.3)
        with pytest.raises(NoticeFailed, match="gives no answer"):
            posts.post(f"http://localhost:{server.getsockname()[1]}/", {})
        released.set()
    thread.join(timeout=10)


def test_operators_allow_hosts_and_networks_inside() -> None:
    for inside in ("chat.example.org", "*.example.org", "10.1.0.0/16", "10.1.2.3"):
        OutsidePosts([inside], look_up=Names(["10.1.2.3"])).check("https://chat.example.org/hook")
        assert "inside" in refused("https://chat.other.org/hook", "10.2.0.1", inside=[inside])
    # A name counts as a whole: an address inside may get any name.
    assert "inside" in refused("https://example.org.evil.com/", "10.1.2.3", inside=["*.example.org", "example.org"])


def test_a_certificate_that_is_not_trusted_gets_nothing(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*make_certificate(tmp_path))
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError), context.wrap_socket(connection, server_side=True) as inside:
                got.append(inside.recv(65536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        posts = OutsidePosts(["localhost"], look_up=Names(["127.0.0.1"]))
        with pytest.raises(NoticeFailed):
            posts.post(f"https://localhost:{server.getsockname()[1]}/", {"text": "secret"})
        thread.join(timeout=10)
    assert got in ([], [b""])
