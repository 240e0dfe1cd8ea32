"""Independent checks over what a server has recorded:

Read from its store, recounted without the scheduler's own classes.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from corral.control.live.journal import replay
from corral.control.records import AttemptRecord
from corral.stores import open_store


def attempts_of(home: Path) -> list[AttemptRecord]:
    store = open_store(f"sqlite:///{home / 'corral.db'}")
    try:
        with store.read() as tx:
            return list(tx.attempts.all_allocations())
    finally:
        store.close()


def assert_no_gpu_given_twice(attempts: list[AttemptRecord]) -> int:
    """At no moment more than one whole of any GPU; how many GPUs were ever used."""
    changes: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for attempt in attempts:
        for grant in attempt.allocation.grants:
            for gpu in grant.gpus:
                changes[gpu].append((attempt.planned_at, grant.gpu_milli, attempt.id))
                if attempt.ended_at is not None:
                    changes[gpu].append((attempt.ended_at, -grant.gpu_milli, attempt.id))
    for gpu, moments in changes.items():
        held = 0
        for at, milli, attempt_id in sorted(moments, key=lambda item: (item[0], item[1])):
            held += milli
            assert held <= 1000, f"{gpu} is given twice at {at} by {attempt_id}"
    return len(changes)


def assert_gangs_are_whole(attempts: list[AttemptRecord], nodes_of: dict[str, int]) -> None:
    for attempt in attempts:
        nodes = [grant.node for grant in attempt.allocation.grants]
        assert len(nodes) == nodes_of[attempt.job_id], f"{attempt.id} has {nodes}"
        assert len(set(nodes)) == len(nodes), f"{attempt.id} has a node twice: {nodes}"


def assert_journal_replays(home: Path) -> int:
    """The core decides again what it decided live; how many cycles that were."""
    store = open_store(f"sqlite:///{home / 'corral.db'}")
    try:
        with store.read() as tx:
            cycles = tx.cycles.since_base()
    finally:
        store.close()
    count = 0
    for replayed in replay(cycles):
        assert replayed.decided == replayed.recorded, f"cycle {replayed.cycle.id} was decided differently"
        count += 1
    return count
