"""Days on a real Kubernetes with two nodes of eight GPUs: crashes of everything, drains, and pods of others."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.contract.kubernetes_harness import NAMESPACE
from tests.integration.audit import (
    assert_gangs_are_whole,
    assert_journal_replays,
    assert_no_gpu_given_twice,
    attempts_of,
)
from tests.integration.kubernetes_server import clean_up, left_behind, pods_of, server_on
from tests.integration.system.test_crashes import Witness, all_jobs
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.cluster import KubernetesCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOTHING: dict[str, list[str]] = {"pods": [], "services": [], "secrets": []}


@pytest.fixture
def server(kubernetes_cluster: KubernetesCluster, tmp_path: Path) -> Iterator[CorralServer]:
    started = server_on(kubernetes_cluster.access, tmp_path / "corral", pending_seconds=5)
    started.start()
    yield started
    if started.is_running:
        started.stop()
    clean_up(kubernetes_cluster.access, started)


def wait_for_ends(server: CorralServer, seconds: float = 240.0) -> dict[str, dict[str, Any]]:
    with server.http() as http:

        def unfinished() -> list[dict[str, Any]]:
            return [job for job in all_jobs(http) if job["state"] not in ("completed", "failed", "stopped")]

        try:
            wait_until(lambda: not unfinished(), "every job ends", seconds=seconds)
        except AssertionError as late:
            left = [(job["name"], job["state"], http.get(f"/jobs/{job['id']}/why").text) for job in unfinished()]
            raise AssertionError(f"{late}: {left}\n{server.log()[-3000:]}") from late
        return {job["name"]: job for job in all_jobs(http)}


def strange_name() -> str:
    """The name of another user's pod."""
    return f"stranger-{uuid4().hex[:8]}"


def state(http: httpx.Client, job_id: str) -> str:
    return str(http.get(f"/jobs/{job_id}").json()["state"])


def submit(http: httpx.Client, **body: Any) -> str:
    answer = http.post("/jobs", json={"time": "5m", **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_nothing_is_lost_and_nothing_runs_twice_whatever_dies(
    server: CorralServer, kubernetes_cluster: KubernetesCluster
) -> None:
    rng, witness = random.Random(5), Witness(server.home.parent / "shared" / "lines")
    witness.path.chmod(0o666)
    access, node, other = kubernetes_cluster.access, *map(kubernetes_cluster.node, ("gpu1", "gpu2"))
    expected: dict[str, tuple[int, int]] = {}

    def submit_some() -> None:
        with server.http() as http:
            for number in range(3):
                name, exit_code = f"crash-{len(expected):03d}", rng.choice([0, 0, 3])
                shape = {"gpus": 2, "nodes": 2} if number == 0 else {"gpus": rng.choice([1, 4])}
                if number == 0:
                    exit_code = 0  # the first instance that fails stops the others of its gang, also before they begin
                submit(http, name=name, command=witness.command(rng.choice([0.1, 2.0, 6.0]), exit_code), **shape)
                expected[name] = exit_code, shape.get("nodes", 1)

    def strange() -> None:
        access.add_pod(strange_name(), gpus=rng.choice([1, 4]), script=f"sleep {rng.choice([1, 4])}")

    submit_some()
    server.kill()
    server.start()
    submit_some()
    strange()
    node.kill_daemon("kubelet")
    other.kill_daemon("containerd")
    server.kill()
    node.start_daemon("kubelet")
    other.start_daemon("containerd")
    server.start()
    submit_some()
    for daemon in ("kube-apiserver", "etcd"):
        kubernetes_cluster.kill_daemon(daemon)
    with server.http() as http:
        wait_until(lambda: not http.get("/clusters").json()["items"][0]["healthy"], "the outage is seen")
    server.kill()
    for daemon in ("etcd", "kube-apiserver"):
        kubernetes_cluster.start_daemon(daemon)
    server.start()
    submit_some()
    strange()
    server.kill()
    server.start()

    jobs = wait_for_ends(server)
    assert {name: (job["exit_code"], job["end_reason"]) for name, job in jobs.items()} == {
        name: (exit_code, "exit_code") for name, (exit_code, _) in expected.items()
    }
    for word in ("begin", "end"):
        ran = Counter[str]()
        for line, count in witness.lines(word).items():
            ran[line.partition(".")[0]] += count
        assert ran == {jobs[name]["id"]: nodes for name, (_, nodes) in expected.items()}, word
    wait_until(lambda: left_behind(access, server) == NOTHING, f"nothing is left: {left_behind(access, server)}")
    attempts = attempts_of(server.home)
    assert_no_gpu_given_twice(attempts)
    assert_gangs_are_whole(attempts, {jobs[name]["id"]: nodes for name, (_, nodes) in expected.items()})
    assert assert_journal_replays(server.home) > 0


SAVES = """
echo "$CORRAL_ATTEMPT_ID begins at $(cat "$CORRAL_CHECKPOINT_DIR/step" 2>/dev/null)"
trap 'echo 42 >"$CORRAL_CHECKPOINT_DIR/step"; exit 143' TERM
[ -e "$CORRAL_CHECKPOINT_DIR/step" ] && exit 0
sleep 600 & wait
"""


def test_an_eviction_gives_grace_and_the_job_comes_back_elsewhere_with_what_it_saved(
    server: CorralServer, kubernetes_cluster: KubernetesCluster
) -> None:
    access = kubernetes_cluster.access
    with server.http() as http:
        job = submit(http, command=["sh", "-c", SAVES], gpus=1, grace="20s")
        wait_until(lambda: "begins at" in http.get(f"/jobs/{job}/logs").text, "its program runs")
        (pod,) = pods_of(access, server, job)
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        access.kubectl("cordon", node)
        try:
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": NAMESPACE},
            }
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
            access.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(eviction))
            wait_until(lambda: state(http, job) == "completed", "it completes elsewhere")
        finally:
            access.kubectl("uncordon", node)
        first, second = http.get(f"/jobs/{job}/attempts").json()["items"]
        assert first["end_reason"] == "evicted"
        assert "evicted in Kubernetes" in first["message"]
        assert [grant["node"] for grant in second["allocation"]["grants"]] != [node]
        assert f"{job}.2 begins at 42" in http.get(f"/jobs/{job}/logs").text
    wait_until(lambda: left_behind(access, server) == NOTHING, "nothing is left")


