"""The engine against faults: an API server that is away, rights that are missing, and pods of others with its names."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import (
    AttemptPhase,
    AttemptStatus,
    EngineUnavailable,
    Instance,
    LaunchOrder,
    Leadership,
    RegistryLogin,
)
from corral.core.model import EndReason
from corral.engines.attempts.terms import TERM, write_term
from corral.engines.kubernetes.api import watch
from corral.engines.kubernetes.api.client import ApiClient
from corral.engines.kubernetes.attempts import tracking
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pods import (
    ATTEMPT_LABEL,
    FINALIZER,
    KEY_ANNOTATION,
    pod_name,
    secret_name,
)
from corral.engines.kubernetes.cluster import drains
from corral.engines.kubernetes.engine import KubernetesEngine
from tests.unit.engines.kubernetes.api_server import Answer, ApiServer, Asked, api_server, refusal
from tests.unit.engines.kubernetes.fake_cluster import NAMESPACE, PODS, FakeCluster
from tests.unit.engines.kubernetes.objects import Json, ended, pod

ORDER = LaunchOrder(
    attempt_id="j-1.1",
    job_id="j-1",
    user="ada",
    command=("true",),
    instances=(Instance(rank=0, node="gpu1", gpu_ids=("gpu1-gpu0",), gpu_indexes=(0,)),),
)
RUNNING: Json = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
DONE = ended("corral exit_code 0 1.0 2.0 2.0 ")


class Started:
    """An engine over a cluster in memory."""

    def __init__(self, root: Path, server: ApiServer, cluster: FakeCluster) -> None:
        self.root = root
        self.server = server
        self.cluster = cluster
        self.engine = self.new_engine()

    def new_engine(self) -> KubernetesEngine:
        rules = PodRules(namespace=NAMESPACE, default_image="base:1")
        api = ApiClient(self.server.access())
        return KubernetesEngine(root=self.root, api=api, rules=rules, look_seconds=0.05)

    @property
    def name(self) -> str:
        return pod_name(self.engine.describe()["installation"], "j-1.1", 0)

    def status(self) -> AttemptStatus | None:
        attempts = self.engine.attempt("j-1.1")
        return None if attempts is None else attempts.status()

    def phase(self) -> AttemptPhase | None:
        status = self.status()
        return None if status is None else status.phase

    def launch(self, order: LaunchOrder = ORDER) -> None:
        """Launches like the outbox: again and again until it is accepted."""

        def accepted() -> bool:
            try:
                self.engine.launch(order)
            except EngineUnavailable:
                return False
            return True

        wait_for(accepted)

    def run(self) -> None:
        self.launch()
        self.cluster.state(self.name, RUNNING)
        wait_for(lambda: self.phase() is AttemptPhase.RUNNING)


def wait_for(check: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(watch, name, 0.02)
    cluster = FakeCluster()
    with api_server(cluster.respond) as server:
        one = Started(tmp_path, server, cluster)
        one.engine.observe()
        yield one
        one.engine.close()


def test_an_end_during_an_outage_is_noticed_when_nodes_are_seen_after_pods(started: Started) -> None:
    """The pods of others and of its own are listed again while nodes cannot be: nothing is looked at until they can."""
    started.run()
    started.cluster.fault = lambda _: Answer(status=503)
    wait_for(lambda: not started.engine.parts()[0].healthy)
    started.cluster.state(started.name, DONE, "Succeeded")
    listed = len(started.server.asked)
    started.cluster.fault = lambda asked: Answer(status=503) if asked.path == "/api/v1/nodes" else None
    wait_for(lambda: any(one.path == "/api/v1/pods" and "watch" in one.params for one in started.server.asked[listed:]))
    started.cluster.fault = lambda _: None
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    status = started.status()
    assert status is not None
    assert (status.reason, status.exit_code) == (EndReason.EXIT_CODE, 0)


def test_a_pod_that_was_removed_while_no_server_ran_ends_its_attempt(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that was so soon after its creation that a new server waits for the watch to show the pod."""
    monkeypatch.setattr(tracking, "UNSEEN_SECONDS", 2.0)
    started.run()
    started.engine.close()
    started.cluster.pods.clear()
    started.engine = started.new_engine()
    assert started.phase() is AttemptPhase.RUNNING
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    status = started.status()
    assert status is not None
    assert (status.reason, status.message) == (EndReason.LOST, "its pod is gone from Kubernetes")


