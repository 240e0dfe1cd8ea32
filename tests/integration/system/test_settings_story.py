"""The configuration file decides how the default queue works, and an operator may decide otherwise later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.servers.corral_server import CorralServer


def default_queue(server: CorralServer) -> dict[str, Any]:
    with server.http() as http:
        queue: dict[str, Any] = http.get("/queues/default").raise_for_status().json()
    return queue


def test_the_default_queue_follows_the_file_until_an_operator_edits_it_and_again_when_the_file_changes(
    tmp_path: Path,
) -> None:
    config = tmp_path / "corral.yaml"
    config.write_text("scheduling: {algorithm: priority, blocking: strict}\nallocation: {placement: spread}\n")
    server = CorralServer(tmp_path / "home", "--config", str(config), "--virtual-gpus", "2xA10")
    server.start()
    assert [default_queue(server)[word] for word in ("policy", "blocking", "placement")] == [
        "priority",
        "strict",
        "spread",
    ]
    with server.http() as http:
        http.patch("/queues/default", json={"policy": "fcfs"}).raise_for_status()
    server.stop()

    server.start()
    assert default_queue(server)["policy"] == "fcfs"  # the file says nothing new
    server.stop()

    config.write_text("scheduling: {algorithm: fair-share}\n")
    server.start()
    assert [default_queue(server)[word] for word in ("policy", "blocking", "placement")] == [
        "fair-share",
        "backfill",
        "fragmentation",
    ]
    server.stop()
