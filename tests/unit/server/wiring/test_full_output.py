"""Standard output, standard error and the log file are on a full disk: the server works on, and ends as it should."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

import pytest

from corral.server.wiring.server_log import add_log_file
from tests.integration.waiting import wait_until

FULL = Path("/dev/full")
log = logging.getLogger("corral.test")

_END_NOW = """
import sys
from corral.server.wiring.run import _end_now
from corral.server.wiring.server_log import add_log_file, configure_logging
from pathlib import Path
configure_logging(log_format="plain", level="INFO")
add_log_file(Path("/dev/full"), max_bytes=10**6, count=1)
sys.stdout.write("a line that is not written yet")
_end_now(0)
"""


@pytest.fixture
def full_stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        yield
        # What is left cannot be written when it is closed.
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), full.fileno())


def _on_a_full_disk() -> TextIO:
    """The stream of the log file, which from now on cannot be written."""
    handler = logging.getLogger().handlers[-1]
    assert isinstance(handler, logging.FileHandler)
    assert handler.stream is not None
    with FULL.open("wb") as full:
        os.dup2(full.fileno(), handler.stream.fileno())
    return handler.stream


@pytest.mark.usefixtures("full_stderr")
def test_a_line_of_the_log_ends_no_work() -> None:
    close = add_log_file(FULL, max_bytes=10**6, count=1)
    for _ in range(3):
        log.error("the disk is full")
    close()


def test_a_log_file_is_closed_although_its_last_line_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "corral.log"
    close = add_log_file(path, max_bytes=10**6, count=1)
    stream = _on_a_full_disk()
    stream.write("this is still in the buffer")
    close()
    assert "cannot write the log file" in capsys.readouterr().err
    assert stream.closed


def test_the_log_goes_on_when_the_disk_has_room_again(tmp_path: Path) -> None:
    path = tmp_path / "corral.log"
    close = add_log_file(path, max_bytes=4096, count=2)
    _on_a_full_disk()
    log.error("lost")
    log.error("kept")
    close()
    assert path.read_text().endswith("kept\n")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_server_that_must_end_now_ends(tmp_path: Path, stream: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with _started([sys.executable, "-c", _END_NOW], environment, stream, tmp_path / "other") as process:
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(("stream", "said"), [("stdout", "is lost"), ("stderr", "runs at")])
def test_a_server_starts_and_stops_with_a_full_output(tmp_path: Path, stream: str, said: str) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    (home / "corral.yaml").write_text("server:\n  log_file: log\nlocal:\n  virtual_gpus: 1xA10\n")
    (home / "log").symlink_to(FULL)
    environment = {**os.environ, "CORRAL_HOME": str(home), "CORRAL_ALLOW_ROOT": "true"}
    command = [sys.executable, "-m", "corral.cli.main", "up", "--port", "0"]
    with _started(command, environment, stream, other) as server:
        wait_until(lambda: server.poll() is not None or said in other.read_text(), "it has started")
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0, other.read_text()


@contextmanager
def _started(
    command: list[str], environment: dict[str, str], full: str, other: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process one of whose output streams is on a full disk, and the other one a file."""
    with FULL.open("wb") as disk, other.open("wb") as file:
        outputs: tuple[IO[bytes], IO[bytes]] = (disk, file) if full == "stdout" else (file, disk)
        process = subprocess.Popen(command, env=environment, stdout=outputs[0], stderr=outputs[1])
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
