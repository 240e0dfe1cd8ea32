"""Deleting a job takes everything with it: rows, logs and its directory."""

from __future__ import annotations

import os
from pathlib import Path

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


def traces(home: Path, job_id: str) -> list[Path]:
    # os.walk, because it goes on when a directory vanishes under it.
    names = (Path(parent, name) for parent, folders, files in os.walk(home) for name in (*folders, *files))
    return [path for path in names if path.name == job_id or path.name.startswith(f"{job_id}.")]


def test_a_deleted_job_leaves_nothing_behind(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "2xA10")
    server.start()
    with server.http() as http:
        command = ["sh", "-c", 'echo saved > "$CORRAL_CHECKPOINT_DIR/state"; echo hello']
        job_id = http.post("/jobs", json={"command": command, "gpus": 1}).json()["id"]
        wait_until(lambda: http.get(f"/jobs/{job_id}").json()["state"] == "completed", "the job completes")
        assert http.get(f"/jobs/{job_id}/logs").text == "hello\n"
        assert any(path.is_dir() for path in traces(server.home, job_id))

        assert http.delete(f"/jobs/{job_id}").status_code == 204
        wait_until(lambda: not traces(server.home, job_id), "every file of the job is gone")
        assert http.get(f"/jobs/{job_id}").status_code == 404
        assert http.get(f"/jobs/{job_id}/logs").status_code == 404
    assert server.stop() == 0
