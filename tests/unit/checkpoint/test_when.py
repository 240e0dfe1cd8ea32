"""When to save, when to stop, and where to go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral import checkpoint
from corral.checkpoint import catalog
from corral.checkpoint.environment import Surroundings, read_environment
from corral.checkpoint.keeper import Keeper
from corral.checkpoint.layout import REQUEST
from corral.checkpoint.warning import WARNING
from tests.unit.checkpoint.conftest import Clock

Make = Callable[..., Keeper]


def warn() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


# The interval


def test_due_when_the_interval_has_passed_since_the_start_the_save_or_the_restore(make: Make, clock: Clock) -> None:
    keeper = make(interval_seconds=600)
    assert not keeper.due()
    clock.now += 599
    assert not keeper.due()
    clock.now += 1
    assert keeper.due()
    assert keeper.due()
    keeper.save([1], step=1)
    assert not keeper.due()
    clock.now += 600
    assert keeper.due()
    keeper.restore()
    assert not keeper.due()


def test_without_an_interval_or_a_directory_nothing_is_due(make: Make, clock: Clock) -> None:
    for keeper in (make(), make(directory=None, interval_seconds=1)):
        clock.now += 10**6
        assert not keeper.due()


def test_without_a_directory_a_script_runs_all_the_same(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    keeper = make(directory=None)
    assert keeper.restore() is None
    assert list(keeper.steps(3, dict)) == [0, 1, 2]
    assert keeper.save([1], step=1) is None
    assert capsys.readouterr().err.count("CORRAL_CHECKPOINT_DIR is not set: nothing is saved") == 1


# Requests of the platform


def _request(directory: Path) -> None:
    """Requests a save like the server: a new file replaces the old one."""
    draft = directory / "draft"
    draft.touch()
    draft.replace(directory / REQUEST)


def test_a_request_is_answered_by_one_save(make: Make, clock: Clock, tmp_path: Path) -> None:
    keeper = make()
    keeper.save([1], step=1)
    _request(tmp_path / "checkpoints")
    clock.now += 1
    assert keeper.due()
    keeper.save([2], step=2)
    clock.now += 1
    assert not keeper.due()
    _request(tmp_path / "checkpoints")
    clock.now += 1
    assert keeper.due()


def test_the_directory_is_not_asked_at_every_step(make: Make, clock: Clock, tmp_path: Path) -> None:
    keeper = make()
    keeper.save([1], step=1)
    assert not keeper.due()
    _request(tmp_path / "checkpoints")
    assert not keeper.due()
    clock.now += 1
    assert keeper.due()


def test_a_request_outlives_the_process_that_did_not_answer(make: Make, clock: Clock, tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    path = make().save([1], step=1)
    assert path is not None
    _request(directory)
    saved = os.stat(path / "manifest.json").st_mtime_ns
    os.utime(directory / ".request", ns=(saved + 1, saved + 1))
    assert make().due()
    os.utime(directory / ".request", ns=(saved - 1, saved - 1))
    assert not make().due()


# The warning


def test_a_warning_asks_for_a_save_and_a_stop_and_calls_the_earlier_handler(make: Make) -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    try:
        keeper = make()
        assert not keeper.should_stop()
        warn()
        assert keeper.should_stop()
        assert calls == [signal.SIGTERM]
        assert keeper.due()
        keeper.save([1], step=1)
        assert not keeper.due()
        assert keeper.should_stop()
    finally:
        WARNING.forget()
        assert signal.signal(signal.SIGTERM, before) != before


def test_only_who_asks_whether_to_stop_changes_what_the_signal_does(make: Make) -> None:
    before = signal.getsignal(signal.SIGTERM)
    keeper = make(interval_seconds=1)
    keeper.restore()
    keeper.due()
    keeper.save([1], step=1)
    assert signal.getsignal(signal.SIGTERM) is before
    keeper.should_stop()
    assert signal.getsignal(signal.SIGTERM) is not before


def test_another_thread_cannot_listen_and_gets_a_hint(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    keeper = make()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.extend([keeper.should_stop(), keeper.should_stop()]))
    thread.start()
    thread.join()
    assert answers == [False, False]
    assert capsys.readouterr().err.count("call corral.checkpoint.watch() once in the main thread") == 1
    assert checkpoint.watch()
    warn()
    thread = threading.Thread(target=lambda: answers.append(keeper.should_stop()))
    thread.start()
    thread.join()
    assert answers[-1] is True


def test_forked_children_end_at_once_as_ever(make: Make) -> None:
    make().should_stop()
    ready, reported = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(reported, b"!")
        time.sleep(20)
        os._exit(0)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


LOADS = """
import multiprocessing, sys
from corral import checkpoint

def load(queue):
    checkpoint.ignore_in_worker(0)
    while True:
        queue.put("data")

multiprocessing.set_start_method("fork")
queue = multiprocessing.Queue(4)
multiprocessing.Process(target=load, args=(queue,), daemon=True).start()
checkpoint.watch()
while not checkpoint.should_stop():
    print(queue.get(), flush=True)
for _ in range(20):
    queue.get()
