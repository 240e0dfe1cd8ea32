"""A real server of its own for the measurements: real store, real engine, real processes, spoken to over HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

PASSWORD = "benchmark-password"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveServer:
    url: str
    token: str
    process: subprocess.Popen[bytes]
    home: Path
    #: counts the CPU time of the server and of all processes below it; None without permission to make one
    group: Path | None = None

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=60)

    def memory_bytes(self) -> int:
        """Of the server process alone: the jobs are not its own."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def cpu_seconds_with_children(self) -> float | None:
        """Of the server, the spawner, the supervisors and the jobs; None where it cannot be measured."""
        if self.group is None:
            return None
        values = dict(line.split() for line in (self.group / "cpu.stat").read_text().splitlines())
        return int(values["usage_usec"]) / 1e6


@contextmanager
def live_server(
    *,
    virtual_nodes: str | None = "11x4xA10",
    home: Path | None = None,
    settings: str = "",
    scheduling: Mapping[str, object] | None = None,
    program: str = "corral.cli.main",
    is_piped: bool = False,
    **environ: str,
) -> Iterator[LiveServer]:
    """`settings` are further lines of corral.yaml, `scheduling` keys of that section. A `program` that
    `is_piped` has pipes as its standard input and output."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        home = home or Path(scratch)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = home / "bench.yaml"
        section = {"max_queue_size": 1_000_000, **(scheduling or {})}
        config.write_text(f"scheduling: {json.dumps(section)}\n{settings}")
        env = {**os.environ, "CORRAL_HOME": str(home), "CORRAL_BOOTSTRAP_PASSWORD": PASSWORD, **environ}
        command = [sys.executable, "-m", program, "up", "--port", str(port), "--config", str(config)]
        if virtual_nodes is not None:
            command += ["--virtual-nodes", virtual_nodes]
        with (home / "server.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.PIPE if is_piped else None,
                stdout=subprocess.PIPE if is_piped else log,
                stderr=log,
            )
        url = f"http://127.0.0.1:{port}"
        group = _control_group(process)
        try:
            _wait_ready(url, process, home)
            login = {"user": "operator", "password": PASSWORD, "token_name": "bench"}
            token = httpx.post(f"{url}/api/v1/auth/login", json=login, timeout=30).raise_for_status().json()["token"]
            yield LiveServer(url=url, token=token, process=process, home=home, group=group)
        finally:
            process.terminate()
            process.wait(timeout=30)
            if group is not None:
                _remove_group(group)


def _control_group(process: subprocess.Popen[bytes]) -> Path | None:
    """Put the server into a control group of version 2 before it starts others."""
    for root in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        if (root / "cgroup.procs").exists():
            group = root / f"corral-bench-{process.pid}"
            try:
                group.mkdir()
                (group / "cgroup.procs").write_text(str(process.pid))
            except OSError:
                return None
            return group
    return None


def _remove_group(group: Path) -> None:
    """Remove it once the last process below the server has ended."""
    deadline = time.monotonic() + 30
    while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    group.rmdir()


def wait_until_ended(
    client: httpx.Client, count: int, seconds: float = 300.0, *, pause: float = 0.02, fastest: float = float("inf")
) -> None:
    """Until that many jobs have completed. To ask costs the server something, too: where it can end no more than
    `fastest` a second, it is asked the less often the more are left."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        states = client.get("/overview").raise_for_status().json()["jobs"]
        left = count - states.get("completed", 0)
        if left <= 0:
            return
        time.sleep(max(pause, left / fastest / 2))
    raise TimeoutError(f"{count} jobs did not complete within {seconds:.0f} s: {states}")


def _wait_ready(url: str, process: subprocess.Popen[bytes], home: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/readyz", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start:\n{(home / 'server.log').read_text()[-2000:]}")
