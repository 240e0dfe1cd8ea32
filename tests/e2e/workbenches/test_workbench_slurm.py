"""Workbenches on a real Slurm: reached from another machine's side, through the relay and by the node's address."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import new_key
from tests.e2e.jupyter import Kernel
from tests.e2e.workbench_steps import ECHO, create, look, ssh, token, until_ready, until_state
from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ACCOUNT = "corral-test-zoe"


@pytest.fixture(scope="module")
def server(slurm_cluster: SlurmCluster) -> Iterator[CorralServer]:
    home = Path(tempfile.mkdtemp(prefix="corral-far-", dir="/tmp"))
    home.chmod(0o755)  # jobs' accounts pass here
    users = f"{{operator: root, ann: root, zoe: {ACCOUNT}}}"
    settings = f"local: {{allow_root: true, run_as: {{users: {users}}}}}\n"
    started = server_on(slurm_cluster, home / "home", settings=settings)
    started.start()
    for user in ("ann", "zoe"):
        started.add_user(user)
    yield started
    if started.is_running:
        started.stop()
    slurm_cluster.run("scancel", "--user=root", check=False)
    shutil.rmtree(home, ignore_errors=True)


def relay_port(server: CorralServer, job_id: str) -> int:
    (status,) = server.home.glob(f"jobs/*/{job_id}/workbench/run/status.json")
    return int(json.loads(status.read_text())["relay_port"])


def answer_to_strangers(port: int) -> bytes:
    """The answer to a client without the key that does not verify the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(100)
    except (ssl.SSLError, ConnectionError):
        return b""


def test_the_whole_life_of_one(
    server: CorralServer, slurm_cluster: SlurmCluster, ssh_programs: None, tmp_path: Path
) -> None:
    key = new_key(tmp_path, "ann")
    with server.http("ann") as http:
        body = {"name": "laptop", "public_key": key.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
    view = create(server, "ann", "distant", gpus=1, memory="4GiB", ssh=True, venv=sys.prefix)
    headers = token(server, "ann")

    # Jupyter: pages, and a kernel over a WebSocket, on the node with the GPU that Slurm gave.
    kernel = Kernel(view["jupyter"]["address"], headers)
    node = view["job"]["allocation"]["grants"][0]["node"]
    reported = kernel.run("import os; print(os.environ['SLURMD_NODENAME'], os.environ['CUDA_VISIBLE_DEVICES'])")
    assert reported.split()[0] == node
    assert len(reported.split()[1].split(",")) == 1
    kernel.run("answer = 42")

    # SSH: at the node's address, which Slurm knows.
    assert view["ssh"]["host"] == "127.0.0.1"
    done = ssh(view, key, "echo $SLURMD_NODENAME $CORRAL_JOB_ID", known_hosts=tmp_path / "known_hosts")
    assert done.stdout.split() == [node, view["id"]], done.stderr

    # The port alone opens nothing: without the key of the workbench no client is let in.
    assert answer_to_strangers(relay_port(server, view["id"])) == b""

    # It goes on without the server, and the next one finds it.
    server.kill()
    server.start()
    wait_until(lambda: bool(look(server, "ann", "distant")["jupyter"]["ready"]), "the next server knows it")
    assert look(server, "ann", "distant")["job"]["attempt"] == view["job"]["attempt"]
    assert kernel.run("print(answer)") == "42\n", "the same kernel, through the next server"

    with server.http("ann") as http:
        http.post("/workbenches/distant/stop").raise_for_status()
        until_state(server, "ann", "distant", "stopped")
        assert slurm_cluster.run("squeue", "-h", "-t", "running").strip() == ""
        keys = list(server.home.glob(f"jobs/*/{view['id']}.key"))
        assert [path.stat().st_mode & 0o777 for path in keys] == [0o600]
        http.delete("/workbenches/distant").raise_for_status()
    wait_until(lambda: not keys[0].exists(), "its key goes with it")


def test_workbench_runs_as_its_owners_account_and_so_does_its_key(server: CorralServer) -> None:
    venv = Path(tempfile.mkdtemp(prefix="corral-echo-", dir="/tmp"))
    program = venv / "bin" / "jupyter-lab"
    program.parent.mkdir()
    venv.chmod(0o755)
    program.write_text(ECHO)
    program.chmod(0o755)
    with temporary_account(ACCOUNT, 54324) as account:
        view = create(server, "zoe", "hers", memory="1GiB", venv=str(venv))
        address, headers = view["jupyter"]["address"], token(server, "zoe")
        assert httpx.get(f"{address}echo", headers=headers, timeout=30).status_code == 200
        (workbench,) = server.home.glob(f"jobs/*/{view['id']}/workbench")
        secret = (workbench / "relay.pem").stat()
        assert (secret.st_uid, secret.st_mode & 0o777) == (account.pw_uid, 0o600)
        # Once more: files that are made later are the account's as well.
        with server.http("zoe") as http:
            http.post("/workbenches/hers/stop").raise_for_status()
            until_state(server, "zoe", "hers", "stopped")
            http.post("/workbenches/hers/start").raise_for_status()
        until_ready(server, "zoe", "hers")
        assert httpx.get(f"{address}echo", headers=headers, timeout=30).status_code == 200
        with server.http("zoe") as http:
            http.post("/workbenches/hers/stop").raise_for_status()
            until_state(server, "zoe", "hers", "stopped")
    shutil.rmtree(venv)


def test_programs_missing_on_the_node_are_reported_at_its_end(server: CorralServer, tmp_path: Path) -> None:
    with server.http("ann") as http:
        body = {"name": "bare-node", "env": {"PATH": f"{tmp_path}:{os.defpath}"}}
        http.post("/workbenches", json=body).raise_for_status()
    failed = until_state(server, "ann", "bare-node", "failed")
    assert failed["job"]["end_reason"] == "launch_error"
    assert "install jupyterlab there" in failed["message"]
