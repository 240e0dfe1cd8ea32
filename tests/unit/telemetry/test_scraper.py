"""Exporters of other nodes, good and bad ones, over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from corral.telemetry import scraper as scraping
from corral.telemetry.scraper import ScrapingCollector, metrics_url, readable_target, split_target

KNOWN = {("n1", 0): "GPU-a", ("n1", 1): "GPU-b", ("n2", 0): "n2-gpu0"}
GOOD = (
    'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="elsewhere"} 10\n'
    'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-unknown",Hostname="n1.example.org"} 20\n'
    'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-other",hostname="n2"} 30\n'
    'DCGM_FI_DEV_GPU_UTIL{gpu="5",UUID="GPU-stranger",Hostname="n1"} 40\n'
    'corral_exporter_cpu_ratio{Hostname="n2"} 0.5\n'
    'corral_exporter_cpu_ratio{Hostname="n9"} 0.5\n'
)

#: for targets that answer well, on a machine that is busy
PATIENCE_SECONDS = 30.0

Answer = Callable[[BaseHTTPRequestHandler], None]


class Target:
    """A real HTTP server that answers as a test likes."""

    def __init__(self) -> None:
        self.answer: Answer = lambda request: None
        self.done = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def says(self, body: str | bytes, status: int = 200) -> None:
        data = body.encode() if isinstance(body, str) else body

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)

        self.answer = answer

    def close(self) -> None:
        self.done.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def target() -> Iterator[Target]:
    found = Target()
    yield found
    found.close()


@pytest.fixture
def collector(target: Target) -> Iterator[ScrapingCollector]:
    found = ScrapingCollector(target.address, lambda: KNOWN, timeout_seconds=PATIENCE_SECONDS)
    yield found
    found.close()


def uses(collector: ScrapingCollector) -> dict[str, float | None]:
    return {reading.gpu_id: reading.utilization for reading in collector.collect(7.0).gpus}


def test_gpus_are_known_by_uuid_or_else_by_host_and_index(target: Target, collector: ScrapingCollector) -> None:
    target.says(GOOD)
    found = collector.collect(7.0)
    assert {reading.gpu_id: (reading.utilization, reading.at) for reading in found.gpus} == {
        "GPU-a": (0.1, 7.0),
        "GPU-b": (0.2, 7.0),
        "n2-gpu0": (0.3, 7.0),
    }
    assert [(host.node, host.cpu) for host in found.hosts] == [("n2", 0.5)]


def test_without_a_host_label_the_address_counts(target: Target) -> None:
    target.says('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 10\n')
    collector = ScrapingCollector(target.address, lambda: {("127.0.0.1", 0): "mine"})
    assert uses(collector) == {"mine": 0.1}
    collector.close()


def test_an_exporter_without_a_known_node_needs_the_nodes_name(target: Target) -> None:
    """An exporter in a container, or of a node that its engine calls otherwise, does not know the node's name."""
    target.says('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-other",Hostname="pod-7f"} 10\ncorral_exporter_cpu_ratio 0.5\n')
    stranger = ScrapingCollector(target.address, lambda: KNOWN)
    assert stranger.problem == "not read yet"
    assert stranger.collect(7.0).gpus == ()
    assert stranger.problem == (
        "it answers, but for no node that is known here (it says 127.0.0.1, pod-7f): "
        f"name its node as NODE={target.address}"
    )
    named = ScrapingCollector(f"n2={target.address}", lambda: KNOWN)
    found = named.collect(7.0)
    assert [reading.gpu_id for reading in found.gpus] == ["n2-gpu0"]
    assert [host.node for host in found.hosts] == ["n2"]
    assert (named.problem, named.label) == ("", f"n2={target.address}")
    wrong = ScrapingCollector(f"n9={target.address}", lambda: KNOWN)
    wrong.collect(7.0)
    assert wrong.problem == "it answers, but node n9 is not known here, or has no such GPUs"
    for each in (stranger, named, wrong):
        each.close()


