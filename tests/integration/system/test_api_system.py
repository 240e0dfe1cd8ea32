"""The server itself: starting, stopping, health, metrics, pages and its own description."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from corral.server.http.app import bare_app
from corral.server.http.description.api_description import describe, dumps
from tests.integration.api import API, anonymous, api_server, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

OPENAPI = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "2x4xA10", users=("ann",)) as running:
        yield running


def start_another(home: Path, port: int) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CORRAL_HOME": str(home), "CORRAL_BOOTSTRAP_PASSWORD": "some-password"}
    command = [sys.executable, "-m", "corral.cli.main", "up", "--port", str(port), "--virtual-gpus", "1xT4"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_server_of_the_same_home_is_refused_with_the_first_ones_pid(server: CorralServer) -> None:
    assert server.process is not None
    second = start_another(server.home, 0)
    assert second.returncode != 0
    assert f"process {server.process.pid}" in second.stderr
    with server.http() as http:
        assert http.get("/readyz").status_code == 200


def test_a_port_in_use_is_named(server: CorralServer, tmp_path: Path) -> None:
    second = start_another(tmp_path / "home", server.port)
    assert second.returncode != 0
    assert f"port {server.port} on 127.0.0.1 is in use" in second.stderr


def test_the_options_are_described_and_every_one_is_accepted(server: CorralServer) -> None:
    with server.http("ann") as http:
        options = http.get("/options").raise_for_status().json()
    assert options["ordering_policies"][0]["name"] == "fair-share"
    assert all(option["description"] for kind in options.values() for option in kind)
    with server.http() as http:
        http.post("/queues", json={"name": "any"}).raise_for_status()
        for policy in options["ordering_policies"]:
            # An order without ranks cannot preempt, and the server says so.
            edit = http.patch("/queues/any", json={"policy": policy["name"], "preempts": True})
            assert edit.status_code == (200 if policy["ranks_jobs"] else 422), policy
            http.patch("/queues/any", json={"policy": policy["name"], "preempts": False}).raise_for_status()
        for placement in options["placement_policies"]:
            changed = http.patch("/queues/any", json={"placement": placement["name"]}).raise_for_status().json()
            assert changed["placement"] == placement["name"]
        functions = [function["name"] for function in options["functions"]]
        group = http.post("/permission-groups", json={"name": "all", "functions": functions}).raise_for_status().json()
        assert group["functions"] == functions


def test_health_needs_no_sign_in_and_metrics_do(server: CorralServer) -> None:
    with anonymous(server) as client:
        for path in ("/healthz", "/readyz", f"{API}/healthz", f"{API}/readyz"):
            assert client.get(path).status_code == 200
        problem(client.get("/metrics"), 401)
    with server.http("ann") as http:
        text = http.get(f"{server.url}/metrics").text
        assert 'corral_gpus{pool="default",model="A10"} 8' in text
        assert 'corral_queue_length{queue="default"} 0' in text
        assert 'corral_jobs{state="running"} 0' in text
        assert f'route="{API}/readyz"' in text
        assert "corral_cycle_seconds_count" in text
        # One label value per route, however many things there are.
        http.get("/jobs/j-77")
        assert "j-77" not in http.get("/metrics").text


def test_metrics_can_be_opened_for_monitoring(tmp_path: Path) -> None:
    config = tmp_path / "corral.yaml"
    config.write_text("server: {metrics_open: true}\n")
    with api_server("--virtual-gpus", "1xT4", "--config", str(config)) as server, anonymous(server) as client:
        assert "corral_build_info" in client.get("/metrics").text


def test_the_fleet_is_shown_with_its_readings(server: CorralServer) -> None:
    with server.http("ann") as http:
        nodes = http.get("/nodes").json()["items"]
        assert [node["gpus_total"] for node in nodes] == [4, 4]
        wait_until(lambda: http.get("/gpus").json()["items"][0]["reading"] is not None, "the GPUs are read")
        gpus = http.get("/gpus", params={"limit": 3}).json()
        rest = http.get("/gpus", params={"cursor": gpus["next_cursor"]}).json()
        assert len({gpu["id"] for gpu in gpus["items"] + rest["items"]}) == 8
        assert gpus["items"][0]["reading"]["temperature_celsius"] > 0
        [cluster] = http.get("/clusters").json()["items"]
        assert (cluster["engine"], cluster["healthy"], cluster["nodes"], cluster["gpus"]) == ("local", True, 2, 8)
        panel = http.get("/panel").json()["items"]
        assert {row["total"] for row in panel} == {8}
        assert http.get("/scores").json()["items"] == []
        about = http.get("/about").json()
        assert about["uptime_seconds"] > 0
        assert about["store"]
    with server.http() as operator:
        assert operator.post(f"/nodes/{nodes[0]['id']}/cordon").json()["state"] == "cordoned"
        assert operator.post(f"/nodes/{nodes[0]['id']}/drain").json()["state"] == "drained"
        assert operator.post(f"/nodes/{nodes[0]['id']}/uncordon").json()["state"] == "ready"
        gpu = quote(gpus["items"][0]["id"], safe="")
        assert operator.post(f"/gpus/{gpu}/reset-health").json()["health"] == "healthy"


def test_pages_bring_nothing_from_elsewhere_and_run_no_inline_script(server: CorralServer) -> None:
    with anonymous(server) as client:
        home = client.get("/")
        assert "corral" in home.text
        problem(client.get("/api/docs"), 401)
    with server.http() as http:
        docs = http.get(f"{server.url}/api/docs")
        assert "/api/v1/jobs:batch" in docs.text
        for page in (home, docs):
            scripts = re.findall(r"<script[^>]*>", page.text)
            assert all(' src="/assets/' in script for script in scripts), "only files of our own"
            assert "://" not in page.text.replace("http://www.w3.org", "")
            assert "default-src 'self'" in page.headers["content-security-policy"]
            assert page.headers["x-content-type-options"] == "nosniff"
        assert http.get("/openapi.json").json() == describe(bare_app())


def test_the_kept_description_is_current() -> None:
    current = dumps(describe(bare_app()))
    assert OPENAPI.read_text(encoding="utf-8") == current, (
        "run: python -m corral.server.http.openapi > docs/reference/openapi.json"
    )


def test_every_operation_has_a_stable_name_a_tag_and_its_errors() -> None:
    operations = [entry for path in describe(bare_app())["paths"].values() for entry in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for operation in operations:
        assert operation["tags"]
        assert operation["operationId"].replace("_", "").isalpha()
        if operation.get("security") != []:
            assert "401" in operation["responses"]


def test_a_request_id_comes_back_and_a_strange_one_is_replaced(server: CorralServer) -> None:
    with anonymous(server) as client:
        assert client.get("/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
        assert client.get("/healthz", headers={"X-Request-ID": "a b<script>"}).headers["x-request-id"].isalnum()


def test_a_stop_is_quick_and_clean_while_streams_are_open_and_jobs_go_on() -> None:
    with api_server() as server:
        with server.http() as http:
            job = http.post("/jobs", json={"command": ["sleep", "30"], "gpus": 1, "name": "goes-on"}).json()
            wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "running", "it runs")
        with httpx.Client(timeout=30) as client:
            headers = {"Authorization": f"Bearer {server.token()}"}
            for path in ("stream", f"jobs/{job['id']}/logs?follow=true"):
                request = client.build_request("GET", f"{server.url}{API}/{path}", headers=headers)
                client.send(request, stream=True)
            assert server.stop() == 0
        server.start()
        with server.http() as http:
            again = http.get(f"/jobs/{job['id']}").json()
            assert (again["state"], again["attempt"]) == ("running", 1)
            http.post(f"/jobs/{job['id']}/stop").raise_for_status()
            wait_until(lambda: http.get(f"/jobs/{job['id']}").json()["state"] == "stopped", "it is stopped")
        assert server.process is not None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0
        assert "Traceback" not in server.log()
