"""`corral about`: the parts of the platform under their own names."""

from __future__ import annotations

from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import as_json, scripted


def test_the_name_of_a_cluster_keeps_its_capital_letters() -> None:
    view = {
        "version": "1",
        "build": "Python",
        "uptime_seconds": 60,
        "store": {"kind": "sqlite"},
        "engines": ["local"],
        "parts": [{"name": "cluster GPU-Cluster-01", "detail": ""}],
        "licence": {"detail": "no licence"},
    }
    with scripted(lambda seen, before: as_json(view)) as server:
        result = corral("about", CORRAL_SERVER=server.url)
    assert any(line.split() == ["Cluster", "GPU-Cluster-01", "ok"] for line in result.stdout.splitlines())
