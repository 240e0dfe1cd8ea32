"""Pods to which a webhook of the cluster adds a container, as those of service meshes do, on a real Kubernetes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.control.ports import ShellChannel
from corral.engines.kubernetes.api.client import ApiClient, Json
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.kubernetes_harness import KubernetesHarness
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(
    tmp_path: Path, kubernetes_access: KubernetesAccess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesHarness]:
    create = ApiClient.create

    def with_proxy(api: ApiClient, path: str, body: Json) -> Any:
        if path.endswith("/pods"):
            (job,) = body["spec"]["containers"]
            command = ["/bin/sh", "-c", "echo of the proxy; trap 'exit 0' TERM; while :; do sleep 0.1; done"]
            proxy = {key: job[key] for key in ("image", "securityContext")} | {"name": "a-proxy", "command": command}
            # Before the job's own, and not in the order of their names.
            body = {**body, "spec": {**body["spec"], "containers": [proxy, job]}}
        return create(api, path, body)

    monkeypatch.setattr(ApiClient, "create", with_proxy)
    harness = KubernetesHarness(tmp_path / "engine", kubernetes_access)
    yield harness
    harness.clean_up()


def test_the_container_of_the_job_decides_and_is_heard(cluster: KubernetesHarness) -> None:
    cluster.launch(order(*script("echo of the job; while [ ! -e /tmp/leave ]; do sleep 0.1; done; exit 7")))
    cluster.listener.running()
    wait_until(lambda: cluster.output() == "of the job\n", "its log is read")

    async def leave() -> bytes:
        words = ("sh", "-c", "touch /tmp/leave; echo done")
        shell = await cluster.engine.open_shell("j-1.1", 0, words, has_terminal=False, has_input=False)
        heard = b"".join([data async for channel, data in shell.output() if channel is ShellChannel.STDOUT])
        await shell.close()
        return heard

    assert asyncio.run(leave()) == b"done\n"
    # The proxy would go on for ever.
    assert cluster.listener.ended().exit_code == 7
    cluster.engine.forget(["j-1.1"])
    installation = cluster.engine.describe()["installation"]
    selector = {"labelSelector": f"corral/installation={installation}"}
    wait_until(lambda: not cluster.api.get("/api/v1/pods", selector)["items"], "the pod is removed with its proxy")


def test_a_restored_server_takes_such_a_pod_up_again(cluster: KubernetesHarness) -> None:
    cluster.launch(order(*script("trap 'exit 3' TERM; while :; do sleep 0.1; done"), time_limit_seconds=600.0))
    cluster.listener.running()
    cluster.stop_server()
    engine_id = (cluster.root / "engine-id").read_text()
    shutil.rmtree(cluster.root)
    cluster.root.mkdir()
    (cluster.root / "engine-id").write_text(engine_id)
    cluster.start()
    assert cluster.status() is not None
    cluster.engine.stop("j-1.1", 5.0)
    assert cluster.listener.ended().exit_code == 3
