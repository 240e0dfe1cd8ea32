"""A real server of its own for the measurements: real store, real engine, real processes, spoken to over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=60)

    def memory_bytes(self) -> int:
        """Of the server process alone: the jobs are not its own."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)


@contextmanager
def live_server(
    *, virtual_nodes: str | None = "11x4xA10", home: Path | None = None, settings: str = "", **environ: str
) -> Iterator[LiveServer]:
    """`settings` are further lines of corral.yaml."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        home = home or Path(scratch)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = home / "bench.yaml"
        config.write_text(f"scheduling: {{max_queue_size: 1000000}}\n{settings}")
        env = {**os.environ, "CORRAL_HOME": str(home), "CORRAL_BOOTSTRAP_PASSWORD": PASSWORD, **environ}
        command = [sys.executable, "-m", "corral.cli.main", "up", "--port", str(port)]
        if virtual_nodes is not None:
            command += ["--virtual-nodes", virtual_nodes]
        with (home / "server.log").open("wb") as log:
            process = subprocess.Popen([*command, "--config", str(config)], env=env, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_ready(url, process, home)
            login = {"user": "operator", "password": PASSWORD, "token_name": "bench"}
            token = httpx.post(f"{url}/api/v1/auth/login", json=login, timeout=30).raise_for_status().json()["token"]
            yield LiveServer(url=url, token=token, process=process, home=home)
        finally:
            process.terminate()
            process.wait(timeout=30)


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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/readyz", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start:\n{(home / 'server.log').read_text()[-2000:]}")
