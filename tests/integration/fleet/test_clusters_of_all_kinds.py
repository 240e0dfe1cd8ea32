"""One server with this machine, a real Slurm and two clusters of a real Kubernetes: jobs go where they belong."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from corral.engines.kubernetes.api.client import ApiClient
from corral.engines.kubernetes.api.kubeconfig import read_kubeconfig
from tests.contract.kubernetes_harness import NAMESPACE, make_claim
from tests.integration.kubernetes_server import clusters_left, remove_all
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.access import KubernetesAccess
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CLUSTERS = ("local", "hpc", "east", "west")


@pytest.fixture(scope="module")
def server(slurm_cluster: SlurmCluster, kubernetes_access: KubernetesAccess) -> Iterator[CorralServer]:
    home = Path(tempfile.mkdtemp(prefix="corral-four-", dir="/tmp"))
    home.chmod(0o755)
    slurm_cluster.make_whole()
    api = ApiClient(read_kubeconfig([kubernetes_access.kubeconfig]))
    make_claim(api, home)  # and the namespace
    api.close()

    def pods(node: str) -> dict[str, Any]:
        """Each has one node of its own."""
        return {
            "kubeconfig": str(kubernetes_access.kubeconfig),
            "namespace": NAMESPACE,
            "default_image": kubernetes_access.image,
            "node_selector": {"kubernetes.io/hostname": node},
        }

    clusters = [
        {"name": "local"},
        {"name": "hpc", "engine": "slurm", "slurm": {"conf": str(slurm_cluster.conf)}},
        {"name": "east", "engine": "kubernetes", "kubernetes": pods("gpu1")},
        {"name": "west", "engine": "kubernetes", "kubernetes": pods("gpu2")},
    ]
    config = home / "corral.yaml"
    local = "local: {virtual_nodes: 1x4xA100-80G, allow_root: true}"
    config.write_text(f"cluster: {json.dumps(clusters)}\n{local}\n")
    started = CorralServer(home / "home", "--config", str(config))
    started.start()
    yield started
    if started.is_running:
        started.stop()
    slurm_cluster.run("scancel", "--user=root", check=False)
    remove_all(kubernetes_access, started)
    shutil.rmtree(home, ignore_errors=True)


def submit(http: httpx.Client, **body: Any) -> str:
    answer = http.post("/jobs", json={"time": "5m", **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def has_completed(http: httpx.Client, job: str) -> bool:
    return bool(http.get(f"/jobs/{job}").json()["state"] == "completed")


def test_each_job_runs_in_the_cluster_that_it_names_and_all_are_shown(
    server: CorralServer, kubernetes_access: KubernetesAccess
) -> None:
    with server.http() as http:

        def are_healthy() -> bool:
            found = {one["name"]: one["healthy"] for one in http.get("/clusters").json()["items"]}
            return found == dict.fromkeys(CLUSTERS, True)

        wait_until(are_healthy, "all four are healthy", seconds=60)
        by_node = {node["id"]: node["cluster"] for node in http.get("/nodes").json()["items"]}
        assert set(by_node.values()) == set(CLUSTERS)

        jobs = {
            name: submit(http, command=["sh", "-c", f"echo ran in {name}"], gpus=1, labels={"corral.cluster": name})
            for name in CLUSTERS
        }
        for name, job in jobs.items():
            wait_until(partial(has_completed, http, job), name, seconds=120)
            (attempt,) = http.get(f"/jobs/{job}/attempts").json()["items"]
            assert [by_node[grant["node"]] for grant in attempt["allocation"]["grants"]] == [name]
            assert http.get(f"/jobs/{job}/logs").text == f"ran in {name}\n"
    wait_until(lambda: clusters_left(kubernetes_access, server) == [], "nothing is left in Kubernetes", seconds=60)
