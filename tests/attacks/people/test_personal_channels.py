"""Personal channels as a way in: to ports of the server and to mailboxes of others."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.integration.api import dump
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.smtp import SmtpServer
from tests.servers.webhook import Webhook

pytestmark = pytest.mark.slow

CHANNELS = "/me/inbox/channels"


@dataclass(kw_only=True)
class Place:
    server: CorralServer
    mail: SmtpServer
    operator: Person

    def code(self) -> str:
        """The code in the newest mail."""
        return self.mail.bodies()[-1].split()[0]


#: Tests of channels that a user may ask for within an hour.
ASKED = 10
#: A spelling of 127.0.0.1 that operators of this server allow; no other spelling of it is.
ALLOWED = "127.1"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("channels")
    config = directory / "corral.yaml"
    with SmtpServer() as mail:
        server_url = mail.url.replace("&to=ops@example.org", "")
        config.write_text(
            "local: {virtual_gpus: 2xA10}\n"
            f"notification: {{personal_mail: '{server_url}', personal_hook_hosts: ['{ALLOWED}']}}\n"
        )
        with cli_server(directory, "--config", str(config)) as server:
            server.add_user("eve")
            yield Place(server=server, mail=mail, operator=operator_of(server))


@pytest.fixture
def http(place: Place) -> Iterator[httpx.Client]:
    with place.server.http("eve") as client:
        yield client
        for channel in client.get(CHANNELS).json()["items"]:
            client.delete(f"{CHANNELS}/{channel['name']}")


def created(http: httpx.Client, name: str, kind: str, address: str, **fields: Any) -> httpx.Response:
    return http.post(CHANNELS, json={"name": name, "kind": kind, "address": address, **fields})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "169.254.169.254", "2130706433"])
@pytest.mark.parametrize("kind", ["webhook", "slack", "discord", "teams"])
def test_no_port_of_the_server_is_reached(place: Place, http: httpx.Client, kind: str, host: str) -> None:
    with Webhook() as hook:
        port = hook.url.split(":")[2].split("/")[0]
        for scheme in ("https", "http"):
            answer = created(http, "inner", kind, f"{scheme}://{host}:{port}/hook/x")
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["field"] == "address"
        assert hook.requests == 0
    assert http.get(CHANNELS).json()["items"] == []


@pytest.mark.parametrize("address", ["json://127.0.0.1:1/", "mailto://eve:x@127.0.0.1?to=ann@example.org", "file:///"])
def test_urls_of_operators_channels_are_no_addresses(http: httpx.Client, address: str) -> None:
    assert created(http, "inner", "webhook", address).status_code == 422
    assert created(http, "inner", "mail", address).status_code == 422


def test_a_mailbox_of_another_person_gets_one_code_and_nothing_more(place: Place, http: httpx.Client) -> None:
    before = len(place.mail.subjects)
    made = created(http, "other", "mail", "victim@example.org").raise_for_status().json()
    assert (made["confirmed"], made["error"]) == (False, "")
    assert place.mail.subjects[before:] == ["[corral] Confirm your address"]
    assert http.post(f"{CHANNELS}/other/test").status_code == 409
    assert http.post(f"{CHANNELS}/other/confirm", json={"code": "00000000x"}).status_code == 422
    for _ in range(12):
        last = http.post(f"{CHANNELS}/other/code")
    assert last.status_code == 409
    assert len(place.mail.subjects) - before <= 10


def test_a_channel_works_from_its_code_to_its_first_item(place: Place) -> None:
    mail, dan = place.mail, scientist(place.server, place.operator, "dan")
    assert dan.read("inbox", "channels")["items"] == []
    dan.ok("inbox", "channels", "create", "phone", "--mail", "dan@example.org", "--send", "failed")
    assert "not confirmed" in dan.ok("inbox", "channels")
    dan.ok("inbox", "channels", "confirm", "phone", place.code())
    assert "accepted the test message" in dan.ok("inbox", "channels", "test", "phone")
    job = dan.submit("--name", "broken", "--", "sh", "-c", "exit 3")
    wait_until(lambda: mail.subjects[-1] == "[corral] broken has failed", "the failure is mailed")
    assert dan.state(job) == "failed"
    assert "broken has started" not in "".join(mail.bodies())
    with Webhook() as hook:
        port = hook.url.split(":")[2].split("/")[0]
        url = f"http://{ALLOWED}:{port}/hook/very-secret-path"
        dan.ok("inbox", "channels", "create", "hook", "--kind", "webhook", "--url-stdin", stdin=url)
        assert "accepted the test message" in dan.ok("inbox", "channels", "test", "hook")
        assert hook.titles == ["[corral] Test message"]
        shown = dan.ok("inbox", "channels") + place.operator.ok("events", "--limit", "200")
        assert "very-secret-path" not in shown + dump(place.server) + place.server.log()
    dan.ok("inbox", "channels", "rm", "hook", "--yes")
    dan.ok("inbox", "channels", "rm", "phone", "--yes")
    assert dan.read("inbox", "channels")["items"] == []


def test_no_other_user_waits_for_receivers_that_say_nothing(place: Place) -> None:
    """More tests of channels at once than asyncio has threads for all its work."""
    users = [f"slow{number}" for number in range(-(-min(32, (os.cpu_count() or 1) + 4) // ASKED))]
    for user in ("ann", *users):
        place.server.add_user(user)
    address = f"http://{ALLOWED}:{{}}/hook"
    with ThreadPoolExecutor(ASKED * len(users)) as threads, socket.create_server(("127.0.0.1", 0)) as silent:
        tests: list[Future[int]] = []
        for user in users:
            with place.server.http(user) as own:
                made = created(own, "slow", "webhook", address.format(silent.getsockname()[1]))
                assert made.status_code == 201, made.text
            tests += [threads.submit(status_of_test, place, user) for _ in range(ASKED)]
        # Some have begun.
        held = [silent.accept()[0] for _ in range(2)]
        for _ in range(3):
            with place.server.http("ann") as other:
                assert other.get("/me", timeout=60).is_success
        assert not [test for test in tests if test.done()], "the answer came behind that of a receiver"
        for connection in held:
            connection.close()
        silent.close()
        assert {test.result() for test in tests} == {200}


def status_of_test(place: Place, user: str) -> int:
    with place.server.http(user) as own:
        return own.post(f"{CHANNELS}/slow/test", timeout=120).status_code