print("more data", flush=True)
sys.exit(checkpoint.EXIT_STOPPED)
"""


def test_workers_outlive_the_warning_but_not_the_training() -> None:
    process = subprocess.Popen([sys.executable, "-c", LOADS], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "data\n"
        os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        assert output.splitlines()[-1] == "more data"
        assert process.returncode == checkpoint.EXIT_STOPPED
    finally:
        process.kill()


# Steps


def test_steps_go_on_where_the_last_checkpoint_ended(make: Make) -> None:
    state = {"sum": 0}
    keeper = make()

    def train() -> None:
        for step in keeper.steps(10, lambda: state):
            state["sum"] += step
            if step == 4:
                warn()

    with pytest.raises(SystemExit) as stopped:
        train()
    assert stopped.value.code == checkpoint.EXIT_STOPPED
    WARNING.forget()

    keeper = make()
    state = keeper.restore()
    assert keeper.steps_done() == 5
    seen = []
    for step in keeper.steps(10, lambda: state):
        seen.append(step)
        state["sum"] += step
    assert seen == [5, 6, 7, 8, 9]
    assert make().restore() == {"sum": 45}
    keeper = make()
    keeper.restore()
    assert list(keeper.steps(10, lambda: state)) == []


def test_steps_save_when_due_and_at_the_end(make: Make, clock: Clock, tmp_path: Path) -> None:
    keeper = make(interval_seconds=60, keep=10)
    for _ in keeper.steps(7, dict):
        clock.now += 25
    saved = [each.step for each in reversed(catalog.list_checkpoints(tmp_path / "checkpoints"))]
    assert saved == [3, 6, 7]


def test_a_warning_in_the_last_step_lets_the_program_end_by_itself(make: Make) -> None:
    for step in make().steps(2, dict):
        if step == 1:
            warn()


def test_ranks_that_agree_stop_at_the_same_step(make: Make, tmp_path: Path) -> None:
    """The other rank was warned, this one was not yet: it saves and stops with it."""
    asked: list[int] = []

    def agree(want: int) -> int:
        asked.append(want)
        return max(want, 2 if len(asked) == 3 else 0)

    with pytest.raises(SystemExit):
        list(make().steps(10, dict, agree=agree))
    assert asked == [0, 0, 0]
    assert [each.step for each in catalog.list_checkpoints(tmp_path / "checkpoints")] == [3]


# Where to resume from


def test_the_platforms_choice_comes_first_if_it_is_good(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    first = make(attempt=1).save("first", step=1)
    make(attempt=1).save("second", step=2)
    assert first is not None
    assert make(attempt=2, resume_from=first).restore() == "first"
    assert make(attempt=2, resume_from=first.with_name("save-000077-step-1")).restore() == "second"
    assert "which CORRAL_RESUME_FROM names, is not there" in capsys.readouterr().err
    (first / "state").write_bytes(b"damaged")
    assert make(attempt=2, resume_from=first).restore() == "second"
    assert str(first) in capsys.readouterr().err


def test_checkpoint_of_this_attempt_is_newer_than_the_choice_of_the_platform(make: Make) -> None:
    chosen = make(attempt=1).save("chosen", step=1)
    keeper = make(attempt=2, resume_from=chosen)
    keeper.save("own", step=2)
    assert keeper.restore() == "own"
    assert make(attempt=2, resume_from=chosen).restore() == "own", "processes of one attempt may be started again"
    assert make(attempt=3, resume_from=chosen).restore() == "chosen"


def test_the_choice_may_lie_elsewhere(make: Make, tmp_path: Path) -> None:
    elsewhere = make(directory=tmp_path / "other").save("other", step=5)
    keeper = make(resume_from=elsewhere)
    assert keeper.restore() == "other"
    assert keeper.steps_done() == 5
    assert make(directory=None, resume_from=elsewhere).restore() == "other"


# The environment


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({}, (0, 1)),
        ({"CORRAL_RANK": "1", "NNODES": "2", "WORLD_SIZE": "16"}, (1, 2)),
        ({"CORRAL_RANK": "1", "NNODES": "2", "WORLD_SIZE": "16", "RANK": "11"}, (11, 16)),
        ({"RANK": "3"}, (3, 4)),
    ],
)
def test_rank_and_size_come_from_the_environment(env: dict[str, str], place: tuple[int, int]) -> None:
    found = read_environment(env)
    assert (found.rank, found.world) == place


def test_the_environment_is_read_whole() -> None:
    env = {
        "CORRAL_CHECKPOINT_DIR": "/c",
        "CORRAL_RESUME_FROM": "/c/save-000001-step-1",
        "CORRAL_CHECKPOINT_INTERVAL_SECONDS": "90.5",
        "CORRAL_CHECKPOINT_KEEP": "5",
        "CORRAL_ATTEMPT": "2",
    }
    assert read_environment(env) == Surroundings(
        directory=Path("/c"), resume_from=Path("/c/save-000001-step-1"), interval_seconds=90.5, keep=5, attempt=2
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CORRAL_CHECKPOINT_INTERVAL_SECONDS", "soon"),
        ("CORRAL_CHECKPOINT_INTERVAL_SECONDS", "0"),
        ("CORRAL_CHECKPOINT_INTERVAL_SECONDS", "nan"),
        ("CORRAL_CHECKPOINT_KEEP", "0"),
        ("CORRAL_CHECKPOINT_KEEP", "many"),
        ("RANK", "-1"),
    ],
)
def test_nonsense_in_the_environment_is_an_error(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"must be|does not exist"):
        read_environment({name: value})


def test_the_module_functions_share_one_keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_keeper", None)
    checkpoint.configure(directory=str(tmp_path), keep=1)
    assert checkpoint.restore() is None
    assert checkpoint.last() is None
    path = checkpoint.save({"a": 1}, step=3)
    assert path is not None
    last = checkpoint.last()
    assert last is not None
    assert (last.path, last.step, checkpoint.steps_done()) == (path, 3, 3)
    assert checkpoint.load(path) == {"a": 1}
    assert not checkpoint.due()

    def write(folder: Path) -> None:
        (folder / "model.txt").write_text("weights")

    checkpoint.save_files(write, step=4)
    restored: Any = checkpoint.restore()
    assert (restored / "model.txt").read_text() == "weights"
    assert len(catalog.list_checkpoints(tmp_path)) == 1
    assert list(checkpoint.steps(4, dict)) == []
