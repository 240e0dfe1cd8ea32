"""An engine whose records are gone, on a real Kubernetes: as after a restore of a backup into an empty home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.core.model import EndReason
from corral.engines.attempts.terms import TERM, write_term
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.kubernetes_harness import KubernetesHarness
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path, kubernetes_access: KubernetesAccess) -> Iterator[KubernetesHarness]:
    harness = KubernetesHarness(tmp_path / "engine", kubernetes_access)
    yield harness
    harness.clean_up()


def restore(cluster: KubernetesHarness) -> None:
    cluster.stop_server()
    engine_id = (cluster.root / "engine-id").read_text()
    shutil.rmtree(cluster.root)
    cluster.root.mkdir()
    (cluster.root / "engine-id").write_text(engine_id)
    cluster.start()


def test_a_gang_goes_on_after_a_restore_and_ends_with_its_own_codes(cluster: KubernetesHarness) -> None:
    text = "echo here $RANK; trap 'echo saved; exit 0' TERM; while :; do sleep 0.05; done"
    cluster.launch(order(*script(text), nodes=2, gpus=1, time_limit_seconds=300.0))
    wait_until(lambda: all("here" in cluster.output(rank=rank) for rank in range(2)), "both run")
    pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.own_pods()}

    restore(cluster)
    assert cluster.status() is not None
    assert {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.own_pods()} == pods
    wait_until(lambda: all("here" in cluster.output(rank=rank) for rank in range(2)), "their logs are read again")

    cluster.engine.stop("j-1.1", 5.0)
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 0)
    # The shell may add that its `sleep` was terminated, too.
    assert "saved" in cluster.output().splitlines()
    cluster.engine.forget(["j-1.1"])
    wait_until(lambda: not cluster.own_pods(), "nothing stays")


def test_an_end_without_a_record_is_found_after_a_restore(cluster: KubernetesHarness) -> None:
    cluster.launch(order(*script("echo done; exit 7")))
    cluster.stop_server()
    wait_until(lambda: cluster.pod()["status"]["phase"] == "Failed", "it ends")
    restore(cluster)
    status = cluster.status()
    assert status is not None
    wait_until(lambda: (found := cluster.status()) is not None and found.exit_code == 7, "its end is read")
    assert cluster.output() == "done\n"


def test_a_superseded_engine_leaves_a_log_to_its_successor(cluster: KubernetesHarness) -> None:
    text = "n=0; while [ $n -lt 60 ]; do n=$((n+1)); echo line $n; sleep 0.1; done"
    cluster.launch(order(*script(text)))
    wait_until(lambda: "line 5\n" in cluster.output(), "it writes")
    frozen = cluster.engine
    write_term(str(cluster.root / TERM), 8)
    # Its own term is older; it goes on as it does not know yet.
    frozen._fence.term = 7
    cluster.start()
    cluster.listener.ended()
    wait_until(lambda: "line 60\n" in cluster.output(), "all of it")
    assert cluster.output().splitlines() == [f"line {number}" for number in range(1, 61)]
    frozen.close()
