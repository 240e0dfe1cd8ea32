"""Guessing passwords: an outsider cannot keep the operator out, and does not get to guess without end."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD

LOGIN = "/api/v1/auth/login"


def client_at(machine: SharedMachine, address: str) -> httpx.Client:
    """A client whose requests come from this address."""
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=machine.server.url, transport=transport, timeout=60)


@pytest.fixture
def attacker(machine: SharedMachine) -> Iterator[httpx.Client]:
    with client_at(machine, "127.0.0.66") as client:
        yield client


def guesses(client: httpx.Client, user: str, times: int) -> list[int]:
    body = {"user": user, "password": "a-wrong-guess"}
    return [client.post(LOGIN, json=body).status_code for _ in range(times)]


def test_wrong_passwords_from_elsewhere_do_not_lock_the_operator_out(
    machine: SharedMachine, attacker: httpx.Client
) -> None:
    statuses = guesses(attacker, "operator", 10)
    assert statuses[:5] == [401] * 5
    assert 429 in statuses[5:], "guessing goes on without a pause"
    body = {"user": "operator", "password": PASSWORD}
    for address in ("127.0.0.1", "127.0.0.67"):
        with client_at(machine, address) as operator:
            assert operator.post(LOGIN, json=body).status_code == 200


def test_the_pause_grows_with_every_failure(attacker: httpx.Client) -> None:
    body = {"user": "operator", "password": "a-wrong-guess"}
    guesses(attacker, "operator", 5)
    pauses: list[int] = []
    while len(pauses) < 2:
        answer = attacker.post(LOGIN, json=body)
        if answer.status_code == 429 and answer.json()["retry_after_seconds"] not in pauses:
            pauses.append(answer.json()["retry_after_seconds"])
    assert pauses == [1, 2]


def test_guessing_from_many_addresses_is_bounded_and_known_addresses_stay_open(machine: SharedMachine) -> None:
    statuses = []
    for number in range(2, 27):
        with client_at(machine, f"127.0.1.{number}") as client:
            statuses += guesses(client, "ann", 5)
    assert statuses.count(401) < 110, "each further address brings further guesses"
    assert statuses[-1] == 429
    right = {"user": "ann", "password": "password-of-ann"}
    with client_at(machine, "127.0.0.1") as ann:
        assert ann.post(LOGIN, json=right).status_code == 200, "she has signed in from there before"
    machine.server.stop()
    machine.start()
    with client_at(machine, "127.0.0.1") as ann:
        assert ann.post(LOGIN, json=right).status_code == 200


def test_where_a_user_signed_in_before_is_known_after_a_restart(machine: SharedMachine) -> None:
    machine.server.stop()
    machine.start()
    for number in range(2, 27):
        with client_at(machine, f"127.0.1.{number}") as client:
            guesses(client, "ann", 5)
    with client_at(machine, "127.0.0.1") as ann:
        body = {"user": "ann", "password": "password-of-ann"}
        assert ann.post(LOGIN, json=body).status_code == 200


def test_failed_sign_ins_are_in_the_audit_log_without_flooding_it(
    machine: SharedMachine, attacker: httpx.Client
) -> None:
    guesses(attacker, "ann", 5)
    guesses(attacker, "my-password-in-the-wrong-field", 5)
    with machine.server.http() as operator:

        def seen() -> list[tuple[str, str]]:
            found = operator.get("/events", params={"action": "user.sign-in-failed"}).json()["items"]
            return sorted((event["subject"], event["source"]) for event in found)

        # A request does not wait for its line.
        wait_until(lambda: len(seen()) >= 2, "the failures are in the audit log")
        assert seen() == [("ann", "127.0.0.66"), ("unknown", "127.0.0.66")]
    machine.server.stop()
    machine.start()
    with machine.server.http() as operator:
        found = operator.get("/events", params={"action": "user.sign-in-failed", "subject": "ann"}).json()["items"]
    assert found[0]["detail"] == {"times": 4}
    assert "wrong-field" not in machine.server.log()