def test_a_pod_that_could_not_be_created_for_long_is_not_taken_for_gone(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "UNSEEN_SECONDS", 0.0)
    hidden = {"watch": True}

    def blind(asked: Asked) -> Answer | None:
        """A connection that is dead without a word: watches show nothing."""
        return Answer() if hidden["watch"] and asked.params.get("watch") else None

    asked = len(started.server.asked)
    started.cluster.fault = blind
    # The watch that was open before would still show it.
    wait_for(lambda: sum("watch" in one.params and "pods" in one.path for one in started.server.asked[asked:]) > 1)
    started.launch()
    # Its engine may have asked before the launch has returned.
    path = f"{PODS}/{started.name}"
    wait_for(lambda: any((one.method, one.path) == ("GET", path) for one in started.server.asked))
    assert started.phase() is AttemptPhase.STARTING
    hidden["watch"] = False
    started.cluster.state(started.name, RUNNING)
    wait_for(lambda: started.phase() is AttemptPhase.RUNNING)


def test_a_name_that_a_stranger_has_taken_sends_the_job_back_and_leaves_the_strangers_pod(started: Started) -> None:
    strange = pod(started.name, namespace=NAMESPACE, node=None)
    strange["metadata"]["finalizers"] = ["example.org/mine"]
    started.cluster.put(strange)
    started.launch()
    status = started.status()
    assert status is not None
    assert status.reason is EndReason.PREEMPTED
    assert "not this attempt's" in status.message
    started.engine.forget(["j-1.1"])
    wait_for(lambda: any(one.path.endswith(started.name) for one in started.server.asked if one.method == "GET"))
    assert not [one for one in started.server.asked if one.method in ("DELETE", "PATCH")]


def test_a_pod_with_another_key_is_removed_before_its_attempt_is_launched_again(started: Started) -> None:
    """It is from before an older copy of the engine's records was restored, or forged."""
    started.launch()
    earlier = started.cluster.pods[started.name]
    started.engine.close()
    for place in ("orders", "forgotten"):
        (started.root / place / "j-1.1").unlink(missing_ok=True)
    started.engine = started.new_engine()
    started.launch()
    there = started.cluster.pods[started.name]
    assert there["metadata"]["uid"] != earlier["metadata"]["uid"]
    assert there["metadata"]["annotations"][KEY_ANNOTATION] != earlier["metadata"]["annotations"][KEY_ANNOTATION]


def test_a_pod_that_replaces_another_one_does_not_count(started: Started) -> None:
    started.run()
    forged = {**started.cluster.pods[started.name]}
    with started.cluster._changed:
        del started.cluster.pods[started.name]
    forged["metadata"] = {key: value for key, value in forged["metadata"].items() if key != "uid"}
    started.cluster.put(forged)
    started.cluster.state(started.name, DONE, "Succeeded")
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    status = started.status()
    assert status is not None
    assert (status.reason, status.exit_code) == (EndReason.LOST, None)


@pytest.mark.parametrize(
    ("message", "is_final"),
    [
        (
            'pods is forbidden: User "corral" cannot create resource "pods" in API group "" in the namespace "jobs"',
            False,
        ),
        ('pods "x" is forbidden: exceeded quota: gpus', False),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest"', True),
    ],
)
def test_a_right_that_is_missing_is_not_the_fault_of_a_job(started: Started, message: str, is_final: bool) -> None:
    started.cluster.fault = lambda asked: refusal(403, message) if asked.method == "POST" else None
    with pytest.raises(Exception, match="forbidden") as refused:
        started.engine.launch(ORDER)
    assert isinstance(refused.value, EngineUnavailable) is not is_final
    assert (started.phase() is AttemptPhase.ENDED) is is_final