def test_a_job_whose_node_loses_power_goes_on_elsewhere_and_nothing_of_it_stays(
    server: CorralServer, kubernetes_cluster: KubernetesCluster
) -> None:
    access = kubernetes_cluster.access
    with server.http() as http:
        job = submit(http, command=["sh", "-c", '[ "${CORRAL_ATTEMPT_ID#*.}" = 2 ] || sleep 600'], gpus=8)
        other = submit(http, command=["sleep", "20"], gpus=8)
        wait_until(lambda: {state(http, one) for one in (job, other)} == {"running"}, "both run")
        node = http.get(f"/jobs/{job}").json()["allocation"]["grants"][0]["node"]
        kubernetes_cluster.cut_power(node)
        try:
            wait_until(lambda: state(http, job) == "completed", "it completes elsewhere", seconds=200)
            first, second = http.get(f"/jobs/{job}/attempts").json()["items"]
            assert first["end_reason"] == "node_lost"
            assert [grant["node"] for grant in second["allocation"]["grants"]] != [node]
            assert http.get(f"/jobs/{other}").json()["attempt"] == 1
            states = {one["id"]: one["state"] for one in http.get("/nodes").json()["items"]}
            assert states[node] == "down"
        finally:
            kubernetes_cluster.start_node(node)
        wait_until(
            lambda: all(one["state"] == "ready" for one in http.get("/nodes").json()["items"]),
            "it is back",
            seconds=120,
        )
    assert {job["state"] for job in wait_for_ends(server).values()} == {"completed"}
    wait_until(lambda: left_behind(access, server) == NOTHING, "nothing is left", seconds=120)


def test_pods_of_others_at_random_moments_stop_no_job(
    server: CorralServer, kubernetes_cluster: KubernetesCluster
) -> None:
    access, rng = kubernetes_cluster.access, random.Random(3)
    holding = {strange_name(): node for node in kubernetes_cluster.real_names}
    for name, node in holding.items():
        access.add_pod(name, gpus=8, node=node, script="sleep 600")
    with server.http() as http:
        # It may be planned by what was seen before: then Kubernetes does not place it, and it is taken back.
        overtaken = submit(http, name="overtaken", command=["true"], gpus=8)
        wait_until(
            lambda: "16 GPUs are held by others outside corral" in http.get(f"/jobs/{overtaken}/why").text,
            "why names the others",
        )
        for name in holding:
            access.delete_pod(name)
        for number in range(10):
            if rng.random() < 0.6:
                seconds = rng.choice([1, 3])
                access.add_pod(strange_name(), gpus=rng.choice([1, 4, 8]), script=f"sleep {seconds}")
            shape = rng.choice([{"gpus": 2}, {"gpus": 8}, {"gpus": 4, "nodes": 2}])
            submit(http, name=f"mine-{number}", command=["sleep", "0.2"], **shape)
            time.sleep(rng.uniform(0.0, 0.3))
    jobs = wait_for_ends(server)
    assert {name: job["state"] for name, job in jobs.items()} == dict.fromkeys(jobs, "completed")
    assert len(jobs) == 11
    wait_until(lambda: left_behind(access, server) == NOTHING, "nothing is left")


