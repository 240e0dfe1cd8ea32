"""A store that was filled by the first corral is migrated, and no user loses anything."""

from __future__ import annotations

from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine

from corral.control.records import (
    CredentialKind,
    CredentialRecord,
    Function,
    GroupRecord,
    QuotaRecord,
    Role,
    ScorePoint,
    UsageRecord,
    UserRecord,
)
from corral.core.model import EndReason, JobKind, JobState, Queue
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.stores import open_store
from corral.stores.database.row_codec import encode_spec
from corral.stores.database.schema_upgrade import NEWEST
from corral.stores.schema.tables import metadata
from tests.contract.store_samples import SPEC

pytest_plugins = ("tests.servers.fixtures",)

ALLOCATION = '{"model":"","grants":[]}'
TWO_GPUS = '{"model":"A10","grants":[{"node":"n1","gpu_milli":1000,"gpus":["n1/0","n1/1"]}]}'
HALF_A_GPU = '{"model":"A10","grants":[{"node":"n1","gpu_milli":500,"gpus":["n1/0"]}]}'
JOB_BODY = '{"request":{"nodes":1},"grace_seconds":30.0,"max_retries":3}'

#: rows as the first schema had them
FIRST: dict[str, list[dict[str, Any]]] = {
    "users": [
        {"name": "ada", "role": "operator", "password_hash": "$x", "must_change_password": True, "disabled": False},
        {"name": "zoë", "role": "scientist", "password_hash": None, "must_change_password": False, "disabled": True},
    ],
    "quotas": [{"user_name": "ada", "kind": "training", "gpu_milli": 3000}],
    "credentials": [{"id": "t1", "kind": "token", "user_name": "ada", "name": "n", "secret_hash": "h", "csrf": ""}],
    "scores": [
        {"user_name": "ada", "model": "A10", "value": 1.5, "usage": 2.0, "at": 50.0},
        {"user_name": "gone", "model": "", "value": 0.1, "usage": 0.0, "at": 60.0},
    ],
    "nodes": [{"id": "n1", "cluster": "c", "state": "ready", "cpu_milli": 1, "memory_bytes": 2, "labels": "[]"}],
    "gpus": [
        {"id": "n1/0", "node_id": "n1", "gpu_index": 0, "model": "A10", "memory_bytes": 1, "health": "failed"}
        | {"pool": "vision"},
    ],
    "queues": [
        {"name": "night", "pool": "dark", "policy": "fcfs", "blocking": "strict", "placement": "spread", "weight": 2.0}
        | {"guaranteed_gpus": 1, "max_seconds": 60.5, "kinds": '["training"]'},
    ],
    "jobs": [
        {"id": 1, "name": "first", "user_name": "ada", "kind": "training", "state": "running", "queue": "night"}
        | {"priority": 5, "attempt": 1, "version": 3, "body": JOB_BODY}
        | {"spec": encode_spec(SPEC)},
        {"id": 2, "name": "second", "user_name": "gone", "kind": "training", "state": "failed", "queue": "lost"}
        | {"priority": 5, "attempt": 3, "version": 9, "body": JOB_BODY, "queued_at": 70.0}
        | {"spec": encode_spec(SPEC)},
    ],
    "attempts": [
        {"job_id": 1, "number": 1, "planned_at": 5.0, "allocation": ALLOCATION, "message": '""'},
        {"job_id": 2, "number": 1, "planned_at": 10.0, "started_at": 11.0, "ended_at": 20.0, "end_reason": "node_lost"}
        | {"allocation": TWO_GPUS, "message": '""'},
        {"job_id": 2, "number": 2, "planned_at": 30.0, "started_at": 31.0, "ended_at": 50.0, "end_reason": "exit_code"}
        | {"allocation": TWO_GPUS, "message": '""', "exit_code": 0},
        {"job_id": 2, "number": 3, "planned_at": 75.0, "ended_at": 80.0, "end_reason": "launch_error"}
        | {"allocation": HALF_A_GPU, "message": '""'},
    ],
    "events": [{"id": 1, "at": 1.0, "actor": "ada", "action": "a.b", "subject": "s", "owner": "", "detail": "{}"}],
    "meta": [{"key": "secret", "value": "kept"}],
}
MORE: dict[str, dict[str, Any]] = {
    "events": {"source": ""},
    "users": {"created_at": 1.0},
    "credentials": {"created_at": 2.0},
    "jobs": {"created_at": 3.0},
}


