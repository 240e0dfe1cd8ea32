"""A bad address is refused in words that help and never repeat a password."""

from __future__ import annotations

import socket
import sqlite3
import traceback
from pathlib import Path

import pytest
from sqlalchemy import event, make_url

from corral.stores import BadStoreUrl, StoreUnreachable, open_store
from corral.stores.database.postgres import open_postgres

SECRET = "hunter-2"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "not the URL of a database"),
        ("corral.db", "not the URL of a database"),
        (f"{SECRET}@nowhere", "not the URL of a database"),
        (f"postgresql://ada:{SECRET}@host:port/corral", "not the URL of a database"),
        (f"mysql://ada:{SECRET}@host/corral", "unknown kind of store 'mysql'; known: sqlite, postgresql"),
        (f"postgresql+asyncpg://ada:{SECRET}@host/corral", "unknown kind of store"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("sqlite:///corral.db?mode=ro", "a file and nothing else"),
    ],
)
def test_bad_urls(url: str, message: str) -> None:
    with pytest.raises(BadStoreUrl, match=message) as caught:
        open_store(url)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match=r"cannot open .*/missing/corral\.db: No such file or directory"):
        open_store(f"sqlite:///{tmp_path}/missing/corral.db")


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="Is a directory"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary " * 100)
    with pytest.raises(StoreUnreachable, match="file is not a database"):
        open_store(f"sqlite:///{path}")
    assert path.read_text() == "dear diary " * 100


def test_a_locked_file_is_reported_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.stores.database.sqlite.LOCK_TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "corral.db"
    store = open_store(f"sqlite:///{path}")
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnreachable, match="stays locked by another process"), store.write():
        pass
    other.close()
    with store.write() as transaction:
        transaction.meta.put("key", "value")
    store.close()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_an_unreachable_server_is_named_without_its_password(scheme: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(StoreUnreachable) as caught:
        open_store(f"{scheme}://ada:{SECRET}@127.0.0.1:{port}/corral?sslpassword={SECRET}")
    assert f"postgresql://ada:***@127.0.0.1:{port}/corral" in str(caught.value)
    assert "refused" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [f"postgresql:///corral?host=/run&user=ada&password={SECRET}", f"postgresql://ada:{SECRET}@/corral?host=/run"],
)
def test_a_password_is_used_and_never_shown(url: str) -> None:
    database = open_postgres(make_url(url))
    assert "host=/run" in database.place.replace("%2F", "/")
    assert SECRET not in database.place + repr(database)
    arguments: dict[str, object] = {}

    @event.listens_for(database.writer, "do_connect")
    def remember(_: object, __: object, ___: object, given: dict[str, object]) -> None:
        arguments.update(given)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        database.writer.connect()
    assert arguments["password"] == SECRET
