"""How long lists of jobs take when there are a hundred thousand: every filter and every order that the list offers, the
first page and the last, the counts beside the filters, and the search of the command palette.

The peer is the plain list without filters, newest first, of the same run. SQLite always; PostgreSQL where
`CORRAL_BENCH_POSTGRES` has the address of an empty database. `CORRAL_BENCH_JOBS` makes it smaller.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.tables import Row, median, print_table, spread
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Store
from corral.control.records import JobFilter, JobRecord, JobSpec
from corral.control.system.search import search
from corral.core.model import Job, JobKind, JobState, Request
from corral.stores import open_store
from corral.stores.database.cursors import Position, encode_cursor, parse_sort
from corral.stores.jobs.jobs import SORTS as SORTS_BY_TYPE

JOBS = int(os.environ.get("CORRAL_BENCH_JOBS", "100000"))
BEGIN = 1_700_000_000.0
RUNS = 5
PAGE = 50
TARGET_MS = 200.0
SEARCH_TARGET_MS = 50.0
WORDS = ("resnet", "llama", "bert", "eval", "sweep", "prep", "diffusion", "whisper")
SORTS = ("-id", "id", "name", "-name", "priority", "-priority", "created_at", "-created_at")
QUEUES = ("default", "night", "vision", "nlp")
USERS = 200


def jobs(count: int, seed: int = 7) -> Iterator[JobRecord]:
    """Mostly ended ones, a few hundred that wait or run, of many users; one job in twenty belongs to an array."""
    rng = random.Random(seed)
    ended = [JobState.COMPLETED] * 85 + [JobState.FAILED] * 10 + [JobState.STOPPED] * 5
    for number in range(1, count + 1):
        is_live = number > count - 500
        state = rng.choice([JobState.QUEUED, JobState.RUNNING]) if is_live else rng.choice(ended)
        at = BEGIN + number * 30.0
        of_array = number % 20 == 0
        name = f"{rng.choice(WORDS)}-{rng.randrange(10**6):06d}-{number}"
        array = {"array_name": "grid", "array_index": number} if of_array else {}
        spec = JobSpec(command=("python", "train.py", "--epochs", "90"), env={"SEED": str(number)}, **array)
        yield JobRecord(
            job=Job(
                id=f"j-{number}",
                name=f"grid-{number}" if of_array else name,
                user=f"user{int(rng.paretovariate(1.2)) % USERS}",
                kind=rng.choices(list(JobKind), [88, 6, 4, 2][: len(JobKind)])[0],
                state=state,
                queue=rng.choice(QUEUES),
                priority=rng.randrange(1, 10),
                created_at=at,
                queued_at=at,
                request=Request(gpus=rng.choice([1, 1, 2, 4, 8]), cpu_milli=4000, memory_bytes=1 << 33),
                version=3,
            ),
            spec=spec,
        )


def fill(store: Store, count: int) -> None:
    batch: list[JobRecord] = []
    for record in jobs(count):
        batch.append(record)
        if len(batch) == 5000:
            _write(store, batch)
            batch = []
    if batch:
        _write(store, batch)


def _write(store: Store, batch: list[JobRecord]) -> None:
    with store.write() as tables:
        tables.jobs.next_ids(len(batch))
        tables.jobs.add(batch)


FILTERS: dict[str, JobFilter] = {
    "no filter": JobFilter(),
    "live": JobFilter(states=(JobState.QUEUED, JobState.RUNNING)),
    "failed or completed": JobFilter(states=(JobState.FAILED, JobState.COMPLETED)),
    "two kinds": JobFilter(kinds=(JobKind.WORKBENCH, JobKind.DISTRIBUTED)),
    "a busy user": JobFilter(users=("user1",)),
    "three users": JobFilter(users=("user3", "user7", "user150")),
    "a queue": JobFilter(queue="night"),
    "an empty queue": JobFilter(queue="none"),
    "name contains, many": JobFilter(name_contains="whisper"),
    "name contains, none": JobFilter(name_contains="zzzz"),
    "text, many": JobFilter(text="user1"),
    "text, none": JobFilter(text="zzzz"),
    "text like an id, none": JobFilter(text="-000000000"),
    "a tenth of the time": JobFilter(since=BEGIN + JOBS * 3.0, until=BEGIN + JOBS * 6.0),
    "an array": JobFilter(array="grid"),
    "user, state and text": JobFilter(users=("user1",), states=(JobState.FAILED,), text="whisper"),
    "queue, kind and time": JobFilter(queue="nlp", kinds=(JobKind.WORKBENCH,), since=BEGIN + JOBS * 15.0),
}


def milliseconds(what: Callable[[], Any]) -> list[float]:
    taken = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        what()
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def deep_cursor(store: Store, where: JobFilter, sort: str) -> str | None:
    """Where the last full page begins: the end of the first page in the opposite order."""
    order = parse_sort(sort, SORTS_BY_TYPE)
    with store.read() as tables:
        opposite = tables.jobs.page(
            where, sort=sort[1:] if order.descending else f"-{sort}", cursor=None, limit=PAGE + 1
        )
    if opposite.next_cursor is None:
        return None
    last = opposite.items[-1].job
    key = last.serial if order.field == "id" else getattr(last, order.field)
    return encode_cursor(order, Position(key=key, id=last.serial))


def list_rows(store: Store) -> list[Row]:
    """Of each filter the slowest order, first page and deep page, and the counts."""
    rows: list[Row] = []
    plain = 1.0
    for name, where in FILTERS.items():
        first: dict[str, list[float]] = {}
        deep: dict[str, list[float]] = {}
        for sort in SORTS:
            first[sort] = milliseconds(lambda: page(store, where, sort))  # noqa: B023 - called at once
            if (cursor := deep_cursor(store, where, sort)) is not None:
                deep[sort] = milliseconds(lambda: page(store, where, sort, cursor))  # noqa: B023
        if name == "no filter":
            plain = median(first["-id"])
        for what, measured in (("first page", first), ("deep page", deep)):
            if measured:
                slowest = max(measured, key=lambda sort: median(measured[sort]))
                rows.append(_row(f"{name}: {what}, slowest order {slowest}", measured[slowest], TARGET_MS, plain))
        rows.append(_row(f"{name}: counts", milliseconds(lambda: counts(store, where)), TARGET_MS, plain))  # noqa: B023
    return rows


def search_rows(store: Store) -> list[Row]:
    operator = Caller(name="operator", is_operator=True)
    rows = []
    for text in ("whisper", "zzzz", "grid-5", "j-12", "j-99999", "e"):

        def look(text: str = text) -> None:
            with store.read() as tables:
                search(tables, operator, text, (), 20)

        rows.append(_row(f"search for {text!r}", milliseconds(look), SEARCH_TARGET_MS, None))
    return rows


def page(store: Store, where: JobFilter, sort: str, cursor: str | None = None) -> None:
    with store.read() as tables:
        tables.jobs.page(where, sort=sort, cursor=cursor, limit=PAGE)


def counts(store: Store, where: JobFilter) -> None:
    with store.read() as tables:
        tables.jobs.counts(where)


def _row(what: str, measured: list[float], target: float, plain: float | None) -> Row:
    ratio = "" if plain is None else f"{median(measured) / plain:.1f} × the plain first page"
    value = f"{median(measured):.1f} ms"
    return Row(what=what, value=value, spread=spread(measured, "ms"), target=f"< {target:.0f} ms", ratio=ratio)


@contextmanager
def filled_store(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        store.take_over()
        fill(store, JOBS)
        yield store
    finally:
        store.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as directory:
        urls = {"SQLite": f"sqlite:///{Path(directory) / 'corral.db'}"}
        if postgres := os.environ.get("CORRAL_BENCH_POSTGRES"):
            urls["PostgreSQL"] = postgres
        for name, url in urls.items():
            with filled_store(url) as store:
                print_table(f"Lists of {JOBS:,} jobs, {name}", list_rows(store))
                print_table(f"Search among {JOBS:,} jobs, {name}", search_rows(store))


if __name__ == "__main__":
    main()