def test_a_pod_that_cannot_be_removed_holds_up_no_other_and_finalizers_of_others_stay(started: Started) -> None:
    installation = started.engine.describe()["installation"]
    for name in ("a-stuck", "b-left"):
        left = pod(name, namespace=NAMESPACE, labels={"corral/installation": installation})
        left["metadata"]["finalizers"] = [FINALIZER, "example.org/other"]
        started.cluster.fault = lambda asked: refusal(400, "a webhook says no") if "a-stuck" in asked.path else None
        started.cluster.put(left)
    wait_for(lambda: started.cluster.pods["b-left"]["metadata"]["finalizers"] == ["example.org/other"])
    assert FINALIZER in started.cluster.pods["a-stuck"]["metadata"]["finalizers"]


def test_a_secret_of_an_attempt_that_a_crash_has_left_is_removed(started: Started) -> None:
    login = RegistryLogin(registry="example.org", username="ada", secret="s")
    started.launch(LaunchOrder(**{**{f: getattr(ORDER, f) for f in ORDER.__slots__}, "login": login}))
    name = secret_name(started.engine.describe()["installation"], "j-1.1")
    assert started.cluster.secrets == {name}
    started.engine.stop("j-1.1", 1.0)
    started.cluster.fault = lambda asked: Answer(status=500) if asked.path.endswith(name) else None
    started.cluster.state(started.name, DONE, "Succeeded")
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    started.engine.forget(["j-1.1"])
    started.engine.close()
    started.cluster.fault = lambda _: None
    started.engine = started.new_engine()
    wait_for(lambda: not started.cluster.secrets)


FAILS: Json = {"waiting": {"reason": "CreateContainerError", "message": "context deadline exceeded"}}


def test_a_container_that_cannot_be_created_for_a_moment_begins_later(started: Started) -> None:
    started.launch()
    started.cluster.state(started.name, FAILS, "Pending")
    wait_for(lambda: "deadline" in (status.message if (status := started.status()) else ""))
    assert started.phase() is AttemptPhase.STARTING
    started.cluster.state(started.name, RUNNING)
    wait_for(lambda: started.phase() is AttemptPhase.RUNNING)


def test_a_container_that_cannot_be_created_for_long_is_given_up(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "CREATION_SECONDS", 0.0)
    started.launch()
    started.cluster.state(started.name, FAILS, "Pending")
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    status = started.status()
    assert status is not None
    assert status.reason is EndReason.LAUNCH_ERROR
    assert "context deadline exceeded" in status.message


