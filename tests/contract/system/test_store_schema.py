"""The schema on every database: what the migrations make is what the code expects."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from corral.core.model import Queue
from corral.stores import SchemaTooNew, open_store
from corral.stores.database.schema_upgrade import NEWEST
from corral.stores.schema.tables import metadata
from tests.servers.stores import StorePlace

pytest_plugins = ("tests.servers.fixtures",)


def driver_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def differs(context: MigrationContext, _: object, __: object, found: Any, wanted: Any) -> bool:
    """By the words of the definition, so that collations count too."""
    dialect = context.dialect
    return bool(found.compile(dialect=dialect) != wanted.compile(dialect=dialect))


def test_the_migrated_schema_is_the_one_of_the_tables(store_place: StorePlace) -> None:
    engine = create_engine(driver_url(store_place.url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": differs, "target_metadata": metadata})
        assert compare_metadata(context, metadata) == []
        # The comparison leaves out the condition of an index.
        for table, name, words in (
            ("jobs", "ix_jobs_not_ended", ("stopped", "completed", "failed")),
            ("cycles", "ix_cycles_base", ("is_base",)),
            ("users", "ix_users_provider_subject", ("provider", "local")),
            ("receipts", "ix_receipts_open", ("is_open",)),
        ):
            (index,) = [index for index in inspect(connection).get_indexes(table) if index["name"] == name]
            (condition,) = [value for key, value in index["dialect_options"].items() if key.endswith("_where")]
            assert all(word in str(condition) for word in words)
    engine.dispose()


def test_the_newest_revision_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", "corral.stores:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_an_empty_database_is_migrated_once_by_the_first_server(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(empty_database_url), range(4)))
    for store in stores:
        with store.read() as transaction:
            assert transaction.fleet.queues() == [Queue(name="default")]
        store.close()


def test_a_store_of_a_newer_corral_is_left_alone(store_place: StorePlace) -> None:
    store = store_place.open()
    with store.write() as transaction:
        transaction.meta.put("key", "value")
    engine = create_engine(driver_url(store_place.url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew, match=f"schema 9999, and this corral knows schemas up to {NEWEST}"):
        open_store(store_place.url)
    with store.read() as transaction:
        assert transaction.meta.get("key") == "value"
    engine.dispose()


def test_a_store_describes_itself(store_place: StorePlace) -> None:
    description = dict(store_place.open().describe())
    assert description["kind"] == store_place.url.partition(":")[0]
    assert description["version"][0].isdigit()
    assert description["schema"] == NEWEST
    assert description["place"].endswith("corral.db") or description["place"].startswith("postgresql://")


def test_only_the_owner_reads_a_sqlite_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'corral.db'}")
    with store.write() as transaction:
        transaction.meta.put("key", "value")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert modes == dict.fromkeys(("corral.db", "corral.db-wal", "corral.db-shm"), 0o600)
