"""`corral cluster clean` removes nothing without a yes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.runner import corral
from tests.unit.engines.kubernetes.api_server import ApiServer, api_server
from tests.unit.engines.kubernetes.fake_cluster import NAMESPACE, FakeCluster
from tests.unit.engines.kubernetes.objects import pod

INSTALLATION = "5b1f09ac"


@pytest.fixture
def cluster() -> FakeCluster:
    found = FakeCluster()
    labels = {"corral/installation": INSTALLATION, "app.kubernetes.io/managed-by": "corral"}
    found.put(pod("corral-5b1f09ac-j-1-1-0", namespace=NAMESPACE, labels=labels))
    return found


@pytest.fixture
def server(cluster: FakeCluster, own_home: Path) -> Iterator[ApiServer]:
    with api_server(cluster.respond) as served:
        own_home.mkdir()
        config = {
            "clusters": [{"name": "k", "cluster": {"server": served.url}}],
            "contexts": [{"name": "k", "context": {"cluster": "k"}}],
            "current-context": "k",
        }
        (own_home / "kubeconfig").write_text(json.dumps(config))
        section = {"kubeconfig": str(own_home / "kubeconfig"), "namespace": NAMESPACE, "default_image": "base:1"}
        clusters = [{"name": "pods", "engine": "kubernetes", "kubernetes": section}]
        (own_home / "corral.yaml").write_text(json.dumps({"cluster": clusters}))
        yield served


def test_nothing_is_removed_without_a_yes(cluster: FakeCluster, server: ApiServer, own_home: Path) -> None:
    env = {"CORRAL_CONFIG": str(own_home / "corral.yaml")}
    refused = corral("cluster", "clean", "pods", "--installation", INSTALLATION, **env)
    assert refused.exit_code != 0
    assert "1 pod" in refused.stderr
    assert not [one for one in server.asked if one.method != "GET"]
    done = corral("cluster", "clean", "pods", "--installation", INSTALLATION, "-y", **env)
    assert done.exit_code == 0, done.stderr
    assert not cluster.pods
