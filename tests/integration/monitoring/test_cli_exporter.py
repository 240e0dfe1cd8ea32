"""`corral exporter` as a real process: it serves, and ends at a signal."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.waiting import wait_until

pytestmark = pytest.mark.slow


def started(*options: str) -> tuple[subprocess.Popen[str], str]:
    """The process and the address that it names."""
    process = subprocess.Popen(
        [sys.executable, "-m", "corral.cli.main", "exporter", "--host", "127.0.0.1", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.fullmatch(r"Metrics at (http://127\.0\.0\.1:\d+)/metrics\n", line)
    assert found, line + process.stderr.read()
    return process, found.group(1)


def page(address: str) -> str:
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_virtual_gpus_are_served_until_a_signal_ends_it(number: signal.Signals) -> None:
    process, address = started("--port", "0", "--virtual-gpus", "2xA10", "--interval", "0.1")
    try:
        wait_until(lambda: "DCGM_FI_DEV_GPU_UTIL" in page(address), "readings")
        names = {family.name for family in text_string_to_metric_families(page(address))}
        assert {"DCGM_FI_DEV_GPU_TEMP", "corral_exporter_cpu_ratio"} <= names
        process.send_signal(number)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_this_machine_is_served_with_or_without_gpus() -> None:
    process, address = started("--port", "0", "--interval", "0.1")
    try:
        wait_until(lambda: "corral_exporter_memory_total_bytes" in page(address), "a reading of the host")
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--virtual-gpus", "manyxA10"], 2, "expected COUNTxMODEL"),
        (["--interval", "0"], 2, "--interval"),
    ],
)
def test_wrong_options_are_refused(options: list[str], code: int, message: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "corral.cli.main", "exporter", *options], capture_output=True, text=True, check=False
    )
    assert result.returncode == code
    assert message in result.stderr


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = subprocess.run(
            [sys.executable, "-m", "corral.cli.main", "exporter", "--host", "127.0.0.1", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert f"cannot listen at 127.0.0.1:{port}" in result.stderr