def test_fair_share_starts_jobs_in_the_same_order_as_on_the_local_engine(
    kubernetes_cluster: KubernetesCluster, tmp_path: Path
) -> None:
    def order_on(server: CorralServer) -> list[str]:
        """Users with unequal use before submit while everything is held; then one job after the other may start."""
        server.start()
        try:
            with server.http() as http:
                queue = {"name": "one-by-one", "policy": "fair-share", "max_gpus": 8}
                assert http.post("/queues", json=queue).status_code == 201
                holds = submit(http, name="holds", command=["sleep", "600"], gpus=8, queue="one-by-one")
                wait_until(lambda: state(http, holds) == "running", "everything is held")
            # How long they run differs by far more than what an engine needs to start and end them.
            for user, seconds, priorities in (("ann", 0.5, (5, 3)), ("ben", 7, (5, 5)), ("eve", 3.5, (1, 7))):
                server.add_user(user)
                with server.http(user) as http:
                    for number, priority in enumerate(priorities):
                        body = {"name": f"{user}-{number}", "command": ["sleep", str(seconds)], "priority": priority}
                        submit(http, gpus=8, queue="one-by-one", **body)
            with server.http() as http:
                assert http.post(f"/jobs/{holds}/stop").status_code == 200
            names = {job["id"]: name for name, job in wait_for_ends(server).items()}
        finally:
            server.stop()
        attempts = sorted(attempts_of(server.home), key=lambda attempt: attempt.planned_at)
        return [names[attempt.job_id] for attempt in attempts]

    servers = (
        server_on(kubernetes_cluster.access, tmp_path / "pods"),
        CorralServer(tmp_path / "local", "--virtual-nodes", "2x8xA100-80G"),
    )
    with ThreadPoolExecutor() as pool:
        ours, local = pool.map(order_on, servers)
    assert ours == local
    assert len(ours) == 7


METRICS = """
mkdir -p /tmp/www
for index in 0 1 2 3 4 5 6 7; do
  echo "DCGM_FI_DEV_GPU_UTIL{gpu=\\"$index\\",UUID=\\"GPU-of-$index\\",Hostname=\\"elsewhere\\"} $((10 + index))"
done >/tmp/www/metrics
exec httpd -f -p 9400 -h /tmp/www
"""


def test_readings_come_from_exporters_in_pods_and_belong_to_the_job_that_has_the_device(
    kubernetes_cluster: KubernetesCluster, tmp_path: Path
) -> None:
    access, monitoring = kubernetes_cluster.access, "monitoring: {interval_seconds: 0.5}\n"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "readings"}}
    access.kubectl("apply", "-f", "-", given=json.dumps(namespace))
    exporters = {strange_name(): node for node in kubernetes_cluster.real_names}
    server = server_on(access, tmp_path / "corral", settings=monitoring, exporter_namespace="readings")
    server.start()
    try:
        for name, node in exporters.items():
            access.add_pod(name, namespace="readings", node=node, script=METRICS)
            access.kubectl("label", "pod", name, "--namespace=readings", "app=nvidia-dcgm-exporter")
        with server.http() as http:
            job = submit(http, command=["sh", "-c", "echo on $CUDA_VISIBLE_DEVICES.; sleep 60"], gpus=1)
            # Kubernetes gives out any device, whatever GPU the plan names. The pod knows it.
            wait_until(lambda: state(http, job) == "running", "it runs")
            (pod,) = pods_of(access, server, job)
            log = access.kubectl("logs", pod["metadata"]["name"], f"--namespace={NAMESPACE}")
            device = int(log.split()[1])
            gpu = http.get(f"/jobs/{job}").json()["allocation"]["grants"][0]["gpus"][0]

            def reading() -> Any:
                found = {one["id"]: one for node in http.get("/nodes").json()["items"] for one in node["gpus"]}
                return found[gpu]["reading"] and found[gpu]["reading"]["utilization"]

            wait_until(lambda: reading() == pytest.approx((10 + device) / 100), "the reading of its device")
            assert http.post(f"/jobs/{job}/stop", json={}).status_code == 200
        wait_for_ends(server)
    finally:
        server.stop()
        clean_up(access, server)
        for name in exporters:
            access.delete_pod(name, "readings")
