"""The functions that the engine contract needs from an engine under test: start it, crash it, and wait for what it
reports.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corral.control.ports import AttemptPhase, AttemptStatus, Engine, Instance, LaunchOrder
from corral.engines.attempts.claims import ClaimState, claim_state, read_claim
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.cgroups import CgroupSupport
from corral.engines.local.containers.container_orders import ContainerRuntime
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import fleet_for
from corral.engines.local.rundir import Layout
from corral.engines.storage.storage_specs import StoragePlaces

#: long, as a busy machine and a real Slurm take their time; only a failure waits for its end
DEADLINE_SECONDS = 60.0


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.005)


def process_exists(pid: int) -> bool:
    """Whether it runs; a process that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def order(
    *command: str,
    attempt_id: str = "j-1.1",
    nodes: int = 1,
    gpus: int = 0,
    env: Mapping[str, str] | None = None,
    workdir: str | None = None,
    time_limit_seconds: float | None = None,
    grace_seconds: float = 5.0,
    memory_bytes: int = 0,
    cpu_milli: int = 0,
    **more: Any,
) -> LaunchOrder:
    instances = tuple(
        Instance(
            rank=rank,
            node=f"node{rank + 1}",
            gpu_ids=tuple(f"node{rank + 1}-gpu{index}" for index in range(gpus)),
            gpu_indexes=tuple(range(gpus)),
        )
        for rank in range(nodes)
    )
    return LaunchOrder(
        attempt_id=attempt_id,
        job_id=attempt_id.rpartition(".")[0],
        user="ada",
        command=command,
        instances=instances,
        env=env or {},
        workdir=workdir,
        time_limit_seconds=time_limit_seconds,
        grace_seconds=grace_seconds,
        memory_bytes=memory_bytes,
        cpu_milli=cpu_milli,
        **more,
    )


def script(text: str) -> tuple[str, str, str]:
    return ("/bin/sh", "-c", text)


class Listener:
    """Everything an engine reported, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: list[AttemptStatus] = []

    def __call__(self, status: AttemptStatus) -> None:
        with self._lock:
            self._statuses.append(status)

    def of(self, attempt_id: str) -> list[AttemptStatus]:
        with self._lock:
            return [status for status in self._statuses if status.attempt_id == attempt_id]

    def phases(self, attempt_id: str = "j-1.1") -> list[AttemptPhase]:
        return [status.phase for status in self.of(attempt_id)]

    def wait(self, phase: AttemptPhase, attempt_id: str = "j-1.1") -> AttemptStatus:
        wait_until(lambda: phase in self.phases(attempt_id), f"{attempt_id} {phase}; got {self.of(attempt_id)}")
        return next(status for status in self.of(attempt_id) if status.phase is phase)

    def running(self, attempt_id: str = "j-1.1") -> AttemptStatus:
        return self.wait(AttemptPhase.RUNNING, attempt_id)

    def ended(self, attempt_id: str = "j-1.1") -> AttemptStatus:
        return self.wait(AttemptPhase.ENDED, attempt_id)


class EngineHarness(ABC):
    """An engine over one root, which stays when the engine is started anew."""

    name: str
    root: Path
    log_limit_bytes = 64 << 10
    engine: Engine
    listener: Listener
    #: where gangs meet; "" if only the cluster knows
    master_addr = "127.0.0.1"

    def __init__(self) -> None:
        self._engines: list[Engine] = []
        self._launched: set[str] = set()

    @abstractmethod
    def new_engine(self) -> Engine:
        """A new engine over the same root, as after a restart of the server."""

    @abstractmethod
    def crash_helper(self) -> None:
        """The program beside the server that starts attempts dies, if there is one."""

    @abstractmethod
    def is_alive(self, attempt_id: str = "j-1.1", rank: int = 0) -> bool:
        """Whether an instance runs, asked of the machine and not of the engine."""

    @abstractmethod
    def bytes_kept(self) -> int:
        """The size of all logs on the disk."""

    def node_name(self, rank: int) -> str:
        """The node of an instance of `order`."""
        return f"node{rank + 1}"

    def process_exists(self, pid: int) -> bool:
        """A process of a job, by the number that it has for the job."""
        return process_exists(pid)

    def start(self) -> tuple[Engine, Listener]:
        self.engine = self.new_engine()
        self.listener = Listener()
        self.engine.subscribe(self.listener)
        self._engines.append(self.engine)
        return self.engine, self.listener

    def stop_server(self) -> None:
        self.engine.close()

    def restart(self) -> tuple[Engine, Listener]:
        self.stop_server()
        return self.start()

    def launch(self, launch_order: LaunchOrder) -> str:
        self._launched.add(launch_order.attempt_id)
        self.engine.launch(launch_order)
        return launch_order.attempt_id

    def status(self, attempt_id: str = "j-1.1") -> AttemptStatus | None:
        return next((status for status in self.engine.observe().attempts if status.attempt_id == attempt_id), None)

    def output(self, attempt_id: str = "j-1.1", rank: int = 0) -> str:
        return self.engine.logs(attempt_id, rank, 0, 1 << 20).data.decode()

    def number_from_output(self, word: str, attempt_id: str = "j-1.1", rank: int = 0) -> int:
        """The number that the job printed after a word."""

        def found() -> list[str]:
            lines = self.output(attempt_id, rank).splitlines(keepends=True)
            return [line.split()[1] for line in lines if line.startswith(f"{word} ") and line.endswith("\n")]

        wait_until(found, f"{word} in the log of {attempt_id}")
        return int(found()[0])

    def clean_up(self) -> None:
        """Ends everything that a test started."""
        engine, listener = self.restart()
        for attempt_id in self._launched:
            engine.stop(attempt_id, 0.0)
        for status in engine.observe().attempts:
            if status.phase is AttemptPhase.RUNNING:
                listener.ended(status.attempt_id)
        for each in self._engines:
            each.close()


class LocalHarness(EngineHarness):
    name = "local"
    engine: LocalEngine

    def __init__(
        self,
        root: Path,
        *,
        cgroups: CgroupSupport | None = None,
        isolation: Isolation | None = None,
        runtime: ContainerRuntime | None = None,
        storage: StoragePlaces | None = None,
    ) -> None:
        super().__init__()
        self.isolation = isolation
        self.storage = storage
        self.runtime = runtime
        self.root = root
        self.layout = Layout(str(root))
        self.cgroups = cgroups
        self.start()

    def new_engine(self) -> LocalEngine:
        return LocalEngine(
            root=self.root,
            fleet=fleet_for(virtual_nodes_text="3x4xA10", drill_directory=self.root),
            log_limit_bytes=self.log_limit_bytes,
            rescan_seconds=0.1,
            cgroups=self.cgroups,
            isolation=self.isolation,
            runtime=self.runtime,
            storage=self.storage,
            server_env={**os.environ, "CORRAL_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret"},
        )

    def crash_helper(self) -> None:
        kill(self.spawner_pid())

    def is_alive(self, attempt_id: str = "j-1.1", rank: int = 0) -> bool:
        return claim_state(self.layout.rank_dir(attempt_id, rank)) is ClaimState.HELD

    def bytes_kept(self) -> int:
        return sum(path.stat().st_size for path in self.root.rglob("log.*"))

    def spawner_pid(self) -> int:
        link = self.engine._launches._link
        assert link is not None
        return link.pid

    def supervisor_pid(self, attempt_id: str = "j-1.1", rank: int = 0) -> int:
        return int(read_claim(self.layout.rank_dir(attempt_id, rank)).supervisor["pid"])


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not process_exists(pid), f"end of {pid}")
