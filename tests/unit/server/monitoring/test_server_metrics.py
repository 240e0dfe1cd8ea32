"""The Prometheus text: its form, the server's own numbers, and the fleet's."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from corral.control.live.state import State
from corral.control.ports import GpuReading, HostReading
from corral.control.ports.history import Metric
from corral.control.records import EventRecord
from corral.control.system.policies import Policies
from corral.core.alerts.model import Severity
from corral.core.model import GpuHealth, NodeState, Queue
from corral.core.snapshot.changes import PutJob, PutNode, PutQueue
from corral.server.monitoring.exposition import Histogram, gauge, labels, render
from corral.server.monitoring.fleet_metrics import Seen, families_of, read_fleet
from corral.server.monitoring.server_metrics import ServerMetrics
from corral.telemetry.prometheus import EXPOSED
from corral.telemetry.reading_sums import GpuSums
from corral.telemetry.readings import LatestHost, LatestReading, LatestReadings
from tests.unit.core.builders import node, running, waiting

NOW = 10_000.0
#: One exposed name for everything that a history keeps, and the label with the subject.
NAME_OF = {metric: (named.name, named.label) for metric, named in EXPOSED.items()}


def reading(gpu_id: str, **values: object) -> GpuReading:
    usual = {
        "at": NOW - 2,
        "utilization": 0.8,
        "sm_activity": 0.5,
        "memory_used_bytes": 8 << 30,
        "memory_total_bytes": 80 << 30,
        "temperature_celsius": 61.5,
        "power_watts": 300.0,
        "power_limit_watts": 400.0,
        "energy_joules": 12_345.5,
        "sm_clock_mhz": 1410.0,
        "memory_clock_mhz": 1593.0,
        "ecc_uncorrected": 0,
        "ecc_corrected": 2,
        "remapped_rows": 0,
    }
    return GpuReading(gpu_id=gpu_id, **{**usual, **values})  # type: ignore[arg-type]


def host(name: str, *, stale: bool = False) -> LatestHost:
    reading = HostReading(
        node=name,
        at=NOW,
        cpu=0.25,
        memory_used_bytes=1 << 30,
        memory_total_bytes=4 << 30,
        disk_used_bytes=1 << 40,
        disk_total_bytes=2 << 40,
        network_receive_bytes=1000.5,
        network_send_bytes=0.0,
    )
    return LatestHost(reading=reading, stale=stale)


def a_fleet() -> State:
    """Two nodes of two GPUs; one GPU is held, one has failed, one node is down; a job waits."""
    state = State(Policies())
    first = node("n1", gpus=2)
    broken = replace(first.gpus[1], health=GpuHealth.FAILED)
    state.apply(
        [
            PutQueue(queue=Queue(name="default")),
            PutQueue(queue=Queue(name="night")),
            PutNode(node=replace(first, gpus=(first.gpus[0], broken))),
            PutNode(node=replace(node("n2", gpus=2), state=NodeState.DOWN)),
            PutJob(job=running(1, {"n1": (0,)}, user="ann")),
            PutJob(job=waiting(2, "bob", gpus=2, at=NOW - 90)),
        ]
    )
    return state


def exposed(**changes: object) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Everything that is written about the fleet, read by Prometheus' own parser."""
    state = a_fleet()
    gpus = [gpu.id for found in state.snapshot.nodes.values() for gpu in found.gpus]
    fleet, latest = read_fleet(state, NOW), LatestReadings(stale_after_seconds=15.0)
    latest.update(reading(gpu) for gpu in gpus[:-1])
    usual = {
        "now": NOW,
        "fleet": fleet,
        "read": latest.sums(fleet.held, NOW, idle_below=0.0),
        "job_counts": {"running": 1, "queued": 1, "completed": 7},
        "measured": {gpu: LatestReading(reading=reading(gpu), stale=gpu == gpus[-1]) for gpu in gpus},
        "hosts": {"n1": host("n1"), "n2": host("n2", stale=True)},
        "alerts": [Severity.CRITICAL, Severity.CRITICAL, Severity.INFO],
    }
    text = render(families_of(Seen(**{**usual, **changes})))  # type: ignore[arg-type]
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(**pairs: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairs.items())


def test_a_histogram_is_cumulative_and_ends_with_everything() -> None:
    histogram = Histogram("x_seconds", "X.", labels=("route",), buckets=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 3.0):
        histogram.observe(value, "/jobs")
    assert render([histogram.family()]).splitlines() == [
        "# HELP x_seconds X.",
        "# TYPE x_seconds histogram",
        'x_seconds_bucket{route="/jobs",le="0.1"} 2',
        'x_seconds_bucket{route="/jobs",le="1"} 3',
        'x_seconds_bucket{route="/jobs",le="+Inf"} 4',
        'x_seconds_sum{route="/jobs"} 3.65',
        'x_seconds_count{route="/jobs"} 4',
    ]


