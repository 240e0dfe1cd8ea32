"""A store that is moved between SQLite and PostgreSQL: every table is equal, interruptions cost nothing, and only one
of the two stores can be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from corral.control.ports import StoreSuperseded
from corral.core.model import JobState
from corral.stores import StoreError, StoreRefused, open_store
from corral.stores.copying import store_move
from corral.stores.copying.store_move import CannotMove, StoreMove
from corral.stores.copying.table_rows import decode_rows, digest_of, encode_rows, tables_of
from corral.stores.database.opening import open_database
from tests.contract.store_samples import added, an_attempt, ids_of
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)

JOBS = 4000


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'corral.db'}"


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@contextmanager
def moving(source: str, target: str) -> Iterator[StoreMove]:
    work = StoreMove(source=open_database(source), target=open_database(target))
    try:
        yield work
    finally:
        work.source.dispose()
        work.target.dispose()


def fill(url: str, jobs: int = JOBS) -> None:
    store = open_store(url)
    store.take_over()
    names = [{"name": f"job-{number}", "state": JobState.COMPLETED, "message": "ünï"} for number in range(jobs)]
    records = added(store, *names)
    with store.write() as transaction:
        transaction.attempts.add([an_attempt(job_id, 1) for job_id in ids_of(records)])
        transaction.meta.put("secret", "kept")
    store.close()


def digests(url: str) -> dict[str, tuple[int, str]]:
    with closing(_Opened(url)) as opened, opened.database.reader.connect() as connection:
        found = {str(table.name): digest_of(connection, table) for table in tables_of(connection)}
    return {name: (digest.rows, digest.hex) for name, digest in found.items()}


class _Opened:
    def __init__(self, url: str) -> None:
        self.database = open_database(url)

    def close(self) -> None:
        self.database.dispose()


def test_values_survive_the_encoding() -> None:
    rows = [(1, "ä\x00\udc80", None, 0.1, True, b"\x00\xff"), (2**62, "", 1e300, -0.5, False, b"")]
    assert decode_rows(encode_rows(rows)) == rows


def test_a_store_goes_to_postgresql_and_back(sqlite_url: str, postgres_url: str) -> None:
    fill(sqlite_url)
    with moving(sqlite_url, postgres_url) as work:
        work.prepare()
        assert sum(table.changed for table in work.copy_while_running()) > 2 * JOBS
        moved = work.finish()
    assert {table.name: table.rows for table in moved}["jobs"] == JOBS
    assert [table.name for table in moved if table.changed] == ["counters"], "only the epoch is new"
    assert digests(postgres_url) == digests(sqlite_url)
    assert {name: rows for name, (rows, _) in digests(postgres_url).items()} == {one.name: one.rows for one in moved}
    with pytest.raises(StoreRefused, match=r"was moved to postgresql://"):
        open_store(sqlite_url)
    store = open_store(postgres_url)
    with store.read() as transaction:
        assert transaction.meta.get("secret") == "kept"
        assert len(transaction.attempts.of_job("j-7")) == 1
    (made,) = added(store, {"name": "after"})
    assert made.job.id == f"j-{JOBS + 1}", "numbers continue"
    store.close()
    with moving(postgres_url, sqlite_url) as work:
        work.prepare()
        changed = {table.name: table.changed for table in work.copy_while_running()}
        assert changed["jobs"] == 1, "the old store is brought up to date by what changed"
        back = work.finish()
    assert digests(sqlite_url) == digests(postgres_url)
    assert {one.name for one in back} == {*digests(sqlite_url)}
    open_store(sqlite_url).close()


def test_changes_between_two_copies_are_carried_over(sqlite_url: str, postgres_url: str) -> None:
    fill(sqlite_url, 50)
    with moving(sqlite_url, postgres_url) as work:
        work.prepare()
        work.copy_while_running()
        store = open_store(sqlite_url)
        with store.write() as transaction:
            transaction.jobs.delete(["j-3"])
        # Two jobs exchange their names, which are unique.
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as raw, raw:
            raw.execute("UPDATE jobs SET name = 'free' WHERE id = 1")
            raw.execute("UPDATE jobs SET name = 'job-0' WHERE id = 2")
            raw.execute("UPDATE jobs SET name = 'job-1' WHERE id = 1")
        added(store, {"name": "new"})
        store.close()
        moved = {table.name: table for table in work.finish()}
    assert moved["jobs"].rows == 50
    assert moved["attempts"].rows == 49
    assert digests(postgres_url) == digests(sqlite_url)


def test_a_server_that_still_writes_is_fenced(sqlite_url: str, postgres_url: str) -> None:
    fill(sqlite_url, 5)
    server = open_store(sqlite_url)
    server.take_over()
    with moving(sqlite_url, postgres_url) as work:
        work.prepare()
        work.finish()
    with pytest.raises(StoreSuperseded), server.write():
        pass
    server.close()


def test_an_interrupted_move_continues(sqlite_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(sqlite_url, 200)
    with moving(sqlite_url, postgres_url) as work:
        work.prepare()
        tables = 0

        def stop_in_the_middle(_: object) -> None:
            nonlocal tables
            tables += 1
            if tables == 20:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            work.copy_while_running(stop_in_the_middle)
    with pytest.raises(StoreRefused, match="unfinished copy: run `corral store move` again"):
        open_store(postgres_url)
    open_store(sqlite_url).close()
    # It dies again, between the commits of the two stores.
    with moving(sqlite_url, postgres_url) as work, monkeypatch.context() as patch:
        work.prepare()
        patch.setattr(store_move.StoreMove, "_open_target", _die)
        with pytest.raises(KeyboardInterrupt):
            work.finish()
    with pytest.raises(StoreRefused):
        open_store(sqlite_url)
    with moving(sqlite_url, postgres_url) as work:
        assert work.finish_interrupted()
        assert not work.finish_interrupted()
    open_store(postgres_url).close()


def _die(_: object) -> None:
    raise KeyboardInterrupt


def test_a_difference_is_found_and_nothing_is_moved(sqlite_url: str, postgres_url: str) -> None:
    fill(sqlite_url, 20)
    with moving(sqlite_url, postgres_url) as work:
        work.prepare()
        # A database that stores another value than it was given.
        with work.target.writer.connect() as connection, connection.begin():
            connection.exec_driver_sql(
                "CREATE FUNCTION damage() RETURNS trigger AS $$ BEGIN IF NEW.id = 7 THEN NEW.priority := 9; END IF; "
                "RETURN NEW; END $$ LANGUAGE plpgsql"
            )
            connection.exec_driver_sql(
                "CREATE TRIGGER damage BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION damage()"
            )
        for step in (work.copy_while_running, work.finish):
            with pytest.raises(StoreError, match="table jobs differs after the copy"):
                step()
    open_store(sqlite_url).close()


def test_another_store_is_never_overwritten(sqlite_url: str, postgres_url: str, tmp_path: Path) -> None:
    fill(sqlite_url, 1)
    fill(postgres_url, 1)
    before = digests(postgres_url)
    with moving(sqlite_url, postgres_url) as work, pytest.raises(CannotMove, match="holds another store"):
        work.prepare()
    with moving(sqlite_url, sqlite_url) as work, pytest.raises(CannotMove, match="the same store"):
        work.prepare()
    nothing = f"sqlite:///{tmp_path / 'nothing.db'}"
    with moving(nothing, postgres_url) as work, pytest.raises(CannotMove, match="holds no store"):
        work.prepare()
    assert digests(postgres_url) == before
