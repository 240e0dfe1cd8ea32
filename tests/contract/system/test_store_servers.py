"""The servers over one PostgreSQL and the lease of the leader: one winner, and the former leader is fenced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

from corral.control.ports import LeaseRecord, ServerRecord, StoreSuperseded, StoreUnavailable
from corral.stores import StoreRefused, open_store
from corral.stores.database.store import SqlStore
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)


def server(name: str) -> ServerRecord:
    return ServerRecord(
        name=name,
        url=f"http://{name}:8470",
        host="host",
        pid=7,
        version="1",
        session=f"corral {name} 0001",
        key=f"key of {name}",
        may_lead=True,
    )


@pytest.fixture
def stores(postgres_server: PostgresServer, postgres_template: str) -> Iterator[dict[str, SqlStore]]:
    """The same database, as two servers have it."""
    name = postgres_server.create_database(postgres_template)
    with ExitStack() as parts:
        parts.callback(postgres_server.drop_database, name)
        opened = {one: open_store(postgres_server.url(name), session=server(one).session) for one in ("one", "two")}
        for store in opened.values():
            parts.callback(store.close)
        yield opened


def lead(store: SqlStore, name: str, observed: LeaseRecord | None = None) -> str:
    """Take the lease and the store over; the token."""
    registry, token = store.registry(), f"token of {name}"
    registry.announce(server(name))
    assert registry.acquire(observed or registry.lease(), server(name), token)
    registry.close()
    store.lead_with(token)
    store.take_over()
    return token


def test_a_file_has_no_servers(tmp_path: object) -> None:
    store = open_store(f"sqlite:///{tmp_path}/corral.db")
    with pytest.raises(StoreRefused, match="PostgreSQL"):
        store.registry()
    store.close()


def test_servers_announce_themselves_and_leave(stores: dict[str, SqlStore]) -> None:
    registry = stores["one"].registry()
    registry.announce(server("one"))
    registry.announce(server("two"))
    assert registry.seen("two", 41)
    assert not registry.seen("three", 41)
    one, two = registry.all()
    assert (one.name, one.url, one.key, one.may_lead, one.place) == ("one", "http://one:8470", "key of one", True, 0)
    assert two.place == 41
    assert 0 <= two.unseen_seconds < 60
    # A newer process has the name: the end of the older one does not remove it.
    registry.announce(replace(server("two"), session="corral two 0002"))
    registry.leave("two", server("two").session)
    registry.leave("one", server("one").session)
    assert [left.name for left in registry.all()] == ["two"]
    registry.close()


def test_one_of_many_servers_gets_a_free_lease(stores: dict[str, SqlStore]) -> None:
    registry = stores["one"].registry()
    registry.announce(server("one"))
    free = registry.lease()
    barrier = threading.Barrier(4)

    def take(number: int) -> bool:
        barrier.wait()
        return registry.acquire(free, server("one"), f"token {number}")

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(take, range(4))) == [False, False, False, True]
    assert registry.lease().changes == 1
    registry.close()


def test_a_renewed_lease_cannot_be_taken_and_a_released_one_can(stores: dict[str, SqlStore]) -> None:
    token = lead(stores["one"], "one")
    registry = stores["two"].registry()
    before = registry.lease()
    assert registry.renew(token)
    assert not registry.acquire(before, server("two"), "other")
    assert registry.lease().renewals == before.renewals + 1
    registry.release(token)
    released = registry.lease()
    assert (released.server, released.token) == ("", "")
    assert registry.acquire(released, server("two"), "other")
    assert not registry.renew(token)
    registry.close()


def test_the_session_of_the_leader_is_seen_until_it_is_gone(stores: dict[str, SqlStore]) -> None:
    registry = stores["one"].registry()
    registry.announce(server("one"))
    registry.acquire(registry.lease(), server("one"), "token")
    assert registry.renew("token")
    other = stores["two"].registry()
    assert other.lease().has_session
    registry.close()
    deadline = threading.Event()
    for _ in range(100):
        if not other.lease().has_session:
            break
        deadline.wait(0.05)
    assert not other.lease().has_session
    other.close()


def test_a_frozen_leader_is_fenced_although_its_transaction_holds_the_lock(stores: dict[str, SqlStore]) -> None:
    def freeze() -> None:
        with stores["one"].write() as tx:
            tx.meta.put("key", "of the former leader")
            # It holds the writers' lock: taking the lease ends its session, and does not wait for it.
            lead(stores["two"], "two")

    lead(stores["one"], "one")
    with pytest.raises(StoreUnavailable):
        freeze()
    with pytest.raises(StoreSuperseded), stores["one"].write() as tx:
        tx.meta.put("key", "again")
    with stores["two"].write() as tx:
        assert tx.meta.get("key") is None
        tx.meta.put("key", "of the new leader")


def test_a_lease_that_was_lost_again_takes_no_store_over(stores: dict[str, SqlStore]) -> None:
    registry = stores["one"].registry()
    registry.announce(server("one"))
    assert registry.acquire(registry.lease(), server("one"), "slow")
    stores["one"].lead_with("slow")
    lead(stores["two"], "two")
    with pytest.raises((StoreSuperseded, StoreUnavailable)):
        stores["one"].take_over()
    # Its sessions were ended; with a new one it is refused for good.
    with pytest.raises(StoreSuperseded):
        stores["one"].take_over()
    registry.close()


def test_each_commit_of_a_leader_wakes_those_who_wait(stores: dict[str, SqlStore]) -> None:
    lead(stores["one"], "one")
    registry = stores["two"].registry()
    registry.wait_for_commit(0.01)
    woken = threading.Event()

    def wait() -> None:
        registry.wait_for_commit(60)
        woken.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    with stores["one"].write() as tx:
        tx.meta.put("key", "value")
    assert woken.wait(30)
    waiting.join()
    registry.close()
