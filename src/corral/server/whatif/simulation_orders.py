"""The folder of one simulation: the server's order, and the worker's progress and result.

`order.jsonl` has one line with the order and one line per job; `progress.json` and `result.json` are replaced
atomically, so that no reader sees half of one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from corral.core.scheduling.forecast.run_time_model import Features
from corral.core.snapshot.changes import Change
from corral.core.snapshot.codec import from_plain, to_plain
from corral.core.snapshot.journal import changes_of_plain, plain_changes
from corral.core.whatif.past_jobs import PastJob
from corral.core.whatif.scenario import scenario_of
from corral.simulator.whatif import Order, Progress

ORDER = "order.jsonl"
PROGRESS = "progress.json"
RESULT = "result.json"


def write_order(
    folder: Path,
    *,
    since: float,
    until: float,
    cluster: Iterable[Change],
    base: Mapping[str, Any],
    candidate: Mapping[str, Any],
    left_out: Mapping[str, int],
    jobs: Iterable[PastJob],
    learned: Iterable[tuple[Features, float]] = (),
    rest: Callable[[], None] = lambda: None,
) -> int:
    """Returns the number of jobs written. `rest` is called after each job, so that other threads can run."""
    head = {
        "since": since,
        "until": until,
        "cluster": plain_changes(cluster),
        "base": dict(base),
        "candidate": dict(candidate),
        "left_out": dict(left_out),
        "learned": [[to_plain(features), seconds] for features, seconds in learned],
    }
    count = 0
    with (folder / ORDER).open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, ensure_ascii=False) + "\n")
        for past in jobs:
            file.write(json.dumps(to_plain(past), ensure_ascii=False) + "\n")
            count += 1
            rest()
    return count


def read_order(folder: Path) -> Order:
    """Raises OSError or ValueError."""
    with (folder / ORDER).open(encoding="utf-8") as file:
        head = json.loads(next(file, ""))
        jobs = tuple(_jobs(file))
    return Order(
        since=head["since"],
        until=head["until"],
        cluster=tuple(changes_of_plain(head["cluster"])),
        base=scenario_of(head["base"]),
        candidate=scenario_of(head["candidate"]),
        left_out=head["left_out"],
        jobs=jobs,
        learned=tuple((from_plain(Features, features), seconds) for features, seconds in head["learned"]),
    )


def _jobs(lines: Iterable[str]) -> Iterator[PastJob]:
    return (from_plain(PastJob, json.loads(line)) for line in lines if line.strip())


def write_progress(folder: Path, progress: Progress) -> None:
    _replace(
        folder / PROGRESS,
        {
            "phase": progress.phase,
            "ended_jobs": progress.ended_jobs,
            "jobs": progress.jobs,
            "fraction": progress.fraction,
        },
    )


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Either `{"result": …}` or `{"error": …}`."""
    _replace(folder / RESULT, result)


def read_json(path: Path) -> dict[str, Any] | None:
    """Reads a JSON file; None if there is none, or it cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _replace(path: Path, value: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    os.replace(fresh, path)
