"""Jobs from Git repositories on a real Kubernetes: the script runs in the pod, with the shell of the image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.kubernetes_server import clean_up, server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.git_server import TOKEN, USER, HttpsServer, Repository, https_server
from tests.servers.kubernetes.cluster import KubernetesCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ENDED = ("completed", "failed", "stopped")


@dataclass(kw_only=True)
class Place:
    server: CorralServer
    https: HttpsServer
    cluster: KubernetesCluster


@pytest.fixture
def place(kubernetes_cluster: KubernetesCluster, tmp_path: Path) -> Iterator[Place]:
    root = tmp_path / "forge"
    root.mkdir()
    with https_server(root) as https:
        settings = f"git: {{hosts: [localhost], authorities: {https.certificate}}}\n"
        server = server_on(kubernetes_cluster.access, tmp_path / "corral", settings=settings)
        server.start()
        yield Place(server=server, https=https, cluster=kubernetes_cluster)
        server.stop()
        clean_up(kubernetes_cluster.access, server)


def test_a_pod_continues_in_its_copy_and_an_image_without_git_is_named(place: Place) -> None:
    commit = Repository.made(place.https.root / "private", "model").commit({"word": "hidden"})
    url = place.https.url("private/model.git")
    with place.server.http() as http:
        http.put("/secrets/forge", json={"value": f"{USER}:{TOKEN}"}).raise_for_status()
        look = ["sh", "-c", 'cat word; env | grep CORRAL_GIT; echo "$(pwd)"']
        body = {"git": url, "git_secret": "forge", "time": "5m"}
        answer = http.post("/jobs", json={**body, "command": look, "hold": True})
        assert answer.status_code == 201, answer.text
        job = answer.json()["id"]
        missing = http.post("/jobs", json={**body, "command": look}).json()["id"]
        wait_until(lambda: http.get(f"/jobs/{missing}").json()["state"] in ENDED, "it has ended", seconds=120)
        log = http.get(f"/jobs/{missing}/logs").text
        assert http.get(f"/jobs/{missing}").json()["exit_code"] == 97, log
        assert log == "corral: git: the program git is not installed here, on the node or in the image\n"
        # The copy is there already, as for a second attempt.
        own = place.server.home / "jobs" / "000000" / job / "source"
        (own / ".git").mkdir(parents=True)
        (own / ".git" / "corral-commit").write_text(f"{commit}\n")
        (own / "word").write_text("hi\n")
        http.post(f"/jobs/{job}/start").raise_for_status()
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] in ENDED, "it has ended", seconds=120)
        lines = http.get(f"/jobs/{job}/logs").text.splitlines()
        assert lines == [f"corral: git: {url} at {commit}", "hi", f"CORRAL_GIT_COMMIT={commit}", str(own)]
