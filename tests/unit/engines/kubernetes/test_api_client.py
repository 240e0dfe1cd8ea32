"""Requests and watches over HTTP: refusals, tokens that change, and watches that break."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import pytest

from corral.engines.kubernetes.api import watch as watch_module
from corral.engines.kubernetes.api.client import ApiClient, ApiConflict, ApiForbidden, ApiNotFound, ApiUnavailable
from corral.engines.kubernetes.api.credentials import NoToken
from corral.engines.kubernetes.api.kubeconfig import Access
from corral.engines.kubernetes.api.watch import Watch
from tests.servers.kubernetes.certificates import Authority
from tests.unit.engines.kubernetes.api_server import Answer, Asked, answer, api_server, events, refusal
from tests.unit.engines.kubernetes.objects import Json


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, ApiForbidden), (404, ApiNotFound), (409, ApiConflict), (401, ApiUnavailable), (429, ApiUnavailable),
     (503, ApiUnavailable)],
)  # fmt: skip
def test_refusals_have_kubernetes_words(status: int, error: type[Exception]) -> None:
    with api_server(lambda _: refusal(status, "pods is forbidden")) as server:
        client = ApiClient(server.access())
        with pytest.raises(error, match="pods is forbidden"):
            client.get("/api/v1/pods")
        client.close()


def test_an_api_server_that_is_away() -> None:
    with api_server(lambda _: answer({})) as server:
        access = server.access()
    with pytest.raises(ApiUnavailable):
        ApiClient(access).get("/version")


class ChangingToken:
    def __init__(self) -> None:
        self.number = 1

    def token(self) -> str:
        return f"token-{self.number}"

    def refuse(self, token: str) -> None:
        self.number += 1


def test_a_token_that_is_not_accepted_is_replaced_once() -> None:
    def respond(asked: Asked) -> Answer:
        return answer({"ok": True}) if asked.token == "token-2" else refusal(401, "Unauthorized")

    with api_server(respond) as server:
        assert ApiClient(server.access(ChangingToken())).get("/version") == {"ok": True}
        assert [asked.token for asked in server.asked] == ["token-1", "token-2"]


class Heard:
    """Implements `Listener`."""

    def __init__(self, until: int) -> None:
        self.calls: list[str] = []
        self._until = until
        self.is_complete = asyncio.Event()

    def replace(self, items: Sequence[Json]) -> None:
        self._note(f"all {' '.join(item['metadata']['name'] for item in items)}")

    def put(self, item: Json) -> None:
        self._note(f"put {item['metadata']['name']}")

    def remove(self, item: Json) -> None:
        self._note(f"gone {item['metadata']['name']}")

    def failed(self, error: Exception) -> None:
        self._note("failed")

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if len(self.calls) >= self._until:
            self.is_complete.set()


def item(name: str, version: str) -> Json:
    return {"metadata": {"name": name, "resourceVersion": version}}


def event(kind: str, name: str, version: str) -> Json:
    return {"type": kind, "object": item(name, version)}


def listing(version: str, *names: str, more: str = "") -> Answer:
    return answer(
        {"metadata": {"resourceVersion": version, "continue": more}, "items": [item(one, "1") for one in names]}
    )


def follow(answers: list[Answer], until: int) -> tuple[list[str], list[Asked]]:
    """The calls of a listener, and the requests, until so many calls were made."""
    left = iter(answers)
    return follow_all(lambda _: next(left, Answer(status=500)), until)


def follow_all(respond: Callable[[Asked], Answer], until: int) -> tuple[list[str], list[Asked]]:
    with api_server(respond) as server:

        async def run() -> list[str]:
            heard = Heard(until)
            async with httpx.AsyncClient(base_url=server.url) as client:
                task = asyncio.create_task(Watch(client, "/api/v1/pods", heard).run())
                await asyncio.wait_for(heard.is_complete.wait(), 20)
                task.cancel()
            return heard.calls

        return asyncio.run(run())[:until], server.asked


def test_a_list_in_pages_then_changes_from_its_version_on() -> None:
    calls, asked = follow(
        [
            listing("5", "a", more="page-2"),
            listing("6", "b"),
            events(event("ADDED", "c", "7"), event("BOOKMARK", "", "9"), event("DELETED", "a", "10")),
            events(event("MODIFIED", "b", "11")),
        ],
        until=4,
    )
    assert calls == ["all a b", "put c", "gone a", "put b"]
    assert asked[1].params["continue"] == "page-2"
    assert [one.params.get("resourceVersion") for one in asked[2:4]] == ["6", "10"]


def test_a_version_that_was_forgotten_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
    calls, _ = follow([listing("5", "a"), events(gone), listing("8", "b"), events(event("ADDED", "c", "9"))], until=3)
    assert calls == ["all a", "all b", "put c"]


def test_a_watch_that_breaks_is_reported_and_begun_again_with_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "FIRST_PAUSE_SECONDS", 0.01)
    calls, _ = follow(
        [listing("5"), events(event("ADDED", "a", "6"), breaks=True), Answer(status=503), listing("7", "a")], until=5
    )
    assert calls == ["all ", "put a", "failed", "failed", "all a"]


def test_a_list_that_is_forbidden_is_not_repeated() -> None:
    with api_server(lambda _: refusal(403, "pods is forbidden")) as server:

        async def run() -> None:
            async with httpx.AsyncClient(base_url=server.url) as client:
                await Watch(client, "/api/v1/pods", Heard(1)).run()

        with pytest.raises(ApiForbidden):
            asyncio.run(run())
        assert len(server.asked) == 1


def test_a_watch_that_shows_nothing_is_begun_again_where_it_was_without_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may hold a connection whose other end is gone: nothing says so."""
    monkeypatch.setattr(watch_module, "SILENT_SECONDS", 0.05)
    is_over = threading.Event()
    watches: list[Asked] = []

    def respond(asked: Asked) -> Answer:
        if "watch" not in asked.params:
            return listing("5", "a")
        watches.append(asked)
        if len(watches) == 1:
            return Answer(parts=_Silence(is_over))
        return events(event("ADDED", "b", "6"))

    try:
        calls, asked = follow_all(respond, until=2)
    finally:
        is_over.set()
    assert calls == ["all a", "put b"]
    assert [one.params["resourceVersion"] for one in watches[:2]] == ["5", "5"]
    assert sum("watch" not in one.params for one in asked) == 1


