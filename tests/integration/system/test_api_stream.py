"""The event stream: nothing missed, nothing twice, nothing of other users."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import API, api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


@pytest.fixture
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as running:
        yield running


class Listener:
    """Follows the stream on a thread until it is closed or the server goes."""

    def __init__(self, server: CorralServer, user: str, after: int | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        #: what comes beside the events, as (name, data)
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.connected = threading.Event()
        self._closing = threading.Event()
        self._headers = {"Authorization": f"Bearer {server.token(user)}"}
        if after is not None:
            self._headers["Last-Event-ID"] = str(after)
        self._url = f"{server.url}{API}/stream"
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        assert self.connected.wait(20)

    def _follow(self) -> None:
        fields: dict[str, str] = {}
        try:
            with httpx.stream("GET", self._url, headers=self._headers, timeout=30) as answer:
                assert answer.status_code == 200
                for line in answer.iter_lines():
                    self.connected.set()
                    if self._closing.is_set():
                        return
                    if line:
                        name, _, value = line.partition(": ")
                        fields[name] = value
                        continue
                    if "data" in fields and "id" not in fields:
                        self.notes.append((fields["event"], json.loads(fields["data"])))
                    elif "data" in fields:
                        event = json.loads(fields["data"])
                        assert (str(event["id"]), event["action"]) == (fields["id"], fields["event"])
                        self.events.append(event)
                    fields = {}
        except httpx.TransportError:
            return

    def close(self) -> None:
        self._closing.set()

    def wait_end(self) -> bool:
        self._thread.join(20)
        return not self._thread.is_alive()

    @property
    def ids(self) -> list[int]:
        return [event["id"] for event in self.events]


def hold(http: httpx.Client, name: str) -> None:
    http.post("/jobs", json={"command": ["true"], "hold": True, "name": name}).raise_for_status()


def all_ids(http: httpx.Client) -> list[int]:
    return sorted(event["id"] for event in http.get("/events", params={"limit": 500}).json()["items"])


def test_after_breaks_and_a_restart_everything_came_once_and_in_order(server: CorralServer) -> None:
    with server.http() as http:
        first = Listener(server, "operator", after=0)
        for number in range(20):
            hold(http, f"job-a-{number}")
        wait_until(lambda: "j-20" in [event["subject"] for event in first.events], "the first listener hears all")
        first.close()
        for number in range(20):
            hold(http, f"job-b-{number}")
        second = Listener(server, "operator", after=first.ids[-1])
        wait_until(lambda: "j-40" in [event["subject"] for event in second.events], "the second listener catches up")

        assert server.stop() == 0
        assert second.wait_end()
        server.start()
        hold(http, "job-c-0")
        third = Listener(server, "operator", after=second.ids[-1])
        hold(http, "job-c-1")
        wait_until(lambda: "j-42" in [event["subject"] for event in third.events], "the third listener hears all")

        heard = first.ids + second.ids + third.ids
        assert heard == [event_id for event_id in all_ids(http) if event_id <= heard[-1]]


def test_a_stream_without_a_place_begins_now(server: CorralServer) -> None:
    with server.http() as http:
        hold(http, "before")
        listener = Listener(server, "operator")
        hold(http, "later")
        wait_until(lambda: bool(listener.events), "the news arrive")
        assert listener.events[0]["detail"] == {"name": "later"}


def test_scientists_hear_of_their_own_things_and_of_the_fleet_only(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann, server.http("bob") as bob:
        listener = Listener(server, "ann")
        hold(bob, "secret-of-bob")
        operator.patch("/users/bob", json={"role": "scientist"}).raise_for_status()
        node = operator.get("/nodes").json()["items"][0]["id"]
        operator.post(f"/nodes/{node}/cordon").raise_for_status()
        hold(ann, "mine-alone")
        wait_until(lambda: len(listener.events) >= 2, "both arrive")
        assert [event["action"] for event in listener.events] == ["node.cordoned", "job.submitted"]
        listed = ann.get("/events", params={"limit": 500}).json()["items"]
        assert "secret-of-bob" not in json.dumps(listed)
        nouns = {event["action"].partition(".")[0] for event in listed}
        # Everybody may know about queues: the default one took up the settings when the server began.
        assert nouns - {"queue"} == {"job", "node", "user", "token"}


def test_a_listener_who_is_disabled_is_cut_off(server: CorralServer) -> None:
    with server.http() as operator:
        listener = Listener(server, "bob")
        operator.patch("/users/bob", json={"disabled": True}).raise_for_status()
        hold(operator, "something")
        assert listener.wait_end()
        assert "job.submitted" not in [event["action"] for event in listener.events]


def test_many_listeners_get_every_event_and_delay_no_request(server: CorralServer) -> None:
    with server.http() as http:
        sleepers = [httpx.Client(timeout=30) for _ in range(5)]
        headers = {"Authorization": f"Bearer {server.token()}"}
        # They connect and never read: the server must not care.
        open_streams = [
            s.send(s.build_request("GET", f"{server.url}{API}/stream", headers=headers), stream=True) for s in sleepers
        ]
        listeners = [Listener(server, "operator", after=0) for _ in range(10)]
        body = {"jobs": [{"command": ["true"], "hold": True}] * 500}
        http.post("/jobs:batch", json=body).raise_for_status()
        last = all_ids(http)[-1]
        wait_until(lambda: all(last in listener.ids for listener in listeners), "everybody hears the last event")
        assert all(listener.ids == listeners[0].ids for listener in listeners)
        for stream, client in zip(open_streams, sleepers, strict=True):
            stream.close()
            client.close()


def test_the_stream_begins_with_the_server_and_announces_new_readings(server: CorralServer) -> None:
    with server.http() as http:
        listener = Listener(server, "ann")
        wait_until(lambda: len(listener.notes) >= 3, "two rounds of readings are announced")
        (first, server_note), *rest = listener.notes
        about = http.get("/about").json()
        assert first == "hello"
        assert server_note == {"version": about["version"], "started_at": about["started_at"]}
        assert {name for name, _ in rest} == {"readings"}
        times = [data["at"] for _, data in rest]
        assert times == sorted(set(times))
        # They are not stored: they are not in the event log.
        actions = {event["action"] for event in http.get("/events", params={"limit": 500}).json()["items"]}
        assert not actions & {"readings", "hello"}
