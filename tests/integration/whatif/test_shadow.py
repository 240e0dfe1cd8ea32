"""The shadow policy on a real server: it reports what it would have done, and outlives its process and the server."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_harness import cli_server, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


def worker_of(server: CorralServer) -> int | None:
    """The process that decides in this server's shadow."""
    assert server.process is not None
    children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    for child in {child for path in children for child in path.read_text().split()}:
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"corral.server.whatif.shadow_worker" in command:
            return int(child)
    return None


def shadow(api: httpx.Client) -> dict[str, Any]:
    answer = api.get("/shadow")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def submit(api: httpx.Client, name: str, gpus: int, priority: int = 5, seconds: float = 0.5) -> str:
    body = {"name": name, "gpus": gpus, "priority": priority, "command": ["sleep", str(seconds)]}
    answer = api.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_shadow_follows_over_every_crash_and_reports_its_differences(tmp_path: Path) -> None:
    with cli_server(tmp_path, "--virtual-gpus", "2xA100-80G") as server:
        operator = operator_of(server)
        with server.http() as api:
            assert not shadow(api)["running"]
            started = operator.read("shadow", "start", "--policy", "fcfs")
            assert (started["running"], started["words"]) == (True, "every queue: policy fcfs")
            wait_until(lambda: worker_of(server) is not None, "the shadow has a process")
            submit(api, "first", 2, seconds=2)
            older = submit(api, "older", 2)
            urgent = submit(api, "urgent", 2, priority=1)
            # the live policy lets the urgent one of the same user go first
            wait_until(lambda: shadow(api)["cycles"]["different"] >= 1, "it would have decided otherwise")
            found = shadow(api)["differences"][-1]
            assert found["words"] == [
                f"would have started {older} before {urgent}",
                f"would not have started {urgent} yet",
            ]
            assert [start["job"] for start in found["live"]] == [urgent]
            assert [(start["job"], start["name"], start["gpus"]) for start in found["shadow"]] == [(older, "older", 2)]
            shown = operator.ok("shadow")
            assert f"would have started {older} before {urgent}" in shown

            # its process is killed
            wait_until(lambda: shadow(api)["cycles"]["seen"] == 3, "all starts were seen")
            worker = worker_of(server)
            assert worker is not None
            os.kill(worker, signal.SIGKILL)
            submit(api, "another", 1)
            wait_until(lambda: worker_of(server) not in (None, worker), "it has another process")
            submit(api, "one-more", 1)
            wait_until(lambda: shadow(api)["cycles"]["failed"] == 1, "that was counted")
            wait_until(lambda: shadow(api)["cycles"]["seen"] >= 4, "it goes on")

        # the server is killed
        server.kill()
        server.start()
        with server.http() as api:
            counted = shadow(api)["cycles"]["seen"]
            assert counted >= 4
            wait_until(lambda: worker_of(server) is not None, "the shadow is there again")
            wait_until(lambda: shadow(api)["last_cycle"] is not None, "it follows")
            submit(api, "the-last", 1)
            wait_until(lambda: shadow(api)["cycles"]["seen"] > counted, "it counts on")
            assert operator.read("shadow", "stop") == {"stopped": True}
            assert operator.run("shadow", "stop").code == 4
            wait_until(lambda: worker_of(server) is None, "its process ends")
            after = shadow(api)
            assert not after["running"]
            assert after["stopped_at"] is not None
            assert any(item["words"] == found["words"] for item in after["differences"])
            actions = [event["action"] for event in api.get("/events", params={"subject": "shadow"}).json()["items"]]
            assert actions == ["shadow.stopped", "shadow.started"]


def test_shadow_without_changes_is_refused(tmp_path: Path) -> None:
    with cli_server(tmp_path, "--virtual-gpus", "2xA100-80G") as server:
        operator = operator_of(server)
        nothing = operator.run("shadow", "start")
        assert nothing.code == 2
        assert "a shadow policy needs a changed rule" in nothing.err
        unknown = operator.run("shadow", "start", "--policy", "x")
        assert unknown.code == 2
        assert "there is no policy 'x'" in unknown.err
        assert "No shadow policy was started yet" in operator.run("shadow").err