@pytest.fixture
def first_url(empty_database_url: str) -> str:
    """A database that the first corral made and filled."""
    engine = create_engine(empty_database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "corral.stores:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        tables = MetaData()
        tables.reflect(connection)
        for name, rows in FIRST.items():
            for row in rows:
                connection.execute(tables.tables[name].insert(), {**row, **MORE.get(name, {})})
        counters = tables.tables["counters"]
        connection.execute(counters.update().where(counters.c.name.in_(["job", "event"])), {"value": 2})
    engine.dispose()
    return empty_database_url


def test_a_filled_store_goes_on_as_before(first_url: str) -> None:
    store = open_store(first_url)
    assert store.describe()["schema"] == NEWEST
    with store.read() as transaction:
        assert transaction.people.users() == [
            UserRecord(
                name="ada",
                role=Role.OPERATOR,
                password_hash="$x",
                must_change_password=True,
                created_at=1.0,
                last_seen_at=2.0,
            ),
            UserRecord(name="zoë", disabled=True, created_at=1.0),
        ]
        assert transaction.people.quotas() == [
            QuotaRecord(user="ada", kind=JobKind.TRAINING, quota=Quota(gpu_milli=3000))
        ]
        assert transaction.credentials.by_hash("h") == CredentialRecord(
            id="t1",
            kind=CredentialKind.TOKEN,
            user="ada",
            name="n",
            secret_hash="h",
            created_at=2.0,
        )
        queues = transaction.fleet.queues()
        assert [(queue.name, queue.pool, queue.groups) for queue in queues] == [
            ("default", "default", ()),
            ("night", "dark", ("default",)),
        ]
        assert queues[0] == Queue(name="default")
        assert transaction.fleet.nodes()[0].gpus[0].pool == "vision"
        (job,) = transaction.jobs.live()
        assert (job.id, job.name, job.version) == ("j-1", "first", 3)
        assert len(transaction.attempts.of_job("j-1")) == 1
        assert transaction.events.last_id() == 1
        assert transaction.meta.get("secret") == "kept"
    with store.write() as transaction:
        assert transaction.jobs.next_ids(1) == ["j-3"]
    store.close()


def test_a_filled_store_gets_what_a_new_one_has(first_url: str) -> None:
    store = open_store(first_url)
    with store.read() as transaction:
        # Also the pools that only a GPU or a queue had named until now.
        assert [pool.name for pool in transaction.fleet.pools()] == ["dark", "default", "vision"]
        (group,) = transaction.people.groups()
        assert group == GroupRecord(name="default", pool="default", created_at=group.created_at)
        (everyone,) = transaction.people.permission_groups()
        assert set(Function) - set(everyone.functions) == {Function.SEE_OTHERS_JOBS}
        assert transaction.scores.all()["ada", "A10"] == Score(value=1.5, usage=2.0, at=50.0)
        assert transaction.scores.history("ada", "A10", 0.0) == [
            ScorePoint(user="ada", model="A10", at=50.0, value=1.5, usage=2.0)
        ]
    store.close()
    # Once and not again.
    reopened = open_store(first_url)
    with reopened.read() as transaction:
        assert [stored.name for stored in transaction.people.groups()] == ["default"]
    reopened.close()


def test_a_filled_store_knows_what_was_used_before(first_url: str) -> None:
    store = open_store(first_url)
    common: dict[str, Any] = {"job_id": "j-2", "job_name": "second", "user": "gone", "group": None}
    common |= {"kind": JobKind.TRAINING, "queue": "lost", "pool": "default", "model": "A10", "nodes": 1}
    two: dict[str, Any] = {**common, "gpu_milli": 2000, "gpu_ids": ("n1/0", "n1/1")}
    half: dict[str, Any] = {**common, "gpu_milli": 500, "gpu_ids": ("n1/0",)}
    with store.read() as transaction:
        (live,) = transaction.usage.open()
        past = transaction.usage.of_job("j-2")
    lost: dict[str, Any] = {"end_reason": EndReason.NODE_LOST, "outcome": JobState.QUEUED, **two}
    done: dict[str, Any] = {"end_reason": EndReason.EXIT_CODE, "outcome": JobState.COMPLETED, **two}
    failed: dict[str, Any] = {"end_reason": EndReason.LAUNCH_ERROR, "outcome": JobState.FAILED, **half}
    assert past == [
        UsageRecord(attempt_id="j-2.1", queued_at=3.0, planned_at=10.0, started_at=11.0, ended_at=20.0, **lost),
        UsageRecord(attempt_id="j-2.2", queued_at=20.0, planned_at=30.0, started_at=31.0, ended_at=50.0, **done),
        UsageRecord(attempt_id="j-2.3", queued_at=70.0, planned_at=75.0, ended_at=80.0, **failed),
    ]
    assert (live.attempt_id, live.user, live.group, live.pool) == ("j-1.1", "ada", "default", "dark")
    assert (live.model, live.gpu_milli, live.queued_at, live.outcome) == ("", 0, 3.0, None)
    store.close()


def test_an_upgraded_schema_is_the_one_of_the_tables(first_url: str) -> None:
    open_store(first_url).close()
    engine = create_engine(first_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()
