"""The same with the real local engine and real processes: calls of the engine, its files, and the files of jobs fail
once, at a random step. Every job that was accepted ends, no attempt runs twice, and nothing is left running.

A fixed number of seeds; more with FAULT_SEEDS=1000.
"""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corral.control.jobs import jobs
from corral.control.live import outage, outbox, worker
from corral.control.live.controller import Controller
from corral.control.ports import AttemptStatus, EngineUnavailable, LaunchOrder, Observation, OutcomeUnknown, Store
from corral.control.records import EVERY_JOB, JobSpec
from corral.control.system.policies import Policies
from corral.core.model import JobState
from corral.engines.attempts.processes import processes_by_env
from corral.engines.local import attempts as attempt_files
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import fleet_for
from corral.files.trash import Trash
from corral.server.wiring.foundation import SystemClock
from corral.stores.jobs.job_directories import DirectoryWorkspace
from tests.faults.injection import Faults
from tests.unit.control.world import ANN, draft, eventually

pytest_plugins = ("tests.servers.fixtures",)

SEEDS = int(os.environ.get("FAULT_SEEDS", "8"))
#: about how many calls a story makes
STEPS = 100
JOBS = 8
PROGRAM = 'echo "$CORRAL_ATTEMPT_ID" >> "$WITNESS"; sleep 0.05; test "$FAILS" = no'


class FaultyEngine:
    """The local engine, with calls that fail before they do anything, or whose answer is lost."""

    def __init__(self, real: LocalEngine, faults: Faults) -> None:
        self._real = real
        self._faults = faults

    def observe(self) -> Observation:
        return self._call("observe", self._real.observe)

    def launch(self, order: LaunchOrder) -> None:
        self._call("launch", partial(self._real.launch, order))

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._call("stop", partial(self._real.stop, attempt_id, grace_seconds))

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        self._call("forget", partial(self._real.forget, attempt_ids, delete_logs=delete_logs))

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        def unsteady(status: AttemptStatus) -> None:
            # An event that is lost is found again by `observe`.
            if not self._faults.hits("event"):
                sink(status)

        self._real.subscribe(unsteady)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _call(self, name: str, work: Callable[[], Any]) -> Any:
        if self._faults.hits(f"engine.{name}"):
            raise EngineUnavailable(f"{name}: it does not answer")
        answer = work()
        if self._faults.hits(f"answer of engine.{name}"):
            raise EngineUnavailable(f"{name}: its answer was lost")
        return answer


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((worker, "FIRST_PAUSE_SECONDS"), (outbox, "RETRY_SECONDS"), (outage, "FIRST_PAUSE_SECONDS")):
        monkeypatch.setattr(module, name, 0.02)
    monkeypatch.setattr("corral.core.jobs.backoff.BACKOFF_SECONDS", 0.02)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Files of attempts and of jobs fail, too."""
    made = Faults()

    def broken(place: Any, name: str) -> None:
        work = getattr(place, name)

        def call(*args: Any, **more: Any) -> Any:
            if made.hits(f"file {name}"):
                raise OSError(errno.EIO, "Input/output error")
            return work(*args, **more)

        monkeypatch.setattr(place, name, call)

    for name in ("write_json", "write_stop", "claim_state"):
        broken(attempt_files, name)
    broken(attempt_files.AttemptFiles, "create")
    broken(attempt_files.AttemptFiles, "remove")
    broken(Trash, "discard")
    broken(DirectoryWorkspace, "prepare")
    return made


@pytest.fixture
def real_engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(
        root=tmp_path / "local",
        fleet=fleet_for(virtual_nodes_text="2x4xA10", drill_directory=tmp_path / "local"),
        rescan_seconds=0.1,
        fold_after_seconds=3600.0,
    )
    yield engine
    engine.close()


def story(controller: Controller, rng: random.Random, witness: Path) -> tuple[set[str], set[str]]:
    """Submits, stops and deletes jobs; the names that were accepted, and those that were deleted."""
    accepted, deleted = set[str](), set[str]()
    for number in range(JOBS):
        name, fails = f"story-{number:02d}", rng.choice(["no", "no", "yes"])
        env = {"WITNESS": str(witness), "FAILS": fails}
        spec = JobSpec(command=("/bin/sh", "-c", PROGRAM), env=env)
        answer = controller.execute(jobs.submit, ANN, [draft(name, gpus=rng.choice([1, 2]), spec=spec)])
        try:
            answer.result(30)
            accepted.add(name)
        except OutcomeUnknown:
            continue
        if rng.random() < 0.2:
            controller.execute(jobs.stop, ANN, rng.choice(sorted(accepted))).exception(30)
        if rng.random() < 0.2:
            name = rng.choice(sorted(accepted))
            if controller.execute(jobs.delete, ANN, name).exception(30) is None:
                deleted.add(name)
    return accepted, deleted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_job_runs_once_and_ends_after_any_call_fails_once(
    store: Store, seed: int, faults: Faults, real_engine: LocalEngine, tmp_path: Path
) -> None:
    rng, witness = random.Random(seed), tmp_path / "witness"
    witness.touch()
    controller = Controller(
        store=store,
        engines={"local": FaultyEngine(real_engine, faults)},
        clock=SystemClock(),
        policies=Policies(),
        workspace=DirectoryWorkspace(tmp_path / "jobs"),
        observe_seconds=0.1,
        tidy_seconds=0.5,
    )
    controller.start()
    try:
        faults.arm(rng.randrange(1, STEPS), rng.choice([1, 1, 2, 10]))
        accepted, deleted = story(controller, rng, witness)

        def is_over() -> bool:
            with store.read() as tables:
                return not tables.jobs.live()

        faults.disarm()
        eventually(is_over, 60)
        with store.read() as tables:
            records = tables.jobs.page(EVERY_JOB, sort="id", cursor=None, limit=100).items
        assert accepted - deleted <= {record.job.name for record in records}, "accepted and lost"
        begun = witness.read_text().split()
        assert not [attempt for attempt, count in Counter(begun).items() if count > 1], "ran twice"
        for record in records:
            assert record.job.state in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)
            if record.job.state is JobState.COMPLETED:
                assert record.job.attempt_id in begun, "completed without a run"
        eventually(lambda: not real_engine.observe().attempts, 30)
        mine = {path for path in processes_by_env("CORRAL_RUN_DIR") if path.startswith(str(tmp_path))}
        assert not mine, "something still runs"
    except BaseException as error:
        error.add_note(f"seed {seed}; what failed: {faults.failed}")
        raise
    finally:
        controller.stop()
