"""The guarantees of a transaction: all or nothing, one winner, one server, a steady view, and no loss by a crash."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from corral.control.ports import Store, StoreConflict, StoreSuperseded
from corral.control.records import EventRecord
from corral.stores import ReadOnlyTransaction, StoreClosed, StoreUnreachable
from corral.stores.database import postgres
from tests.contract.store_samples import a_record, added
from tests.servers.postgres import PostgresServer
from tests.servers.stores import StorePlace

pytest_plugins = ("tests.servers.fixtures",)

ROOT = Path(__file__).parents[3]


class Oops(Exception):
    pass


def job_names(store: Store) -> set[str]:
    with store.read() as transaction:
        return {job.name for job in transaction.jobs.live()}


# ------------------------------------------------------------------------------------------------ all or nothing


def test_a_block_that_raises_leaves_nothing(store: Store) -> None:
    def half_done() -> None:
        with store.write() as transaction:
            assert transaction.jobs.next_ids(1) == ["j-1"]
            transaction.jobs.add([a_record("j-1")])
            transaction.events.append([EventRecord(at=1.0, actor="a", action="b", subject="c")])
            transaction.meta.put("key", "value")
            raise Oops

    with pytest.raises(Oops):
        half_done()
    with store.write() as transaction:
        assert transaction.jobs.live() == []
        assert transaction.events.last_id() == 0
        assert transaction.meta.get("key") is None
        assert transaction.jobs.next_ids(1) == ["j-1"]


def test_a_failed_statement_that_is_swallowed_leaves_nothing(store: Store) -> None:
    added(store, {"name": "first"})

    def careless() -> None:
        with store.write() as transaction:
            try:
                transaction.jobs.add([a_record("j-2", name="second"), a_record("j-1", name="same id")])
            except StoreConflict:
                return

    with pytest.raises(StoreConflict):
        careless()
    assert job_names(store) == {"first"}


def test_writing_through_a_read_transaction_is_an_error(store: Store) -> None:
    with pytest.raises(ReadOnlyTransaction), store.read() as transaction:
        transaction.meta.put("key", "value")
    with pytest.raises(ReadOnlyTransaction), store.read() as transaction:
        transaction.jobs.next_ids(1)
    with store.write() as transaction:
        assert transaction.meta.get("key") is None


def test_a_second_write_inside_the_first_is_refused_at_once(store: Store) -> None:
    with store.write() as transaction:
        with pytest.raises(RuntimeError, match="open in this thread"), store.write():
            pass
        transaction.meta.put("key", "value")
    with store.read() as transaction:
        assert transaction.meta.get("key") == "value"


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(StoreClosed), store.write():
        pass
    with pytest.raises(StoreClosed), store.read():
        pass
    store.close()


# ------------------------------------------------------------------------------------------------ one winner


def test_exactly_one_of_two_writers_with_the_same_version_wins(store_place: StorePlace) -> None:
    stores = [store_place.open(), store_place.open()]
    (record,) = added(stores[0], {})
    rounds = 25
    both_ready = threading.Barrier(2)

    def race(number: int) -> int:
        store, wins = stores[number], 0
        for _ in range(rounds):
            with store.read() as transaction:
                seen = transaction.jobs.get(record.job.id)
            assert seen is not None
            both_ready.wait(timeout=20)
            try:
                with store.write() as transaction:
                    transaction.jobs.save([replace(seen.job, priority=number, version=seen.job.version + 1)])
                wins += 1
            except StoreConflict:
                pass
            both_ready.wait(timeout=20)
        return wins

    with ThreadPoolExecutor(2) as pool:
        wins = sum(pool.map(race, range(2)))
    with stores[0].read() as transaction:
        final = transaction.jobs.get(record.job.id)
    assert final is not None
    assert (wins, final.job.version) == (rounds, rounds)


def test_threads_of_one_store_take_turns(store: Store) -> None:
    def take(_: int) -> list[str]:
        with store.write() as transaction:
            ids = transaction.jobs.next_ids(5)
            transaction.jobs.add([a_record(job_id) for job_id in ids])
            return ids

    with ThreadPoolExecutor(8) as pool:
        taken = [job_id for ids in pool.map(take, range(20)) for job_id in ids]
    assert sorted(taken, key=lambda job_id: int(job_id[2:])) == [f"j-{number}" for number in range(1, 101)]
    assert len(job_names(store)) == 100


def test_a_follower_of_the_events_misses_none(store_place: StorePlace) -> None:
    writers = [store_place.open(), store_place.open()]
    reader = store_place.open()
    rounds, each = 30, 3
    done = threading.Event()

    def append(number: int) -> None:
        for _ in range(rounds):
            with writers[number].write() as transaction:
                transaction.events.append([EventRecord(at=1.0, actor=str(number), action="a", subject="s")] * each)

    def follow() -> list[int]:
        seen: list[int] = []
        while True:
            finished = done.is_set()
            with reader.read() as transaction:
                news = transaction.events.after(seen[-1] if seen else 0, 1000)
            seen += [event.id for event in news]
            if finished and not news:
                return seen

    with ThreadPoolExecutor(3) as pool:
        followed = pool.submit(follow)
        for future in [pool.submit(append, number) for number in range(2)]:
            future.result()
        done.set()
    assert followed.result() == list(range(1, 2 * rounds * each + 1))


# ------------------------------------------------------------------------------------------------ one server


def test_a_takeover_fences_the_other_servers(store_place: StorePlace) -> None:
    old, new, tool = store_place.open(), store_place.open(), store_place.open()
    old.take_over()
    added(old, {"name": "by old"})
    new.take_over()
    with pytest.raises(StoreSuperseded, match="must stop"), old.write() as transaction:
        transaction.jobs.add([a_record("j-50", name="too late")])
    added(new, {"name": "by new"})
    added(tool, {"name": "by tool"})
    assert job_names(old) == {"by old", "by new", "by tool"}
    old.take_over()
    added(old, {"name": "again"})
    with pytest.raises(StoreSuperseded), new.write():
        pass


def test_a_server_that_froze_inside_a_transaction_keeps_no_other_server_out(
    on_postgres: StorePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert postgres.IDLE_IN_TRANSACTION_SECONDS < postgres.LOCK_TIMEOUT_SECONDS
    monkeypatch.setattr(postgres, "IDLE_IN_TRANSACTION_SECONDS", 1)
    frozen, new = on_postgres.open(), on_postgres.open()
    frozen.take_over()

    def frozen_work() -> None:
        with frozen.write() as transaction:
            transaction.jobs.add([a_record("j-50", name="too late")])
            new.take_over()

    with pytest.raises(StoreUnreachable):
        frozen_work()
    assert job_names(new) == set()


# ------------------------------------------------------------------------------------------------ a steady view


def test_a_reader_sees_one_moment_beside_a_writer(store_place: StorePlace) -> None:
    writer, reader = store_place.open(), store_place.open()
    added(writer, {"name": "before"})
    with reader.read() as view:
        assert view.jobs.counts() == {"created": 1}
        added(writer, {"name": "meanwhile"})
        with writer.write() as transaction:
            transaction.jobs.delete(["j-1"])
        assert [job.name for job in view.jobs.live()] == ["before"]
        assert view.jobs.get("j-2") is None
    assert job_names(reader) == {"meanwhile"}


def test_uncommitted_changes_are_not_seen(store: Store) -> None:
    with store.write() as transaction:
        transaction.jobs.add([a_record("j-1", name="pending")])
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(job_names, store).result(timeout=20) == set()
    assert job_names(store) == {"pending"}


# ------------------------------------------------------------------------------------------------ crashes


@pytest.mark.parametrize("moment", ["committed", "midway"])
def test_a_killed_server_keeps_what_it_committed_and_nothing_else(store_place: StorePlace, moment: str) -> None:
    store = store_place.open()
    command = [sys.executable, "-m", "tests.contract.store_crash", store_place.url, moment]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"now\n"
        server.kill()
    assert server.returncode == -9
    assert job_names(store) == ({"committed"} if moment == "committed" else set())
    # No transaction holds a lock any more, and the interrupted transaction took no id with it.
    with store.write() as transaction:
        assert transaction.jobs.next_ids(1) == ["j-2" if moment == "committed" else "j-1"]


@pytest.fixture
def on_postgres(postgres_server: PostgresServer, postgres_template: str) -> Iterator[StorePlace]:
    name = postgres_server.create_database(postgres_template)
    place = StorePlace(url=postgres_server.url(name))
    yield place
    place.close()
    postgres_server.drop_database(name)


def test_a_restarted_database_is_found_again(on_postgres: StorePlace, postgres_server: PostgresServer) -> None:
    store = on_postgres.open()
    added(store, {"name": "before"})
    postgres_server.restart()
    added(store, {"name": "after"})
    assert job_names(store) == {"before", "after"}


def test_a_lost_connection_loses_the_transaction_and_says_so(
    on_postgres: StorePlace, postgres_server: PostgresServer
) -> None:
    store = on_postgres.open()

    def interrupted() -> None:
        with store.write() as transaction:
            transaction.jobs.add([a_record("j-1")])
            with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'corral' AND state = 'idle in transaction'"
                )
            transaction.jobs.add([a_record("j-2")])

    with pytest.raises(StoreUnreachable):
        interrupted()
    assert job_names(store) == set()
    added(store, {"name": "again"})
    assert job_names(store) == {"again"}
