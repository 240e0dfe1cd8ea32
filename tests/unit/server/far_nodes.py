"""A controller for tests that has this machine and a cluster elsewhere, and knows where the job j-1 runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from corral.control.live.controller import ControllerStopped
from corral.control.ports import EngineUnavailable
from corral.core.model import Allocation, Grant, Node


class Far:
    """An engine whose nodes are elsewhere."""

    def __init__(self) -> None:
        self.is_there = True
        self.asked: list[str] = []

    def address_of(self, node: str) -> str:
        self.asked.append(node)
        if not self.is_there:
            raise EngineUnavailable("Slurm: no answer")
        return "127.0.0.1"


class Desk:
    """A controller that knows where j-1 runs."""

    def __init__(self, cluster: str) -> None:
        self.far = Far()
        self.engines: dict[str, object] = {"local": object(), "hpc": self.far}
        self.is_stopped = False
        job = SimpleNamespace(attempt=2, allocation=Allocation(grants=(Grant(node="node7"),)))
        waiting = SimpleNamespace(attempt=0, allocation=None)
        nodes = {"node7": Node(id="node7", cluster=cluster)}
        self.state = SimpleNamespace(snapshot=SimpleNamespace(jobs={"j-1": job, "j-2": waiting}, nodes=nodes))

    def inspect(self, read: Callable[..., Any], *args: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        if self.is_stopped:
            answer.set_exception(ControllerStopped("the server is stopping"))
        else:
            answer.set_result(read(self.state, *args))
        return answer