def test_a_password_in_an_address_is_not_shown() -> None:
    collector = ScrapingCollector("n1=http://ann:secret@gpu-7:9400/metrics")
    assert (collector.label, collector.name) == ("n1=gpu-7:9400", "scrape n1=gpu-7:9400")
    assert collector.url == "http://ann:secret@gpu-7:9400/metrics"


def hang(target: Target) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        target.done.wait()

    return answer


def trickle(target: Target) -> Answer:
    """A byte now and then: no single read ever times out."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not target.done.wait(0.02):
            try:
                request.wfile.write(b"#")
                request.wfile.flush()
            except OSError:
                return

    return answer


def endless(target: Target) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while not target.done.is_set():
                request.wfile.write(b"x" * 65536)
        except OSError:
            return

    return answer


def cut(target: Target) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b"DCGM_FI")

    return answer


@pytest.mark.parametrize("bad", [hang, trickle, endless, cut])
def test_a_target_that_misbehaves_costs_only_its_own_readings(
    target: Target,
    bad: Callable[[Target], Answer],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scraping, "MAX_BYTES", 1 << 20)
    target.answer = bad(target)
    collector = ScrapingCollector(target.address, lambda: KNOWN, timeout_seconds=0.1)
    assert (collector.collect(1.0).gpus, collector.collect(2.0).gpus) == ((), ())
    assert caplog.text.count(target.address) >= 1
    collector.close()
    collector._timeout = PATIENCE_SECONDS
    target.says(GOOD)
    assert len(collector.collect(3.0).gpus) == 3
    collector.close()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("<html>welcome</html>", 200, "no metric of a GPU or a host"),
        (b"\xff\xfe\x00\x01" * 100, 200, "no metric of a GPU or a host"),
        ("", 200, "no metric of a GPU or a host"),
        (GOOD, 503, "HTTP status 503"),
    ],
)
def test_garbage_is_logged_once_until_it_is_over(
    target: Target,
    collector: ScrapingCollector,
    body: str | bytes,
    status: int,
    message: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    target.says(body, status)
    for at in range(3):
        assert collector.collect(float(at)).gpus == ()
    reported = [record for record in caplog.records if record.name == "corral.telemetry.scraper"]
    assert [message in record.getMessage() for record in reported] == [True]


def test_no_exporter_and_a_fleet_that_does_not_answer(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    absent = ScrapingCollector("127.0.0.1:1", lambda: KNOWN, timeout_seconds=0.3)
    assert absent.collect(1.0).gpus == ()
    assert "refused" in absent.problem

    def fails() -> dict[tuple[str, int], str]:
        raise TimeoutError("the controller is busy")

    target.says(GOOD)
    unlucky = ScrapingCollector(target.address, fails)
    assert unlucky.collect(1.0).gpus == ()
    assert "the controller is busy" in caplog.text
    for each in (absent, unlucky):
        each.close()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("gpu-7", "http://gpu-7:9400/metrics"),
        ("gpu-7:9500", "http://gpu-7:9500/metrics"),
        ("http://gpu-7:9400", "http://gpu-7:9400/metrics"),
        ("https://gpu-7/dcgm/metrics?a=b", "https://gpu-7/dcgm/metrics?a=b"),
    ],
)
def test_addresses_are_completed(given: str, url: str) -> None:
    assert metrics_url(given) == url


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("gpu-7", ("", "gpu-7")),
        ("node7=gpu-7:9500", ("node7", "gpu-7:9500")),
        ("n.1-a=http://gpu-7/metrics?a=b", ("n.1-a", "http://gpu-7/metrics?a=b")),
        ("http://gpu-7/metrics?a=b", ("", "http://gpu-7/metrics?a=b")),
    ],
)
def test_a_node_may_stand_before_its_address(given: str, parts: tuple[str, str]) -> None:
    assert split_target(given) == parts
    readable_target(given)
    with pytest.raises(ValueError, match="is neither HOST:PORT nor a URL"):
        readable_target("node7=")


@pytest.mark.parametrize("given", ["", ":9400", "gpu-7:port", "gpu-7:99999", "ftp://gpu-7", "http://", "gpu 7", "//"])
def test_invalid_address_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="is neither HOST:PORT nor a URL"):
        metrics_url(given)
