"""A server whose cluster has GPUs of a device plugin and GPUs of a driver of Dynamic Resource Allocation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.audit import assert_no_gpu_given_twice, attempts_of
from tests.integration.fleet.test_story_kubernetes import NOTHING, submit, wait_for_ends
from tests.integration.kubernetes_server import claims_left, clean_up, left_behind, server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.cluster import DRIVER_NAME, KubernetesCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def server(device_cluster: KubernetesCluster, tmp_path: Path) -> Iterator[CorralServer]:
    started = server_on(device_cluster.access, tmp_path / "corral", pending_seconds=5)
    started.start()
    yield started
    if started.is_running:
        started.stop()
    clean_up(device_cluster.access, started)


def test_jobs_have_the_very_gpus_of_their_plans_beside_claims_of_others(
    server: CorralServer, device_cluster: KubernetesCluster
) -> None:
    access, rng = device_cluster.access, random.Random(7)
    strangers = [f"stranger-{uuid4().hex[:8]}" for _ in range(2)]
    access.add_pod(strangers[0], gpus=4, node="gpu1")
    access.add_claiming_pod(strangers[1], device_class=DRIVER_NAME, count=4)
    with server.http() as http:
        overtaken = submit(http, name="overtaken", command=["true"], gpus=4)
        wait_until(
            lambda: "8 GPUs are held by others outside corral" in http.get(f"/jobs/{overtaken}/why").text,
            "why names the others",
        )
        for name in strangers:
            access.delete_pod(name)
        for number in range(12):
            if number % 4 == 0:
                name = f"stranger-{uuid4().hex[:8]}"
                access.add_claiming_pod(name, device_class=DRIVER_NAME, script="sleep 2")
            command = ["sh", "-c", "echo $PREPARED_GPUS; sleep 0.2"]
            submit(http, name=f"mine-{number}", command=command, gpus=rng.choice([1, 2]))
    jobs = wait_for_ends(server)
    assert {name: job["state"] for name, job in jobs.items()} == dict.fromkeys(jobs, "completed")

    assert_no_gpu_given_twice(attempts_of(server.home))
    compared = 0
    with server.http() as http:
        for job in jobs.values():
            (grant,) = http.get(f"/jobs/{job['id']}/attempts").json()["items"][-1]["allocation"]["grants"]
            if grant["node"] == "gpu2" and job["name"] != "overtaken":
                assert http.get(f"/jobs/{job['id']}/logs").text.strip() == ",".join(grant["gpus"])
                compared += 1
    assert compared > 0
    wait_until(lambda: left_behind(access, server) == NOTHING, "nothing is left")
    wait_until(lambda: claims_left(access, server) == [], "no claim is left")
