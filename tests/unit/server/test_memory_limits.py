"""Processes that work on files and questions of one user have a limit of memory, and say so when it is reached."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from corral.files.memory_limit import LEAST_BYTES, memory_limit_bytes
from corral.server.datasets import operation_process
from tests.integration.waiting import wait_until

PROGRAMS = (
    "corral.server.datasets.operation_process",
    "corral.server.whatif.shadow_worker",
    "corral.server.whatif.time_travel",
)
PROVIDER = "from corral.engines.storage.provider_process import main; main()"
GREEDY = "from corral.files.memory_limit import limit_memory; limit_memory(); bytearray(1 << 46)"


@pytest.mark.parametrize("program", [*(["-m", name] for name in PROGRAMS), ["-c", PROVIDER]])
def test_a_process_for_one_user_has_a_limit(program: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, *program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            # It waits for its order now, which never comes.
            wait_until(lambda: _limit(process.pid) == str(memory_limit_bytes()), "it has limited its memory")
        finally:
            process.kill()


def test_memory_beyond_the_limit_is_not_given() -> None:
    done = subprocess.run([sys.executable, "-c", GREEDY], check=False, capture_output=True, text=True)
    assert "MemoryError" in done.stderr
    assert memory_limit_bytes() >= LEAST_BYTES


def test_the_reason_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(order: Any, line: Any) -> NoReturn:
        raise MemoryError

    answer = io.StringIO()
    monkeypatch.setattr(operation_process, "_do", greedy)
    monkeypatch.setattr(operation_process, "limit_memory", lambda: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}\n"))
    monkeypatch.setattr(sys, "stdout", answer)
    assert operation_process.main() == 1
    assert "needs more memory than" in json.loads(answer.getvalue())["failed"]


def _limit(pid: int) -> str:
    found = re.search(r"^Max data size +(\S+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    return found[1] if found else ""
