"""Jobs from Git repositories on a real Slurm: fetched on the node as the user's own account, with a deploy key."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.git_server import Repository, SshServer, ssh_server
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ACCOUNT, UID = "corral-test-gina", 54326
SETTINGS = f"""
local: {{allow_root: true, run_as: {{users: {{operator: root, gina: {ACCOUNT}}}}}}}
git: {{hosts: [localhost]}}
"""
LOOK = 'cat word; id -un; pwd; ls -ld . | cut -d" " -f3; env | grep CORRAL_GIT'


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """On the file system that all nodes share, where the account of a job can pass."""
    directory = Path(tempfile.mkdtemp(prefix="corral-git-", dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def forge(home: Path) -> Iterator[SshServer]:
    with ssh_server(home) as started:
        yield started


@pytest.fixture(scope="module")
def server(slurm_cluster: SlurmCluster, home: Path) -> Iterator[CorralServer]:
    started = server_on(slurm_cluster, home / "home", settings=SETTINGS)
    with temporary_account(ACCOUNT, UID):
        started.start()
        started.add_user("gina")
        yield started
        if started.is_running:
            started.stop()
        for user in ("root", ACCOUNT):
            slurm_cluster.run("scancel", f"--user={user}", check=False)
        # An account whose programs run cannot be removed.
        wait_until(lambda: not slurm_cluster.run("squeue", "-h", f"--user={ACCOUNT}").strip(), "its jobs have ended")


def ended(http: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = http.post("/jobs", json={"command": ["sh", "-c", LOOK], **fields})
    assert answer.status_code == 201, answer.text
    job = answer.json()["id"]
    over = ("completed", "failed", "stopped")
    wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] in over, f"{job} has ended", seconds=120)
    return dict(http.get(f"/jobs/{job}").json())


def log(http: httpx.Client, job: str, rank: int = 0) -> list[str]:
    return http.get(f"/jobs/{job}/logs", params={"rank": rank}).raise_for_status().text.splitlines()


def test_a_private_commit_is_fetched_on_each_node_as_the_account_of_the_job(
    server: CorralServer, forge: SshServer, home: Path
) -> None:
    repository = Repository.made(home / "repositories", "model")
    commit = repository.commit({"word": "hidden\n"})
    url = forge.url("repositories/model.git")
    with server.http("gina") as http:
        http.put("/secrets/deploy-key", json={"value": forge.key}).raise_for_status()
        view = ended(http, git=url, git_ref="main", git_secret="deploy-key", nodes=2, gpus=1)
        assert (view["state"], view["git_commit"]) == ("completed", commit), log(http, view["id"])
        for rank, name in enumerate(("source", "source-1")):
            lines = log(http, view["id"], rank)
            assert lines[0] == f"corral: git: {url} at {commit} (main)"
            place = lines[3]
            assert lines[1:] == ["hidden", ACCOUNT, place, ACCOUNT, f"CORRAL_GIT_COMMIT={commit}"]
            assert place.endswith(f"/{name}")
        missing = ended(http, git=url, git_ref="f" * 40, git_secret="deploy-key", gpus=1)
        assert (missing["state"], missing["exit_code"]) == ("failed", 97)
        assert f"the commit {'f' * 40} is not in {url}" in log(http, missing["id"])[0]
    line = forge.key.splitlines()[1]
    files = [path for path in (home / "home").rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 5
    assert not [str(path) for path in files if line.encode() in path.read_bytes()]
