"""A workbench in a pod of a real Kubernetes, in a real browser: through the API server and corral's own sign-in.

The image has no Python: the pod gets this machine's, and JupyterLab, by claims.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from corral.engines.kubernetes.api.client import ApiClient
from corral.engines.kubernetes.api.kubeconfig import read_kubeconfig
from tests.contract.kubernetes_harness import make_claim
from tests.e2e.jupyter import Kernel
from tests.e2e.workbench_steps import create, look, token, until_state
from tests.e2e.workbenches.test_workbench import origin_of, signed_in
from tests.integration.kubernetes_server import clean_up, left_behind, pods_of, server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(kubernetes_access: KubernetesAccess) -> Iterator[CorralServer]:
    place = Path(tempfile.mkdtemp(prefix="corral-pod-", dir="/tmp"))
    place.chmod(0o755)
    api = ApiClient(read_kubeconfig([kubernetes_access.kubeconfig]))
    seen = [f"{make_claim(api, Path('/usr'))}{below}:{path}:ro" for below, path in USR.items()]
    seen.append(f"{make_claim(api, Path(sys.prefix))}:{sys.prefix}:ro")
    api.close()
    started = server_on(kubernetes_access, place / "corral", more_mounts=seen)
    started.start()
    started.add_user("ann")
    started.add_user("bob")
    yield started
    if started.is_running:
        started.stop()
    clean_up(kubernetes_access, started)


#: directories of /usr, and where programs expect them
USR = {"": "/usr", "/lib": "/lib", "/lib64": "/lib64"}


@pytest.fixture(scope="module")
def bench(server: CorralServer) -> dict[str, Any]:
    return create(server, "ann", "bench", gpus=1, venv=sys.prefix)


def test_a_cell_runs_in_a_pod_from_a_real_browser(
    browser: Browser, server: CorralServer, kubernetes_access: KubernetesAccess, bench: dict[str, Any]
) -> None:
    (pod,) = pods_of(kubernetes_access, server, bench["id"])
    origin = origin_of(server, bench)
    page = signed_in(browser, server, "ann", f"/workbenches/{bench['id']}/jupyter/lab", origin)
    page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click(timeout=120_000)
    expect(page.get_by_role("button", name="| Idle")).to_be_visible(timeout=120_000)
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    cell.fill("import os, socket; print(socket.gethostname(), os.environ['CUDA_VISIBLE_DEVICES'], 6 * 7)")
    expect(cell).to_contain_text("6 * 7")
    cell.press("Shift+Enter")
    output = page.locator(".jp-OutputArea-output").first
    expect(output).to_contain_text(f"{pod['metadata']['name']} 0 42", timeout=120_000)
    assert page.url.startswith(f"{origin}/workbenches/{bench['id']}/jupyter/lab"), "an origin of its own"
    page.context.close()


def test_a_stranger_gets_nothing_and_the_next_server_finds_it(
    server: CorralServer, kubernetes_access: KubernetesAccess, bench: dict[str, Any]
) -> None:
    with server.http("bob") as http:
        answer = http.get(f"{server.url}/workbenches/{bench['id']}/jupyter/api/status")
        assert answer.status_code == 403
    kernel = Kernel(bench["jupyter"]["address"], token(server, "ann"))
    kernel.run("answer = 42")

    server.kill()
    server.start()
    wait_until(lambda: bool(look(server, "ann", "bench")["jupyter"]["ready"]), "the next server knows it")
    assert kernel.run("print(answer)") == "42\n", "the same kernel, through the next server"

    with server.http("ann") as http:
        http.post("/workbenches/bench/stop").raise_for_status()
    until_state(server, "ann", "bench", "stopped")
    wait_until(lambda: left_behind(kubernetes_access, server)["pods"] == [], "nothing is left", seconds=60)


def test_ssh_is_refused_with_what_to_do_instead(server: CorralServer) -> None:
    with server.http("ann") as http:
        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ann"
        http.post("/me/ssh-keys", json={"name": "laptop", "public_key": key}).raise_for_status()
        answer = http.post("/workbenches", json={"name": "by-ssh", "ssh": True})
    assert answer.status_code == 409
    assert "corral shell" in answer.json()["detail"]
