"""Hundreds follow the events: each event is encoded once, all get it in order, and one that does not read is let go."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator

import pytest

from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

STREAMS = 200
JOBS = 30


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as running:
        yield running


def measured(server: CorralServer, name: str) -> int:
    with server.http() as http:
        text = http.get(f"{server.url}/metrics").raise_for_status().text
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert found is not None, name
    return int(float(found[1]))


def request(server: CorralServer, user: str, after: int | None = None) -> bytes:
    resume = f"Last-Event-ID: {after}\r\n" if after is not None else ""
    head = f"GET /api/v1/stream HTTP/1.1\r\nHost: corral\r\nAuthorization: Bearer {server.token(user)}\r\n{resume}\r\n"
    return head.encode()


async def followed(server: CorralServer, user: str, ready: asyncio.Semaphore, last: asyncio.Future[int]) -> list[int]:
    """The ids that one stream brings, up to the last one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(server, user))
    ids: list[int] = []
    try:
        while not (last.done() and ids and ids[-1] >= last.result()):
            line = await asyncio.wait_for(reader.readline(), 60)
            if b"event: hello" in line:
                ready.release()
            if line.startswith(b"id: "):
                ids.append(int(line[4:]))
    finally:
        writer.close()
    return ids


def submit(server: CorralServer, jobs: int) -> int:
    """The id of the last event about them."""
    with server.http("ann") as http:
        names = [
            http.post("/jobs", json={"command": ["true"], "hold": True}).raise_for_status().json()["id"]
            for _ in range(jobs)
        ]
        found = http.get("/events", params={"subject": names[-1]}).raise_for_status().json()["items"]
    return int(found[0]["id"])


def test_each_event_is_encoded_once_however_many_follow(server: CorralServer) -> None:
    users = ("operator", "ann")
    before = measured(server, "corral_events_encoded_total")

    async def story() -> list[list[int]]:
        ready, last = asyncio.Semaphore(0), asyncio.get_running_loop().create_future()
        streams = [asyncio.create_task(followed(server, users[number % 2], ready, last)) for number in range(STREAMS)]
        for _ in range(STREAMS):
            await asyncio.wait_for(ready.acquire(), 60)
        last.set_result(await asyncio.to_thread(submit, server, JOBS))
        return await asyncio.gather(*streams)

    heard = asyncio.run(story())
    encoded = measured(server, "corral_events_encoded_total") - before
    assert all(ids == sorted(set(ids)) for ids in heard), "in order, and once"
    of_jobs = heard[1]
    assert all(ids == of_jobs for ids in heard[1::2]), "the same for all of the same rights"
    assert len(of_jobs) >= JOBS
    # A stream may hear of what happened beside, such as a sign-in.
    assert encoded <= max(map(len, heard)) + 5, f"{encoded} encodings for {STREAMS} streams"
    wait_until(lambda: measured(server, "corral_event_streams") == 0, "the streams are gone")


def test_a_stream_that_is_not_read_delays_no_other_and_resumes_at_its_last_id(server: CorralServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(request(server, "ann"))
        # The head of the answer may come by itself.
        begun = b""
        while b"event: hello" not in begun:
            part = deaf.recv(65536)
            assert part, begun
            begun += part
        first = submit(server, 1)
        last = submit(server, JOBS)
    # It comes back with the last id that it has.
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as back:
        back.sendall(request(server, "ann", after=first))
        received = b""
        while f"id: {last}\n".encode() not in received:
            part = back.recv(65536)
            assert part, received[-300:]
            received += part
    ids = [int(found) for found in re.findall(rb"^id: (\d+)$", received, re.MULTILINE)]
    assert ids == sorted(set(ids))
    assert ids[0] > first