def test_labels_are_escaped() -> None:
    text = render([gauge("g", "G.", [(labels(name='a"b\\c\nd'), 1.5)])])
    assert text.splitlines()[2] == 'g{name="a\\"b\\\\c\\nd"} 1.5'


def test_the_server_measures_itself() -> None:
    metrics = ServerMetrics("1.2.3")
    metrics.observe_request("GET", "/api/v1/jobs", 404, 0.002)
    metrics.observe_cycle(0.0001)
    text = render(metrics.families())
    assert 'corral_build_info{version="1.2.3"} 1' in text
    assert 'corral_api_request_seconds_count{method="GET",route="/api/v1/jobs",status="4xx"} 1' in text
    assert "corral_cycle_seconds_count 1" in text
    assert "process_resident_memory_bytes" in text


def test_waits_and_ends_are_counted_from_what_was_committed() -> None:
    metrics = ServerMetrics("1")
    happened: list[tuple[str, dict[str, Any]]] = [
        ("job.planned", {"attempt": 1, "queue": "night", "waited_seconds": 70.0}),
        ("job.running", {"attempt": 1, "queue": "night", "submitted_seconds": 75.0}),
        ("job.running", {"attempt": 2, "queue": "night"}),
        ("gpu.xid", {"code": 79}),
        ("gpu.xid", {"code": 79}),
        ("job.requeued", {"reason": "gpu_failed", "state": "queued"}),
        ("job.planned", {"attempt": 2, "queue": "night", "waited_seconds": 0.0}),
        (
            "job.completed",
            {"reason": "exit_code", "state": "completed", "queue": "night", "completion_seconds": 500.0},
        ),
        ("job.stopped", {"reason": "stopped_by_user"}),
        ("job.preempting", {"rule": "guarantee", "lost_gpu_seconds": 90.0}),
        ("job.gave-way", {"rule": "guarantee", "saved": True, "lost_gpu_seconds": 2.5}),
        ("job.gave-way", {"rule": "guarantee", "saved": True, "lost_gpu_seconds": 1.0}),
        ("node.down", {}),
    ]
    metrics.observe_events(
        [
            EventRecord(at=NOW, actor="corral", action=action, subject="j-1", detail=detail)
            for action, detail in happened
        ]
    )
    text = render(metrics.families())
    assert 'corral_job_wait_seconds_bucket{queue="night",le="60"} 1' in text
    assert 'corral_job_wait_seconds_bucket{queue="night",le="300"} 2' in text
    assert 'corral_job_wait_seconds_sum{queue="night"} 70' in text
    assert 'corral_job_start_seconds_sum{queue="night"} 75' in text
    assert 'corral_job_start_seconds_count{queue="night"} 1' in text, "later attempts are no submissions"
    assert 'corral_job_completion_seconds_sum{queue="night"} 500' in text
    assert 'corral_gpu_xid_errors_total{gpu="j-1",xid="79"} 2' in text
    assert 'corral_jobs_ended_total{state="completed",reason="exit_code"} 1' in text
    assert 'corral_jobs_ended_total{state="stopped",reason="stopped_by_user"} 1' in text
    assert 'corral_jobs_requeued_total{reason="gpu_failed"} 1' in text
    assert 'corral_preemptions_total{rule="guarantee"} 1' in text
    assert 'corral_preemption_lost_gpu_seconds_total{rule="guarantee"} 3.5' in text
    assert 'corral_preemptions_total{rule="overrun"} 0' in text
    # Known from the start, or the first failure of a kind would be no increase.
    assert 'corral_jobs_ended_total{state="failed",reason="oom_killed"} 0' in text
    assert 'corral_jobs_requeued_total{reason="node_lost"} 0' in text


