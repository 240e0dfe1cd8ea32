"""A cluster that does not answer: the server starts, is ready, and runs the jobs of the other clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer, free_port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CorralServer]:
    home = tmp_path / "home"
    home.mkdir()
    nothing = {"clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}]}
    context = {"contexts": [{"name": "k", "context": {"cluster": "k"}}], "current-context": "k"}
    (home / "kubeconfig").write_text(json.dumps(nothing | context))
    section = {"kubeconfig": str(home / "kubeconfig"), "default_image": "base:1"}
    clusters = [{"name": "here", "engine": "local"}, {"name": "away", "engine": "kubernetes", "kubernetes": section}]
    # JSON is YAML, too.
    (home / "corral.yaml").write_text(f"cluster: {json.dumps(clusters)}\nlocal: {{virtual_gpus: 2xT4}}\n")
    started = CorralServer(home, "--config", str(home / "corral.yaml"))
    started.start()
    yield started
    started.stop()


def test_a_dead_cluster_leaves_the_server_ready_and_other_jobs_running(server: CorralServer) -> None:
    with server.http() as http:
        assert http.get("/readyz").json() == {"status": "ready"}
        parts = {part["name"]: part for part in http.get("/parts").json()["items"]}
        assert not parts["cluster away"]["healthy"]
        assert "cluster away was not observed" in parts["cluster away"]["detail"]
        assert parts["cluster here"]["healthy"]
        job = http.post("/jobs", json={"command": ["true"], "gpus": 1}).raise_for_status().json()
        wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "completed", "the job ends")
