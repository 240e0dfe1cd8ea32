"""One of several servers: what it announces, and that it stays announced."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from corral.control.ports import LeaseRecord, ServerRecord, ServerRegistry
from corral.control.standby.lease import LeaseTimes
from corral.server.settings.sections.high_availability import HighAvailabilitySettings
from corral.server.wiring.membership import Membership
from corral.server.wiring.standby import UnreachableAddress, check_addresses


def server(name: str, host: str, url: str) -> ServerRecord:
    return ServerRecord(
        name=name, url=url, host=host, pid=7, version="1", session=f"corral {name}", key="k", may_lead=True
    )


class ForgetfulRegistry(ServerRegistry):
    """Loses its rows once."""

    def __init__(self) -> None:
        self.rows: dict[str, ServerRecord] = {}
        self.announced: list[ServerRecord] = []
        self.is_announced_again = threading.Event()

    def announce(self, server: ServerRecord) -> None:
        self.rows[server.name] = server
        self.announced.append(server)
        if len(self.announced) == 1:
            self.rows.clear()
        else:
            self.is_announced_again.set()

    def seen(self, name: str, place: int) -> bool:
        return name in self.rows

    def leave(self, name: str, session: str) -> None:
        self.rows.pop(name, None)

    def all(self) -> list[ServerRecord]:
        return list(self.rows.values())

    def lease(self) -> LeaseRecord:
        return LeaseRecord(server="other", token="held", renewals=len(self.announced), has_session=True)

    def acquire(self, observed: LeaseRecord, server: ServerRecord, token: str) -> bool:
        return False

    def renew(self, token: str) -> bool:
        return False

    def release(self, token: str) -> None: ...

    def wait_for_commit(self, timeout_seconds: float) -> None: ...

    def close(self) -> None: ...


def test_a_server_whose_row_was_lost_is_announced_again() -> None:
    registry = ForgetfulRegistry()
    own = server("one", "gpu1", "http://gpu1:8470")
    membership = Membership(
        own,
        registry,
        times=LeaseTimes(lease_seconds=1.0),
        monotonic=lambda: 0.0,
        may_lead=lambda: False,
        place=lambda: 41,
        promote=lambda token: None,
    )
    membership.start()
    try:
        assert registry.is_announced_again.wait(20)
    finally:
        membership.stop()
    assert registry.announced[-1] == replace(own, place=41)


class FreeRegistry(ForgetfulRegistry):
    """A free lease: the leader that is in it does not renew any more, as one that is frozen."""

    def announce(self, server: ServerRecord) -> None:
        self.rows[server.name] = server

    def lease(self) -> LeaseRecord:
        return LeaseRecord(server="frozen", token="held", renewals=7, has_session=False)

    def acquire(self, observed: LeaseRecord, server: ServerRecord, token: str) -> bool:
        return True

    def renew(self, token: str) -> bool:
        return True


def test_a_server_that_becomes_the_leader_gives_up_what_waits_for_the_former_one() -> None:
    registry = FreeRegistry()
    registry.announce(server("frozen", "gpu2", "http://gpu2:8470"))
    promoted = threading.Event()
    own = server("one", "gpu1", "http://gpu1:8470")
    membership = Membership(
        own,
        registry,
        times=LeaseTimes(lease_seconds=0.1),
        monotonic=time.monotonic,
        may_lead=lambda: True,
        place=lambda: 0,
        promote=lambda token: promoted.set(),
    )
    membership.start()
    try:
        assert promoted.wait(20)
        assert membership.leader is not None
        assert (membership.leader.name, membership.leader.url) == ("one", "http://gpu1:8470")
    finally:
        membership.stop()


def test_a_server_with_a_certificate_is_reached_by_https() -> None:
    section = HighAvailabilitySettings()
    assert section.url_at("10.0.0.1", 8470, has_tls=True) == "https://10.0.0.1:8470"
    assert section.url_at("fd00::1", 8470, has_tls=False) == "http://[fd00::1]:8470"
    given = HighAvailabilitySettings(url="http://10.0.0.9:80")
    assert given.url_at("10.0.0.1", 8470, has_tls=True) == "http://10.0.0.9:80"


HERE, THERE = "http://127.0.0.1:8470", "http://10.0.0.2:8470"


@pytest.mark.parametrize(
    ("own", "other", "words"),
    [
        (server("one", "a", HERE), server("two", "a", "http://localhost:8471"), ""),
        (server("one", "a", "http://10.0.0.1:8470"), server("two", "b", THERE), ""),
        (server("one", "a", HERE), server("two", "b", THERE), "server one on a announces http://127.0.0.1:8470"),
        (server("one", "a", "http://10.0.0.1:8470"), server("two", "b", HERE), "server two on b announces"),
        # It has ended without a word, and says nothing about the present.
        (server("one", "a", "http://10.0.0.1:8470"), replace(server("two", "b", HERE), unseen_seconds=60.0), ""),
    ],
)
def test_a_loopback_address_is_refused_with_more_than_one_machine(
    own: ServerRecord, other: ServerRecord, words: str
) -> None:
    if not words:
        check_addresses(own, [other, own])
        return
    with pytest.raises(UnreachableAddress, match=r"high_availability\.url") as refused:
        check_addresses(own, [other])
    assert words in str(refused.value)
