"""What the server costs when little happens: memory with many finished jobs in the store, pages, and rest; and the
start of commands."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.command_start import start_rows
from benchmarks.live import live_server
from benchmarks.tables import Row, print_table
from corral.control.records import JobRecord, JobSpec
from corral.core.model import EndReason, Job, JobState, Request
from corral.stores import open_store

FINISHED = 100_000


def fill(path: Path) -> None:
    """A store as it looks after a hundred thousand jobs."""
    store = open_store(f"sqlite:///{path}")
    for start in range(0, FINISHED, 10_000):
        with store.write() as tx:
            records = [
                JobRecord(
                    job=Job(
                        id=job_id,
                        name=f"train-{job_id}",
                        user=f"user{n % 40}",
                        state=JobState.COMPLETED,
                        request=Request(gpus=1 + n % 8),
                        created_at=1e9 + start + n,
                        ended_at=1e9 + start + n + 60,
                        end_reason=EndReason.EXIT_CODE,
                        exit_code=0,
                        attempt=1,
                    ),
                    spec=JobSpec(command=("python", "train.py", "--epochs", "10"), env={"SEED": str(n)}),
                )
                for n, job_id in enumerate(tx.jobs.next_ids(10_000))
            ]
            tx.jobs.add(records)
    store.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        home = Path(scratch)
        fill(home / "corral.db")
        with live_server(home=home) as server, server.client() as client:
            begun = time.perf_counter()
            page = client.get("/jobs", params={"limit": 50, "state": "completed"}).raise_for_status().json()
            first_page = (time.perf_counter() - begun) * 1000
            assert len(page["items"]) == 50
            for _ in range(20):
                client.get("/jobs", params={"limit": 200}).raise_for_status()
                client.get("/overview").raise_for_status()
            memory = server.memory_bytes() / 1e6
            before = server.cpu_seconds()
            time.sleep(10)
            idle = (server.cpu_seconds() - before) / 10 * 100
            commands = start_rows(server)
    print_table(
        "Footprint",
        [
            Row(what=f"memory of the server, {FINISHED:,} finished jobs", value=f"{memory:.0f} MB", target="< 250 MB"),
            Row(what="first page of the finished jobs", value=f"{first_page:.0f} ms", target="< 200 ms"),
            Row(what="CPU at rest", value=f"{idle:.1f} % of one core"),
            *commands,
        ],
    )


if __name__ == "__main__":
    main()
