"""The files of `deploy/` with a real Prometheus: it scrapes a corral server and an exporter, and every query of every
dashboard and rule is run.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer, free_port
from tests.servers.prometheus import PrometheusServer

pytest_plugins = ["tests.servers.fixtures"]

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
#: What has no series while all is well, and what virtual GPUs do not tell.
MAY_BE_EMPTY = {
    "GPUs that are not healthy",
    "Memory errors that could not be corrected",
    "Memory errors that were corrected",
    "Replaced memory rows",
    "XID errors",
}
#: What Grafana puts in for its own variables.
GRAFANA = {"__rate_interval": "30s", "__range": "1m", "__interval": "15s"}


@pytest.fixture(scope="module")
def corral(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    """Two models; a job runs, one has failed, one has completed, and one waits for more than there is."""
    config = tmp_path_factory.mktemp("config") / "corral.yaml"
    config.write_text("monitoring: {interval_seconds: 0.5}\nserver: {metrics_per_user: true}\n")
    with api_server("--virtual-nodes", "2x2xA10,1x4xA100-80G", "--config", str(config)) as server:
        with server.http() as http:
            for name, command, gpus in (("runs", "sleep 600", 2), ("fails", "exit 3", 1), ("ends", "true", 1)):
                body = {"name": name, "command": ["sh", "-c", command], "gpus": gpus, "model": "A10"}
                http.post("/jobs", json=body).raise_for_status()
            waits = {"name": "waits", "command": ["true"], "gpus": 4, "model": "A100-80G"}
            http.post("/jobs", json={**waits, "name": "holds", "command": ["sleep", "600"]}).raise_for_status()
            http.post("/jobs", json=waits).raise_for_status()

            def settled() -> bool:
                jobs = http.get("/overview").json()["jobs"]
                return (jobs["running"], jobs["failed"], jobs["completed"], jobs["queued"]) == (2, 1, 1, 1)

            wait_until(settled, "jobs run, wait and have ended")
        yield server
        with server.http() as http:
            for name in ("runs", "holds", "waits"):
                http.post(f"/jobs/{name}/stop")


@pytest.fixture(scope="module")
def exporter() -> Iterator[str]:
    """`corral exporter` with virtual GPUs; its address."""
    port = free_port()
    command = [sys.executable, "-m", "corral.cli.main", "exporter", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--virtual-gpus", "2xH100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: "DCGM_FI_DEV_GPU_TEMP" in _page(f"http://127.0.0.1:{port}/metrics"), "the exporter answers")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def _page(url: str) -> str:
    try:
        return httpx.get(url, timeout=5).text
    except httpx.TransportError:
        return ""


@pytest.fixture
def prometheus(prometheus_server: PrometheusServer, corral: CorralServer, exporter: str) -> PrometheusServer:
    """A Prometheus with the shipped configuration, except for addresses and intervals."""
    shutil.copytree(DEPLOY / "prometheus", prometheus_server.directory)
    (prometheus_server.directory / "corral.token").write_text(corral.token())
    shipped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    shipped["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    places = {
        "corral": corral.url.removeprefix("http://"),
        "gpu-exporter": exporter,
        "prometheus": prometheus_server.url.removeprefix("http://"),
    }
    for scrape in shipped["scrape_configs"]:
        scrape["static_configs"] = [{"targets": [places[scrape["job_name"]]]}]
        scrape["scrape_interval"] = "1s"
    prometheus_server.start(yaml.safe_dump(shipped))
    # A few scrapes, so that there is something to take a rate of.
    wait_until(
        lambda: len(prometheus_server.query("count_over_time(corral_build_info[1m]) > 4")) == 1,
        "the server was scraped a few times",
    )
    wait_until(
        lambda: len(prometheus_server.query("count_over_time(DCGM_FI_DEV_GPU_TEMP[1m]) > 4")) == 2,
        "the exporter was scraped a few times",
    )
    return prometheus_server


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def filled_in(expression: str, dashboard: dict[str, Any]) -> str:
    """The expression as Grafana asks it when everything is selected."""
    for name, value in GRAFANA.items():
        expression = expression.replace(f"${name}", value)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            expression = re.sub(rf"\${variable['name']}\b", variable["allValue"], expression)
    assert "$" not in expression, expression
    return expression


def test_everything_is_scraped_asked_and_answered(prometheus: PrometheusServer) -> None:
    targets = prometheus.get("targets")["activeTargets"]
    assert {target["labels"]["job"]: target["health"] for target in targets} == {
        "corral": "up",
        "gpu-exporter": "up",
        "prometheus": "up",
    }, [target["lastError"] for target in targets]
    _ask_every_panel(prometheus)
    _ask_every_variable(prometheus)
    _every_rule_works(prometheus)


def _ask_every_panel(prometheus: PrometheusServer) -> None:
    silent = []
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        for panel in panels(dashboard):
            for target in panel.get("targets", []):
                found = prometheus.query(filled_in(target["expr"], dashboard))
                if not found and panel["title"] not in MAY_BE_EMPTY:
                    silent.append((path.name, panel["title"], target["expr"]))
    assert not silent


def _ask_every_variable(prometheus: PrometheusServer) -> None:
    """A variable lists the values of a label; every one must have some."""
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                assert asked is not None, variable
                found = prometheus.query(filled_in(asked.group(1), dashboard))
                assert {series["metric"].get(asked.group(2)) for series in found} - {None}, variable["name"]


def _every_rule_works(prometheus: PrometheusServer) -> None:
    groups = {group["name"]: group for group in prometheus.get("rules")["groups"]}
    shipped = {
        group["name"]: group["rules"]
        for path in (DEPLOY / "prometheus" / "rules").glob("*.yml")
        for group in yaml.safe_load(path.read_text())["groups"]
    }
    assert groups.keys() == shipped.keys()
    for name, rules in shipped.items():
        assert [rule["health"] for rule in groups[name]["rules"]] == ["ok"] * len(rules), groups[name]
        for rule in rules:
            prometheus.query(rule["expr"])
            if "record" in rule:
                assert prometheus.query(rule["record"]), rule["record"]
    # Nothing is wrong here: a rule that fires now would fire always.
    firing = [
        alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"] if alert["state"] == "firing"
    ]
    assert firing == []
