"""A server that runs as root, as a service does: jobs run as other accounts, and see nothing of the server's."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs can have other accounts: run as root"),
]
DEFAULT_UID = pwd.getpwnam("nobody").pw_uid

LOOK = """
id -u
touch in-workdir $TMPDIR/scratch $CORRAL_CHECKPOINT_DIR/saved && echo writes
for path in corral.db secrets.key server.log local/live local/spawner.log; do
    cat $SERVER_HOME/$path 2>/dev/null && echo reads $path; ls $SERVER_HOME/$path/ 2>/dev/null && echo lists $path
done
ls $SERVER_HOME 2>/dev/null && echo lists home
echo looked
"""


@pytest.fixture
def server() -> Iterator[CorralServer]:
    # pytest's own directories are for root only.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        config = Path(name) / "corral.yaml"
        config.write_text("local: {run_as: {share_default: true}}\n")
        started = CorralServer(Path(name) / "home", "--virtual-gpus", "2xA10", "--config", str(config))
        started.start(CORRAL_ALLOW_ROOT="false")
        yield started
        started.kill()


def test_jobs_are_never_root_and_see_nothing_of_the_server(server: CorralServer) -> None:
    with server.http() as http:
        http.post("/users", json={"name": "root", "password": "a-user-called-root", "role": "scientist"})
        job = {"command": ["/bin/sh", "-c", LOOK], "env": {"SERVER_HOME": str(server.home)}}
        made = http.post("/jobs", json=job).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{made}").json()["state"] in ("completed", "failed"), "it ends")
        reported = http.get(f"/jobs/{made}").json()
        log = http.get(f"/jobs/{made}/logs").text
        assert (reported["state"], reported["message"]) == ("completed", ""), log
        assert log.splitlines() == [str(DEFAULT_UID), "writes", "looked"]
    # A corral user called root does not run as root.
    server.token("root", "a-user-called-root")
    with server.http("root") as http:
        made = http.post("/jobs", json={"command": ["id", "-u"]}).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{made}").json()["state"] == "completed", "it ends")
        assert http.get(f"/jobs/{made}/logs").text == f"{DEFAULT_UID}\n"
    # A restart finds everything as it was.
    server.stop()
    server.start(CORRAL_ALLOW_ROOT="false")
    with server.http() as http:
        again = http.post(f"/jobs/{made}/start").raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{again}").json()["state"] == "completed", "it runs again")