def test_the_fleet_in_numbers() -> None:
    seen = exposed()
    first = a_fleet().snapshot.nodes["n1"].gpus[0]
    pool_and_model = {"pool": first.pool, "model": first.model}
    gpu = of(gpu=first.id, node="n1", **pool_and_model)
    assert seen["corral_gpu_sm_activity_ratio", gpu] == 0.5
    assert seen["corral_cluster_compute_efficiency_ratio", of()] == 0.5
    assert seen["corral_jobs", of(state="completed")] == 7
    assert seen["corral_jobs", of(state="failed")] == 0
    assert seen["corral_gpus", of(**pool_and_model)] == 4
    assert seen["corral_gpus_held", of(**pool_and_model)] == 1
    assert seen["corral_gpus_free", of(**pool_and_model)] == 0, "one is held, one failed, two are down"
    assert seen["corral_gpus_by_health", of(**pool_and_model, health="failed")] == 1
    assert seen["corral_gpus_by_health", of(**pool_and_model, health="suspect")] == 0
    assert seen["corral_nodes", of(state="down")] == 1
    assert seen["corral_node_state", of(node="n2", state="down")] == 1
    assert seen["corral_gpu_held_ratio", gpu] == 1
    assert seen["corral_gpu_health", gpu | of(health="healthy")] == 1
    assert seen["corral_gpu_utilization_ratio", gpu] == 0.8
    assert seen["corral_gpu_sm_clock_hertz", gpu] == 1.41e9
    assert seen["corral_gpu_throttled", gpu] == 0
    assert seen["corral_node_memory_used_bytes", of(node="n1")] == 1 << 30
    assert seen["corral_node_reading_age_seconds", of(node="n1")] == 2
    assert seen["corral_queue_length", of(queue="default")] == 1
    assert seen["corral_queue_wait_seconds", of(queue="default")] == 90
    assert seen["corral_queue_wait_seconds", of(queue="night")] == 0
    assert seen["corral_cluster_allocation_ratio", of()] == 0.75
    assert seen["corral_cluster_utilization_ratio", of()] == pytest.approx(0.2)
    assert seen["corral_cluster_power_watts", of()] == 900
    assert seen["corral_alerts_firing", of(severity="critical")] == 2
    assert seen["corral_alerts_firing", of(severity="warning")] == 0


def test_stale_readings_are_left_out_and_counted() -> None:
    seen = exposed()
    read = {dict(own)["gpu"] for name, own in seen if name == "corral_gpu_temperature_celsius"}
    assert read == {"n1/0", "n1/1", "n2/0"}
    assert seen["corral_node_gpus_stale", of(node="n2")] == 1
    assert [own for name, own in seen if name == "corral_node_cpu_ratio"] == [of(node="n1")]
    nothing = exposed(measured={}, hosts={}, read=GpuSums())
    assert not [name for name, _ in nothing if name.startswith(("corral_gpu_t", "corral_gpu_u", "corral_node_cpu"))]
    # A GPU is held and nothing is measured: what it does is not known, and not zero.
    assert ("corral_cluster_utilization_ratio", of()) not in nothing
    assert nothing["corral_node_gpus_stale", of(node="n1")] == 2


def test_a_lost_gpu_has_only_that_metric() -> None:
    gone = LatestReading(reading=GpuReading(gpu_id="n1/0", at=NOW, lost=True), stale=False)
    seen = exposed(measured={"n1/0": gone})
    about = {name for name, own in seen if ("gpu", "n1/0") in own}
    assert about == {"corral_gpu_lost", "corral_gpu_held_ratio", "corral_gpu_health"}


def test_people_appear_only_where_the_operator_wants_it() -> None:
    assert not [name for name, own in exposed() if "user" in dict(own)]
    seen = exposed(per_user=True)
    assert seen["corral_user_gpus_held", of(user="ann")] == 1
    assert seen["corral_user_jobs", of(user="bob", state="queued")] == 1


def test_every_kept_metric_has_one_name_and_its_subject_follows_from_a_label() -> None:
    seen = exposed()
    assert set(NAME_OF) == set(Metric)
    for name, label in NAME_OF.values():
        rows = [own for found, own in seen if found == name]
        assert rows, name
        assert all(label in dict(own) for own in rows) if label else rows == [of()], name


def test_series_of_single_gpus_can_be_left_out() -> None:
    every, few = exposed(), exposed(per_gpu=False)
    left_out = {name for name, _ in every.keys() - few.keys()}
    assert left_out
    assert all(name.startswith("corral_gpu_") for name in left_out)
    assert few == {key: value for key, value in every.items() if key[0] not in left_out}


def test_promtool_finds_nothing_to_say() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: run scripts/install-test-servers as root (Debian package: prometheus)")
    metrics = ServerMetrics("1.2.3")
    metrics.observe_request("GET", "/api/v1/jobs", 200, 0.002)
    metrics.observe_cycle(0.0001)
    metrics.waits.observe(3.0, "default")
    metrics.ended.count("failed", "oom_killed")
    metrics.requeued.count("node_lost")
    state = a_fleet()
    gpus = [gpu.id for found in state.snapshot.nodes.values() for gpu in found.gpus]
    seen = Seen(
        now=NOW,
        fleet=read_fleet(state, NOW),
        job_counts={},
        measured={gpu: LatestReading(reading=reading(gpu), stale=False) for gpu in gpus},
        hosts={"n1": host("n1")},
        read=GpuSums(),
        per_user=True,
    )
    text = render([*families_of(seen), *metrics.families()])
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
