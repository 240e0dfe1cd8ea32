"""Jobs' disk use, measured in few tasks, with no job waiting for the many files of another one."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from corral.control.jobs.disk_quota import Writer
from corral.files.usage import DiskUse
from corral.server.settings.disk_limits import DiskLimits
from corral.server.system import disk_watch
from corral.server.system.disk_watch import DiskWatch
from corral.stores.storage.fair_pool import FairPool
from tests.unit.control.world import eventually


def writer(number: int, user: str) -> Writer:
    job = f"j-{number}"
    return Writer(job_id=job, attempt=1, attempt_id=f"{job}.1", user=user, cluster="local", local_bytes=0)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The users of the tasks that are given to the pool."""
    found: list[str] = []
    submit = FairPool.submit

    def counted(pool: Any, user: str, *args: Any, **values: Any) -> Any:
        found.append(user)
        return submit(pool, user, *args, **values)

    monkeypatch.setattr(FairPool, "submit", counted)
    return found


def watch_of(writers: list[Writer]) -> DiskWatch:
    answer: Future[dict[str, Writer]] = Future()
    answer.set_result({each.attempt_id: each for each in writers})
    controller: Any = SimpleNamespace(inspect=lambda read: answer)
    limits = DiskLimits(job_bytes=1 << 40, job_files=None, min_free_bytes=0, reserve_bytes=0)
    return DiskWatch(controller=controller, engines={}, home_of=lambda job: f"/jobs/{job}", limits=limits)


def test_all_small_jobs_of_a_user_are_measured_in_one_task(tasks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(paths: Any, **_: Any) -> Generator[None, None, DiskUse]:
        paths = list(paths)
        if paths == ["/jobs/j-3"]:
            raise PermissionError("it cannot be read")
        return DiskUse(bytes=len(paths), files=1)
        yield

    monkeypatch.setattr(disk_watch, "measure_steps", steps)
    writers = [writer(number, "ann" if number < 40 else "bob") for number in range(60)]
    watch = watch_of(writers)
    watch.look()
    others = [each.attempt_id for each in writers if each.job_id != "j-3"]
    eventually(lambda: all(watch.latest(attempt) is not None for attempt in others))
    assert watch.latest("j-3.1") is None
    assert sorted(tasks) == ["ann", "bob"]
    watch.stop()


def test_a_job_with_many_files_lets_the_others_of_its_user_go_first(
    tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    def steps(paths: Any, **_: Any) -> Generator[None, None, DiskUse]:
        (path,) = [*paths] or [""]
        for _step in range(5 if path == "/jobs/j-0" else 0):
            yield
        ended.append(path)
        return DiskUse(bytes=1, files=1)

    monkeypatch.setattr(disk_watch, "measure_steps", steps)
    watch = watch_of([writer(number, "ann") for number in range(3)])
    watch.look()
    eventually(lambda: watch.latest("j-0.1") is not None)
    assert [path for path in ended if path] == ["/jobs/j-1", "/jobs/j-2", "/jobs/j-0"]
    assert tasks == ["ann", "ann"]
    watch.stop()
