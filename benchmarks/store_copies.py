"""Copies of a whole store: SQLite to PostgreSQL and back, and a backup, with `CORRAL_BENCH_JOBS` (100,000) ended jobs.

The figures that matter are ratios: the last step of a move, for which the server is stopped, beside the whole copy; and
a second backup beside the first. PostgreSQL is started for the run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.servers.postgres import PostgresServer, find_account, find_programs

from benchmarks.tables import Row, print_table
from corral.control.records import AttemptRecord, EventRecord, JobRecord, JobSpec
from corral.core.model import Allocation, Grant, Job, JobState, Request
from corral.server.settings.settings_sources import load_settings
from corral.server.system.backup.backups import make_backup
from corral.stores import open_store
from corral.stores.copying.store_move import StoreMove
from corral.stores.database.opening import open_database

JOBS = int(os.environ.get("CORRAL_BENCH_JOBS", "100000"))
BATCH = 2000


def main() -> None:
    programs, account = find_programs(), find_account()
    if programs is None or account is None:
        print("store copies: PostgreSQL is not installed")
        return
    directory = Path(tempfile.mkdtemp(prefix="corral-pg-", dir="/tmp"))
    shutil.chown(directory, user=account)
    server = PostgresServer(directory=directory, programs=programs, account=account)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as home:
            _measure(Path(home), server.url(server.create_database()))
    finally:
        server.stop()
        shutil.rmtree(directory)


def _measure(home: Path, postgres: str) -> None:
    sqlite = f"sqlite:///{home / 'corral.db'}"
    _fill(sqlite)
    settings = load_settings(overrides={"home": home, "backup.to": str(home / "archive")}, environ={})
    rows: list[Row] = []
    first, seconds = _timed(lambda: make_backup(settings).manifest)
    saved = sum(table.rows for table in first.tables.values())
    rows.append(Row(what=f"backup of {saved} rows", value=f"{seconds:.1f} s, {first.written >> 20} MiB written"))
    _more(sqlite, 100)
    second, again = _timed(lambda: make_backup(settings).manifest)
    value = f"{again:.1f} s, {second.written >> 10} KiB written"
    rows.append(
        Row(what="backup after 100 more jobs", value=value, ratio=f"{second.written / first.written:.3f} of bytes")
    )
    for name, source, target in (("SQLite to PostgreSQL", sqlite, postgres), ("back to SQLite", postgres, sqlite)):
        work = StoreMove(source=open_database(source), target=open_database(target))
        work.prepare()
        copied, whole = _timed(work.copy_while_running)
        count = sum(table.changed for table in copied)
        rows.append(Row(what=f"{name}: copy beside the server", value=f"{whole:.1f} s, {count} rows written"))
        moved, last = _timed(work.finish)
        count = sum(table.changed for table in moved)
        value = f"{last:.1f} s, {count} rows written, all compared"
        rows.append(Row(what=f"{name}: server stopped", value=value, ratio=f"{last / whole:.2f} of the copy"))
        work.source.dispose()
        work.target.dispose()
    print_table(f"copies of a store with {JOBS} jobs", rows)


def _fill(url: str) -> None:
    store = open_store(url)
    store.take_over()
    store.close()
    for begin in range(0, JOBS, BATCH):
        _more(url, min(BATCH, JOBS - begin))


def _more(url: str, count: int) -> None:
    """Ended jobs, with one attempt and three events each."""
    store = open_store(url)
    allocation = Allocation(model="A100", grants=(Grant(node="node-1", gpus=("node-1/0",)),))
    with store.write() as tx:
        ids = tx.jobs.next_ids(count)
        spec = JobSpec(command=("python", "train.py", "--epochs", "90"), env={"OMP_NUM_THREADS": "8"})
        tx.jobs.add([JobRecord(job=_job(job_id), spec=spec) for job_id in ids])
        tx.attempts.add(
            [
                AttemptRecord(id=f"{job_id}.1", job_id=job_id, number=1, allocation=allocation, planned_at=1.0)
                for job_id in ids
            ]
        )
        tx.events.append(
            [
                EventRecord(id=0, at=1.0, actor="ada", action=f"job.{word}", subject=job_id, owner="ada")
                for job_id in ids
                for word in ("submitted", "running", "ended")
            ]
        )
    store.close()


def _job(job_id: str) -> Job:
    return Job(
        id=job_id, name=f"train-{job_id}", user="ada", state=JobState.COMPLETED, request=Request(gpus=1), created_at=1.0
    )


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


if __name__ == "__main__":
    main()
