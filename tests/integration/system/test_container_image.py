"""The container image: built, started by itself, and installed by the Helm chart in Kubernetes, where it runs a job."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.servers.corral_image import HOW_TO_INSTALL, ROOT, can_build, corral_image, own_limits, podman
from tests.servers.kubernetes import programs
from tests.servers.kubernetes.cluster import KubernetesCluster
from tests.servers.kubernetes.processes import wait_for

pytest_plugins = ("tests.servers.fixtures",)
# The image is built, and copied to the nodes, while other tests use the machine.
pytestmark = pytest.mark.timeout(1500)

PASSWORD = "a-password-of-the-test"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The one that is named in the environment, if one is: to build it takes minutes."""
    if given := os.environ.get("CORRAL_TEST_IMAGE_OF_CORRAL"):
        yield given
        return
    if not can_build():
        pytest.skip(HOW_TO_INSTALL)
    with corral_image(tmp_path_factory.mktemp("image")) as address:
        yield address


def test_image_serves_as_an_ordinary_account_on_a_read_only_root(image: str) -> None:
    name = f"corral-test-{uuid4().hex[:8]}"
    limits = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=none", *own_limits()]
    ask = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8470/readyz').read().decode())"
    try:
        podman("run", "--detach", f"--name={name}", *limits, "--tmpfs=/tmp", "--env=CORRAL_VIRTUAL_GPUS=2xA10", image)
        wait_for(lambda: '"ready"' in podman("exec", name, "python3", "-c", ask, check=False), "the server")

        assert podman("exec", name, "id", "-u") == "10001"
        assert podman("exec", name, "corral", "--version").endswith("0.1.0")
    finally:
        podman("rm", "--force", "--time=0", name)


@pytest.fixture
def release(kubernetes_cluster: KubernetesCluster, image: str, tmp_path: Path) -> Iterator[str]:
    """The address of a server that Helm has installed in a namespace which allows no root."""
    helm = programs.find_helm()
    if helm is None:
        pytest.skip(programs.HOW_TO_BUILD)
    access, name = kubernetes_cluster.access, f"platform-{uuid4().hex[:8]}"
    podman("save", "--format=docker-archive", f"--output={tmp_path}/corral.tar", image)
    kubernetes_cluster.load_image(tmp_path / "corral.tar")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    access.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "operator", "namespace": name},
            "stringData": {"password": PASSWORD},
        },
    )
    repository, _, tag = image.rpartition(":")
    values = {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "operator": {"secret": "operator"},
        "home": {"persistent": False},
        "nodeSelector": {"hollow": "false"},
        "cluster": {"kubernetes": {"default_image": access.image, "node_selector": {"hollow": "false"}}},
    }
    command = [str(helm), f"--kubeconfig={access.kubeconfig}", f"--namespace={name}"]
    chart = [str(ROOT / "deploy" / "helm" / "corral"), "--values=-", "--wait", "--timeout=5m"]
    done = subprocess.run(
        [*command, "install", "corral", *chart], input=json.dumps(values), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + access.kubectl("get", "events", f"--namespace={name}")
    pod = access.get(f"/api/v1/namespaces/{name}/pods/corral-0")
    yield f"http://{pod['status']['podIP']}:8470/api/v1"
    subprocess.run([*command, "uninstall", "corral"], check=True, capture_output=True)
    access.kubectl("delete", "namespace", name, "--wait=false")


def test_the_chart_installs_a_server_that_runs_a_job_with_the_rights_it_grants(release: str) -> None:
    login = {"user": "operator", "password": PASSWORD, "token_name": "test"}
    token = httpx.post(f"{release}/auth/login", json=login, timeout=30).raise_for_status().json()["token"]
    with httpx.Client(base_url=release, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        body = {"command": ["sh", "-c", "echo GPUs $CUDA_VISIBLE_DEVICES"], "gpus": 2}
        job = client.post("/jobs", json=body).raise_for_status().json()["id"]

        wait_for(lambda: client.get(f"/jobs/{job}").json()["state"] == "completed", "the job", seconds=180)

        assert "GPUs" in client.get(f"/jobs/{job}/logs").raise_for_status().text
