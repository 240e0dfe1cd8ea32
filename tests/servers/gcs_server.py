"""A real emulator of Google Cloud Storage for tests. It holds everything in memory, and believes everybody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from corral.objects.access import ObjectAccess
from tests.servers.corral_server import free_port
from tests.servers.s3_server import end, wait_until_it_answers


@dataclass(kw_only=True)
class GcsServer:
    directory: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def make_bucket(self, name: str) -> None:
        answer = httpx.post(f"{self.url}/storage/v1/b", params={"project": "tests"}, json={"name": name}, timeout=30)
        assert answer.is_success or answer.status_code == httpx.codes.CONFLICT, answer.text

    def access(self, bucket: str, prefix: str = "") -> ObjectAccess:
        """How the bucket is reached, which is made if it is not there."""
        self.make_bucket(bucket)
        return ObjectAccess(kind="gcs", bucket=bucket, prefix=prefix, endpoint=self.url)

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--port", str(self.port)]
        command += ["--host", "127.0.0.1", "--in-memory", "--quiet"]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        wait_until_it_answers(self.url, self._process, self.directory / "log")

    def stop(self) -> None:
        """Stops the server; its objects are lost."""
        end(self._process)
        self._process = None


@contextmanager
def gcs_serving(directory: Path) -> Iterator[GcsServer]:
    server = GcsServer(directory=directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