def test_a_right_to_cordon_that_is_missing_is_shown_and_asked_for_again(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/api/v1/nodes/gpu1"
    forbidden = 'nodes "gpu1" is forbidden: User "corral" cannot patch resource "nodes" in API group ""'
    started.cluster.fault = lambda asked: refusal(403, forbidden) if asked.path == path else None
    started.engine.withhold("gpu1", "disk")
    assert started.engine.observe().withheld is None
    (server, *_) = started.engine.parts()
    assert server.healthy
    assert "may not cordon" in server.detail
    monkeypatch.setattr(drains, "ASK_AGAIN_SECONDS", 0.0)
    started.engine._drains._refused_until = 0.0
    assert started.engine.observe().withheld is not None
    assert "may not cordon" not in started.engine.parts()[0].detail


def test_a_webhook_that_refuses_one_cordon_ends_no_others(started: Started) -> None:
    refused = refusal(403, 'admission webhook "keep" denied the request: not at noon')
    started.cluster.fault = lambda asked: refused if asked.path == "/api/v1/nodes/gpu1" else None
    with pytest.raises(EngineUnavailable, match="not at noon"):
        started.engine.withhold("gpu1", "disk")
    assert started.engine.observe().withheld == {}


def test_an_engine_is_opened_without_waiting_for_its_cluster(started: Started) -> None:
    """Several clusters are opened one after the other: one that does not answer holds up no other."""
    started.run()
    started.engine.close()
    answers = threading.Event()

    def silent(asked: Asked) -> Answer | None:
        answers.wait(20)
        return None

    started.cluster.fault = silent
    started.engine = started.new_engine()
    assert not started.engine._earlier.are_up_to_date.is_set()
    heard: list[AttemptStatus] = []
    started.engine.subscribe(heard.append)
    started.engine.launch(replace(ORDER, attempt_id="j-2.1", command=("a\0b",)))
    answers.set()
    phases = {one.attempt_id: one.phase for one in started.engine.observe().attempts}
    assert phases == {"j-1.1": AttemptPhase.RUNNING, "j-2.1": AttemptPhase.ENDED}
    wait_for(lambda: heard)
    assert [(one.attempt_id, one.phase) for one in heard] == [("j-2.1", AttemptPhase.ENDED)]


def test_a_program_runs_also_if_its_log_cannot_be_read(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server does not reach the kubelet, or its answers are refused."""
    monkeypatch.setattr(tracking, "UNHEARD_SECONDS", 0.0)
    started.cluster.fault = lambda asked: refusal(403, "nodes/proxy") if asked.path.endswith("/log") else None
    started.run()
    attempt = started.engine.attempt("j-1.1")
    assert attempt is not None
    assert attempt.devices == {0: ""}
    began_at = attempt.up[0]
    started.cluster.fault = lambda _: None
    wait_for(lambda: attempt.devices == {0: "0"})
    assert attempt.up == {0: began_at}


def test_a_pod_that_its_node_does_not_start_is_taken_back(started: Started) -> None:
    started.engine._rules = started.engine._tracker._rules = replace(started.engine._rules, starting_seconds=60.0)
    started.launch()
    mounting: Json = {"waiting": {"reason": "ContainerCreating"}}
    started.cluster.state(started.name, mounting, "Pending")
    wait_for(lambda: "ContainerCreating" in (status.message if (status := started.status()) else ""))
    assert started.phase() is AttemptPhase.STARTING
    placed: Json = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    late = json.loads(json.dumps(started.cluster.pods[started.name]))
    late["status"]["conditions"] = [placed]
    started.cluster.put(late)
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    status = started.status()
    assert status is not None
    assert status.reason is EndReason.PREEMPTED
    assert "not started it within 60 s" in status.message
    assert "deletionTimestamp" in started.cluster.pods[started.name]["metadata"]


GANG = replace(
    ORDER, instances=tuple(replace(ORDER.instances[0], rank=rank, gpu_ids=(), gpu_indexes=()) for rank in range(2))
)


def test_a_leader_that_is_superseded_in_the_middle_of_a_launch_changes_nothing_more(started: Started) -> None:
    """It was frozen between two requests."""
    started.engine.lead(Leadership(term=1, installation="i"))

    def taken_over(asked: Asked) -> Answer | None:
        if asked.method == "POST":
            write_term(str(started.root / TERM), 2)
        return None

    started.cluster.fault = taken_over
    with pytest.raises(EngineUnavailable, match="another server has taken over"):
        started.engine.launch(GANG)
    with pytest.raises(EngineUnavailable, match="another server has taken over"):
        started.engine.withhold("gpu1", "disk")
    assert [one.method for one in started.server.asked if one.method != "GET"] == ["POST"]


def restored(started: Started) -> None:
    """The server starts with the records of a backup: they have the engine's id only."""
    started.engine.close()
    engine_id = (started.root / "engine-id").read_text()
    shutil.rmtree(started.root)
    started.root.mkdir()
    (started.root / "engine-id").write_text(engine_id)
    started.engine = started.new_engine()


def test_a_restored_server_goes_on_with_the_pods_that_still_run(started: Started) -> None:
    order = replace(ORDER, time_limit_seconds=90.0, grace_seconds=7.0, secret_env={"TOKEN": "t"}, env={"TOKEN": "t"})
    started.launch(order)
    started.cluster.state(started.name, RUNNING)
    wait_for(lambda: started.phase() is AttemptPhase.RUNNING)
    uid = started.cluster.pods[started.name]["metadata"]["uid"]
    before = started.engine.attempt("j-1.1")
    restored(started)
    assert [one.attempt_id for one in started.engine.observe().attempts] == ["j-1.1"]
    wait_for(lambda: started.phase() is AttemptPhase.RUNNING)
    after = started.engine.attempt("j-1.1")
    assert before is not None
    assert after is not None
    kept = ("nodes", "gpus", "pods", "key", "grace_seconds", "limit_seconds", "has_login", "has_secrets", "devices")
    assert {name: getattr(after, name) for name in kept} == {name: getattr(before, name) for name in kept}
    # Launching is idempotent, as for every attempt that is known.
    started.engine.launch(order)
    assert started.cluster.pods[started.name]["metadata"]["uid"] == uid
    started.cluster.state(started.name, DONE, "Succeeded")
    wait_for(lambda: started.phase() is AttemptPhase.ENDED)
    started.engine.forget(["j-1.1"])
    wait_for(lambda: not started.cluster.pods and not started.cluster.secrets)


def test_a_restored_server_removes_pods_of_a_gang_that_is_not_complete(started: Started) -> None:
    started.engine.launch(GANG)
    with started.cluster._changed:
        del started.cluster.pods[started.name]
    restored(started)
    assert not started.engine.observe().attempts
    wait_for(lambda: not started.cluster.pods)


def test_pods_are_taken_up_once_only(started: Started) -> None:
    """Later, a pod that no attempt holds was made by a leader that was superseded, or by another user."""
    started.run()
    forged = json.loads(json.dumps(started.cluster.pods[started.name]))
    name = pod_name(started.engine.describe()["installation"], "j-2.1", 0)
    forged["metadata"] |= {"name": name, "annotations": {**forged["metadata"]["annotations"], ATTEMPT_LABEL: "j-2.1"}}
    started.engine.close()
    started.cluster.put(forged)
    started.engine = started.new_engine()
    assert [one.attempt_id for one in started.engine.observe().attempts] == ["j-1.1"]
    wait_for(lambda: name not in started.cluster.pods)


def test_a_cluster_without_a_shared_home_shows_that_checkpoints_end_with_their_pods(started: Started) -> None:
    (server, *_) = started.engine.parts()
    assert server.healthy
    assert "end with their pods" in server.detail


@pytest.mark.parametrize("damage", [b"\0\0\0\0\n", b"{}\n", b'{"nodes": 3}\n', b"\xff\n"])
def test_a_damaged_record_is_made_anew_from_the_pods(started: Started, damage: bytes) -> None:
    started.run()
    uid = started.cluster.pods[started.name]["metadata"]["uid"]
    before = started.engine.attempt("j-1.1")
    assert before is not None
    started.engine.close()
    (started.root / "orders" / "j-1.1").write_bytes(damage)
    started.engine = started.new_engine()
    wait_for(lambda: [one.attempt_id for one in started.engine.observe().attempts] == ["j-1.1"])
    after = started.engine.attempt("j-1.1")
    assert after is not None
    assert (after.key, after.nodes) == (before.key, before.nodes)
    assert started.cluster.pods[started.name]["metadata"]["uid"] == uid


@pytest.mark.parametrize("damage", ['{"up": 7}', '{"exit": [0, {"reason": "eaten"}]}', '{"verdict": "lost"}', "[]"])
def test_a_damaged_note_is_left_out(started: Started, damage: str) -> None:
    started.run()
    started.engine.close()
    with (started.root / "orders" / "j-1.1").open("a") as file:
        file.write(f"{damage}\n")
    started.engine = started.new_engine()
    wait_for(lambda: started.phase() is AttemptPhase.RUNNING)


def test_a_damaged_id_of_the_installation_is_not_used(started: Started) -> None:
    started.engine.close()
    (started.root / "engine-id").write_bytes(b"\0\0\0")
    started.engine = started.new_engine()
    known = started.engine.describe()["installation"]
    assert known.isalnum()
    assert (started.root / "engine-id").read_text() == f"{known}\n"
