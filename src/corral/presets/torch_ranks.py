"""Data parallel training: one process for each GPU of the job, on one node or on the nodes of a gang.

`join` starts the processes of its node and waits for them; in each of them it returns the rank. The first failure of a
process ends the others of its node, and the exit code is that of the process that failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Callable, TypeVar

import torch
from torch import distributed, nn

from corral.checkpoint import EXIT_STOPPED
from corral.presets.training import give_up, say

#: Where the processes of a training meet: an address for `init_process_group`.
MEETING_VARIABLE = "CORRAL_PRESET_MEETING"
#: So long a process that lost its connections waits before it reports that: the failure of another one was the cause,
#: and ends it meanwhile.
_CAUSE_SECONDS = 3.0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Ranks:
    """The place of this process among the processes of its training."""

    rank: int = 0
    world: int = 1
    #: the number of its GPU on its node, and the number of processes there
    local_rank: int = 0
    local_world: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_single(self) -> bool:
        return self.world == 1

    def say(self, text: str) -> None:
        if self.is_first:
            say(text)

    def part_of(self, items: Sequence[Any]) -> Sequence[Any]:
        return items[self.rank :: self.world]

    def largest(self, number: int) -> int:
        if self.is_single:
            return number
        shared = torch.tensor(number, device=_device_of_sums())
        _together(lambda: distributed.all_reduce(shared, distributed.ReduceOp.MAX))
        return int(shared)

    def sum(self, value: float) -> float:
        if self.is_single:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=_device_of_sums())
        _together(lambda: distributed.all_reduce(shared))
        return float(shared)

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in each of them."""
        if self.is_single:
            return [value]
        found: list[Any] = [None] * self.world
        _together(lambda: distributed.all_gather_object(found, value))
        return found

    def use_first_buffers(self, network: nn.Module) -> None:
        """Give all ranks the statistics of normalization that the first one has."""
        if not self.is_single:
            _together(lambda: [distributed.broadcast(buffer, 0) for buffer in network.buffers()])

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Run the block in the first process, then in the others: its refusals are reported once."""
        if not self.is_first:
            self.largest(0)
        yield
        if self.is_first:
            self.largest(0)

    def fail(self, text: str) -> None:
        """End the program for a reason that all ranks have found; the first one reports it."""
        if self.is_first:
            give_up(text)
        self.largest(0)

    def parallel(self, module: nn.Module, *, has_idle_parameters: bool) -> nn.Module:
        """The module with gradients that are the mean of those of all ranks."""
        if self.is_single:
            return module
        return nn.parallel.DistributedDataParallel(module, find_unused_parameters=has_idle_parameters)

    def leave(self) -> None:
        if not self.is_single:
            distributed.destroy_process_group()


def _device_of_sums() -> str:
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"


def _together(call: Callable[[], Answer]) -> Answer:
    try:
        return call()
    except RuntimeError as error:
        wait_for_cause()
        sys.stderr.write(f"another process of this training has ended: {error}\n")
        sys.exit(1)


def wait_for_cause() -> None:
    time.sleep(_CAUSE_SECONDS)


def join(module: str, *, may_use_cpus: bool) -> Ranks:
    """The rank of this process; in the first process of a node this starts the processes of the ranks, and ends with
    them. `module` is the program of a rank, started with the same arguments."""
    env = os.environ
    if "LOCAL_RANK" in env and "RANK" in env:
        return _joined(env)
    count = processes_of_node(env, torch.cuda.device_count(), may_use_cpus=may_use_cpus)
    if count * _nodes(env) == 1:
        return Ranks()
    with tempfile.TemporaryDirectory(prefix="corral-ranks-") as folder:
        started = [[sys.executable, "-m", module, *sys.argv[1:]] for _ in range(count)]
        sys.exit(run_ranks(started, [environment_of(env, local, count, folder) for local in range(count)]))


def processes_of_node(env: Mapping[str, str], found: int, *, may_use_cpus: bool) -> int:
    """One process for each GPU. Where only CPUs compute, one for each GPU that the job holds: virtual ones."""
    held = len([name for name in env.get("CUDA_VISIBLE_DEVICES", "").split(",") if name])
    if not found:
        return max(1, held) if may_use_cpus else 1
    if _nodes(env) > 1 and found < held:
        give_up(f"PyTorch sees {found} of the {held} GPUs that the job has on this node")
    if found < held:
        # CUDA shows one slice of a GPU to a process.
        say(f"this training uses {found} of the {held} GPUs that the job has")
    return found


def _nodes(env: Mapping[str, str]) -> int:
    return int(env.get("NNODES") or 1)


def environment_of(env: Mapping[str, str], local: int, count: int, folder: str) -> dict[str, str]:
    """The environment of one process. The ranks of a gang are numbered node by node."""
    is_gang = _nodes(env) > 1
    address = env.get("MASTER_ADDR", "") if is_gang else "127.0.0.1"
    made = {
        **env,
        "RANK": str((int(env["NODE_RANK"]) * count if is_gang else 0) + local),
        "WORLD_SIZE": str(_nodes(env) * count),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(count),
        # A gang meets at its first node; on one node a private file keeps other users out.
        MEETING_VARIABLE: f"tcp://{address}:{env['MASTER_PORT']}" if is_gang else f"file://{folder}/meeting",
    }
    made.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // count)))
    if address == "127.0.0.1":
        made.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return made


def run_ranks(commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]]) -> int:
    """Run the processes until all have ended, or one has failed; returns the exit code. A warning is passed on: the
    ranks agree on the step at which they stop."""
    running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
    is_warned = False

    def warn(number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
        nonlocal is_warned
        is_warned = True
        for pid in list(running):
            # Not by `Popen`, which could collect the exit code that this function waits for.
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, warn)
    try:
        for command, env in zip(commands, environments):
            child = subprocess.Popen(command, env=dict(env))
            running[child.pid] = (env["RANK"], child)
        if is_warned:
            warn()
        code = 0
        while running:
            pid, status = os.wait()
            if pid not in running:
                continue
            rank, _ = running.pop(pid)
            ended = os.waitstatus_to_exitcode(status)
            if ended == -signal.SIGTERM and is_warned:
                return EXIT_STOPPED  # it was warned before its first step
            if ended not in (0, EXIT_STOPPED):
                sys.stderr.write(f"rank {rank} of {environments[0]['WORLD_SIZE']} failed: the training ends\n")
                return ended if ended > 0 else 128 - ended
            code = code or ended
        return code
    finally:
        for _, child in running.values():
            child.kill()
        for _, child in running.values():
            child.wait()


def _joined(env: Mapping[str, str]) -> Ranks:
    local = int(env["LOCAL_RANK"])
    made = Ranks(int(env["RANK"]), int(env["WORLD_SIZE"]), local, int(env.get("LOCAL_WORLD_SIZE") or 1))
    has_gpus = torch.cuda.is_available()
    if has_gpus:
        torch.cuda.set_device(local)
    if made.world > 1:
        distributed.init_process_group(
            "nccl" if has_gpus else "gloo",
            init_method=env.get(MEETING_VARIABLE, "env://"),
            rank=made.rank,
            world_size=made.world,
        )
    return made