class _Silence(Sequence[bytes]):
    """Parts of an answer that do not come until the end of the test."""

    def __init__(self, is_over: threading.Event) -> None:
        self._is_over = is_over

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: object) -> bytes:  # type: ignore[override]
        self._is_over.wait(20)
        raise IndexError


def test_a_stream_that_is_dead_without_a_word_is_noticed_by_the_kernel() -> None:
    async def options(client: httpx.AsyncClient) -> tuple[int, int]:
        async with client, client.stream("GET", "/api/v1/pods") as response:
            used = response.extensions["network_stream"].get_extra_info("socket")
            return (
                used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                used.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            )

    with api_server(lambda _: answer({})) as server:
        api = ApiClient(server.access())
        is_kept_alive, idle_seconds = asyncio.run(options(api.streams()))
        api.close()
    assert is_kept_alive
    assert idle_seconds <= 30


def test_streams_expect_the_name_that_the_kubeconfig_gives_the_server(tmp_path: Path) -> None:
    """Checks the certificate like requests do: an API server that is reached through a tunnel has a certificate of
    another name.
    """
    authority = Authority()
    certificate, key = authority.issue("kube-apiserver", names="api.internal").write(tmp_path, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            while True:
                plain, _ = listener.accept()
                try:
                    with context.wrap_socket(plain, server_side=True) as connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
                except ssl.SSLError:
                    continue
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()
    access = Access(
        server=f"https://127.0.0.1:{listener.getsockname()[1]}",
        credential=NoToken(),
        ca=authority.certificate,
        server_name="api.internal",
    )
    api = ApiClient(access)

    async def read() -> int:
        async with api.streams() as client, client.stream("GET", "/api/v1/pods") as response:
            return response.status_code

    try:
        assert api.get("/version") == {}
        assert asyncio.run(read()) == 200
    finally:
        api.close()
        listener.close()
