"""`corral exporter`: what it prints is what a Prometheus, and corral itself, reads."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from corral.control.ports import Collected, GpuReading
from corral.engines.local.fleet import VirtualFleet
from corral.engines.local.virtual import build_nodes, parse_virtual_gpus
from corral.telemetry.exporter import Exporter, ExporterServer
from corral.telemetry.page import GpuPlace
from corral.telemetry.scraper import ScrapingCollector
from corral.telemetry.virtual import VirtualCollector


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class Scripted:
    """The readings that a test puts in; None fails."""

    name = "scripted"

    def __init__(self) -> None:
        self.given: Collected | None = Collected()

    def collect(self, at: float) -> Collected:
        if self.given is None:
            raise OSError("no such device")
        return Collected(gpus=[replace(gpu, at=at) for gpu in self.given.gpus], hosts=self.given.hosts)

    def close(self) -> None: ...


def virtual() -> tuple[VirtualCollector, dict[str, GpuPlace]]:
    fleet = VirtualFleet(build_nodes((parse_virtual_gpus("3xA100-80G"),), host="n1"))
    places = {
        gpu.id: GpuPlace(index=gpu.index, model=gpu.model, host=node.id) for node in fleet.nodes() for gpu in node.gpus
    }
    return VirtualCollector(fleet, lambda: dict.fromkeys(places, 1.0)), places


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def exporter(clock: Clock) -> Exporter:
    collector, places = virtual()
    found = Exporter([collector], lambda: places, interval_seconds=1.0, now=clock)
    for _ in range(30):
        clock.at += 1.0
        found.read()
    return found


@pytest.fixture
def server(exporter: Exporter) -> Iterator[ExporterServer]:
    found = ExporterServer(exporter, "127.0.0.1", 0)
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


def get(server: ExporterServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_prometheus_reads_it(exporter: Exporter) -> None:
    families = {family.name: family for family in text_string_to_metric_families(exporter.page())}
    sample = families["DCGM_FI_DEV_GPU_TEMP"].samples[0]
    assert sample.labels == {
        "gpu": "0",
        "UUID": "n1-gpu0",
        "device": "nvidia0",
        "modelName": "A100-80G",
        "Hostname": "n1",
    }
    assert {family.documentation for family in families.values() if not family.documentation} == set()
    assert len(families["DCGM_FI_DEV_GPU_UTIL"].samples) == 3
    assert families["corral_exporter_cpu_ratio"].samples[0].labels == {"Hostname": "n1"}
    (last,) = families["corral_exporter_last_read_timestamp_seconds"].samples
    assert (last.labels, last.value) == ({"collector": "virtual"}, 1030.0)


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not installed: run scripts/install-test-servers as root (Debian package: prometheus)",
)
def test_promtool_finds_nothing_but_the_names_that_nvidia_chose(exporter: Exporter) -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=exporter.page(), capture_output=True, text=True, check=False
    )
    complaints = checked.stderr.splitlines()
    chosen = re.compile(
        r"DCGM_FI_\w+ counter metrics should have \"_total\" suffix|\w+ label names should be .*camelCase.*"
    )
    assert [line for line in complaints if not chosen.match(line)] == []
    assert checked.returncode in (0, 3), checked.stderr  # 3: complaints about style only


def test_scraped_readings_equal_the_measured_ones(exporter: Exporter, server: ExporterServer, clock: Clock) -> None:
    collector, _ = virtual()
    for second in range(30):
        wanted = collector.collect(1001.0 + second)
    scraper = ScrapingCollector(f"127.0.0.1:{server.port}")
    found = scraper.collect(clock.at)
    scraper.close()
    assert list(found.gpus) == list(wanted.gpus)
    assert list(found.hosts) == list(wanted.hosts)


def test_old_readings_are_not_served_and_health_says_so(
    exporter: Exporter, server: ExporterServer, clock: Clock
) -> None:
    assert get(server, "/healthz") == (200, "ok\n")
    clock.at += 4.0
    status, page = get(server, "/metrics")
    assert status == 200
    assert "DCGM" not in page
    assert "corral_exporter_cpu_ratio" not in page
    assert 'corral_exporter_last_read_timestamp_seconds{collector="virtual"} 1030\n' in page
    assert get(server, "/healthz")[0] == 503
    exporter.read()
    assert "DCGM_FI_DEV_GPU_UTIL" in get(server, "/metrics")[1]


def test_other_paths_and_a_client_that_says_nothing_do_no_harm(server: ExporterServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.sendall(b"GET /metr")
        assert get(server, "/")[0] == 404
        assert get(server, "/metrics?x=1")[0] == 200


def test_xids_are_kept_and_a_failing_collector_serves_nothing_stale(clock: Clock) -> None:
    scripted = Scripted()
    place = GpuPlace(index=0, model="H200", host="n1")
    exporter = Exporter([scripted], lambda: {"GPU-a": place}, interval_seconds=1.0, now=clock)
    for xids in ((79,), (), (48, 79)):
        scripted.given = Collected(gpus=(GpuReading(gpu_id="GPU-a", at=0.0, xids=xids), GpuReading(gpu_id="x", at=0.0)))
        exporter.read()
    page = exporter.page()
    labels = 'gpu="0",UUID="GPU-a",device="nvidia0",modelName="H200",Hostname="n1"'
    assert f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} 79\n" in page
    assert f'corral_exporter_gpu_xid_events_total{{{labels},xid="79"}} 2\n' in page
    assert f'corral_exporter_gpu_xid_events_total{{{labels},xid="48"}} 1\n' in page
    assert 'UUID="x"' not in page  # its node is not known
    scripted.given = None
    clock.at += 10.0
    exporter.read()
    assert "DCGM" not in exporter.page()


def test_exporter_reads_by_itself() -> None:
    collector, places = virtual()
    exporter = Exporter([collector], lambda: places, interval_seconds=0.01)
    ready = threading.Event()
    exporter.start()
    while not exporter.is_fresh():
        ready.wait(0.005)
    assert "DCGM_FI_DEV_GPU_UTIL" in exporter.page()
    exporter.stop()
