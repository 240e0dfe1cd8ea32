"""Workbenches of a server that runs as root: each is its owner's account, and the server still finds its way there."""

from __future__ import annotations

import os
import pwd
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from corral.engines.attempts.job_places import barrier
from tests.e2e.conftest import new_key
from tests.e2e.jupyter import Kernel
from tests.e2e.workbench_steps import create, ssh, token, until_state
from tests.servers.corral_server import CorralServer

#: What keeps other accounts from the Python of these tests, and with it from the Jupyter that they start.
BARRIER = barrier(os.path.realpath(sys.executable))
CLONE_BARRIER = barrier(sys.prefix)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BARRIER is not None,
        reason=f"other accounts cannot pass {BARRIER}: use a Python that everybody can reach, such as Debian's python3",
    ),
    pytest.mark.skipif(
        CLONE_BARRIER is not None,
        reason=f"other accounts cannot pass {CLONE_BARRIER}: clone into a place that everybody can reach",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs can have other accounts: run as root"),
]


def login_account() -> str | None:
    """An account of this machine that is not root and may log in."""
    shells = ("/bin/bash", "/bin/sh", "/usr/bin/bash")
    return next((entry.pw_name for entry in pwd.getpwall() if entry.pw_uid and entry.pw_shell in shells), None)


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    # pytest's own directories are for root only.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        config = Path(name) / "corral.yaml"
        users = f"{{ann: {login_account()}}}" if login_account() else "{}"
        config.write_text(f"local: {{run_as: {{users: {users}, share_default: true}}}}\n")
        started = CorralServer(Path(name) / "home", "--virtual-gpus", "2xA10", "--config", str(config))
        started.start(CORRAL_ALLOW_ROOT="false")
        for user in ("ann", "bob"):
            started.add_user(user)
        yield started
        with started.http() as http:
            for view in http.get("/workbenches?state=running&state=starting").json()["items"]:
                http.post(f"/workbenches/{view['id']}/stop")
        started.kill()


def test_jupyter_runs_as_an_account_without_a_home(server: CorralServer) -> None:
    view = create(server, "bob", "nobodys")
    kernel = Kernel(view["jupyter"]["address"], token(server, "bob"))
    assert kernel.run("import os; print(os.getuid())") == f"{pwd.getpwnam('nobody').pw_uid}\n"
    run = next(server.home.glob(f"jobs/*/{view['id']}/workbench/run"))
    assert (run / "jupyter.sock").stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_socket_of_roots_leads_nowhere(server: CorralServer) -> None:
    """The owner of a workbench could make the server connect to any socket of root; so the server checks the peer."""
    view = create(server, "bob", "sly-one")
    kernel = Kernel(view["jupyter"]["address"], token(server, "bob"))
    with tempfile.TemporaryDirectory() as name:
        daemon = Path(name) / "daemon.sock"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(daemon))
            listening.listen(1)
            kernel.run(
                "import os\nos.chdir(os.path.join(os.environ['CORRAL_JOB_DIR'], 'workbench', 'run'))\n"
                f"os.rename('jupyter.sock', 'kept.sock')\nos.symlink({str(daemon)!r}, 'jupyter.sock')"
            )
            # A WebSocket is never one of the connections that rest.
            with pytest.raises(InvalidStatus, match="503"):
                kernel.run("print('through')")
    answer = httpx.get(f"{server.url}/api/v1/workbenches/sly-one", headers=token(server, "bob"))
    assert answer.json()["state"] == "running"


def test_ssh_logs_in_as_the_owners_account(server: CorralServer, ssh_programs: None, tmp_path: Path) -> None:
    account = login_account()
    if account is None:
        pytest.skip("no account may log in but root: scripts/install-test-servers brings one (package postgresql)")
    key = new_key(tmp_path, "ann")
    with server.http("ann") as http:
        body = {"name": "laptop", "public_key": key.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
    view = create(server, "ann", "shell-1", ssh=True)
    assert view["ssh"]["account"] == account
    known = tmp_path / "known_hosts"
    done = ssh(view, key, "id -un; echo $CORRAL_JOB_ID", known_hosts=known)
    assert done.stdout.split() == [account, view["id"]], done.stderr
    as_root = {**view, "ssh": {**view["ssh"], "command": view["ssh"]["command"].replace(f"{account}@", "root@")}}
    assert ssh(as_root, key, "id -un", known_hosts=known).returncode == 255


def test_an_account_that_may_not_log_in_is_reported(server: CorralServer, ssh_programs: None, tmp_path: Path) -> None:
    key = new_key(tmp_path, "bob")
    with server.http("bob") as http:
        body = {"name": "laptop", "public_key": key.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
        http.post("/workbenches", json={"name": "shell-2", "ssh": True, "jupyter": False}).raise_for_status()
    failed = until_state(server, "bob", "shell-2", "failed")
    assert failed["job"]["end_reason"] == "launch_error"
    assert "may not log in" in failed["message"]
