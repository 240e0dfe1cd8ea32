"""A real Prometheus for tests: its own directory and port, with the configuration that a story gives it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.servers.corral_server import free_port

HOW_TO_INSTALL = "Prometheus is not installed: run scripts/install-test-servers as root (Debian package: prometheus)"


@dataclass(kw_only=True)
class PrometheusServer:
    directory: Path
    program: str
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def backfill(self, openmetrics: str) -> None:
        """Readings of the past, with their times; before it is started."""
        self.directory.mkdir(parents=True, exist_ok=True)
        source = self.directory / "backfill.txt"
        source.write_text(openmetrics)
        promtool = Path(self.program).with_name("promtool")
        subprocess.run(
            [promtool, "tsdb", "create-blocks-from", "openmetrics", source, self.directory / "data"],
            check=True,
            capture_output=True,
            timeout=60,
        )

    def start(self, configuration: str) -> None:
        """Paths in the configuration count from `directory`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "prometheus.yml"
        config.write_text(configuration)
        command = [
            self.program,
            f"--config.file={config}",
            f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/-/ready", timeout=2).is_success:
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.05)
        raise AssertionError(f"Prometheus is not ready:\n{self.log()[-3000:]}")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query; an error of Prometheus fails the test."""
        answer = httpx.post(f"{self.url}/api/v1/query", data={"query": expression}, timeout=30)
        body = answer.json()
        assert body["status"] == "success", f"{expression}\n{body}"
        result = body["data"]["result"]
        return result if body["data"]["resultType"] in ("vector", "matrix") else [{"value": result}]

    def get(self, path: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", timeout=30)
        assert answer.is_success, answer.text
        return answer.json()["data"]

    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=10)


def find_program() -> str | None:
    return shutil.which("prometheus")
