"""Runs the stories in the YAML files beside it: a cluster, what arrives, and what must come of it.

A story has `nodes`, `queues` (one `default`, fcfs, unless given), `limits`, `quotas`, `ordering`, `preemption`,
`backfill` and `allocation` (their rules), `groups` (the users of each), `reservations`, `volumes` (block unless they
say otherwise), `jobs` with the time at which each arrives (`at`) and how long it runs (`runs`), and what is expected:
  starts   when each job starts first; a job that is named in `never` doesn't
  again    when a job that was preempted starts again, each time
  gives_way  who is preempted: [for whom, by which rule], each time
  nodes    on which nodes, by name
  gpus     on which GPUs, by node and index, as in n1/0
  order    the order in which jobs start
  waits    the rules that hold a job back when it is first looked at
Every job of the story must be mentioned in `starts`, `order` or `never`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.core.model import (
    WHOLE,
    Blocking,
    Elastic,
    Gpu,
    GpuHealth,
    Job,
    JobKind,
    JobState,
    Node,
    NodeState,
    Prediction,
    Queue,
    Request,
)
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import (
    Change,
    PutMembership,
    PutNode,
    PutQueue,
    PutQuota,
    PutReservation,
    PutRules,
    PutScore,
    PutVolume,
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.codec import from_plain
from corral.core.snapshot.installation import AllocationRules, BackfillRules, Limits, PreemptionRules
from corral.core.storage.volumes import Volume, VolumeMount, VolumeType
from corral.simulator.simulation import Arrival, Simulation

GIB = 1 << 30


def load() -> list[Any]:
    return [
        pytest.param(story, id=f"{path.stem}: {story['story']}")
        for path in sorted(Path(__file__).parent.glob("*.yaml"))
        for story in yaml.load_all(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    ]


@dataclass
class Outcome:
    starts: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, list[str]] = field(default_factory=dict)
    gpus: dict[str, list[str]] = field(default_factory=dict)
    waits: dict[str, list[str]] = field(default_factory=dict)
    again: dict[str, list[float]] = field(default_factory=dict)
    gives_way: dict[str, list[list[str]]] = field(default_factory=dict)


@pytest.mark.parametrize("story", load())
def test_story(story: dict[str, Any]) -> None:
    known = {"story", "nodes", "queues", "limits", "quotas", "scores", "ordering", "jobs", "expect"}
    known |= {"preemption", "backfill", "allocation", "groups", "reservations", "volumes"}
    assert story.keys() <= known, story.keys() - known
    outcome = play(story)
    expect = story["expect"]
    assert expect.keys() <= {"starts", "again", "gives_way", "nodes", "gpus", "order", "waits", "never"}
    never = expect.get("never", [])
    mentioned = {*expect.get("starts", {}), *expect.get("order", []), *never}
    assert mentioned == {job["name"] for job in story["jobs"]}, "every job has an expectation"
    assert {name: outcome.starts.get(name) for name in expect.get("starts", {})} == expect.get("starts", {})
    assert not outcome.starts.keys() & set(never)
    assert {name: outcome.nodes.get(name) for name in expect.get("nodes", {})} == expect.get("nodes", {})
    assert {name: outcome.gpus.get(name) for name in expect.get("gpus", {})} == expect.get("gpus", {})
    assert {name: outcome.waits.get(name) for name in expect.get("waits", {})} == expect.get("waits", {})
    if "preemption" in story and "allocation" not in story and not story.get("reservations"):
        assert outcome.gives_way == expect.get("gives_way", {})
        assert outcome.again == expect.get("again", {})
    order = expect.get("order", [])
    assert [name for name in outcome.starts if name in order] == order


def play(story: dict[str, Any]) -> Outcome:
    arrivals = [arrival(serial, words) for serial, words in enumerate(story["jobs"], start=1)]
    simulation = Simulation(snapshot=ClusterSnapshot(cluster(story)), arrivals=arrivals)
    outcome = Outcome()
    for step in simulation:
        for start in step.plan.starts:
            name = simulation.snapshot.jobs[start.job_id].name
            if name in outcome.starts:
                outcome.again.setdefault(name, []).append(step.at)
            outcome.starts.setdefault(name, step.at)
            outcome.nodes[name] = [grant.node for grant in start.allocation.grants]
            outcome.gpus[name] = [*start.allocation.gpus]
        for one in step.plan.preemptions:
            victim, other = (simulation.snapshot.jobs[job_id].name for job_id in (one.job_id, one.for_job))
            outcome.gives_way.setdefault(victim, []).append([other, one.rule.value])
        for job in simulation.snapshot.jobs.values():
            if job.state is JobState.QUEUED and job.name not in outcome.starts and job.name not in outcome.waits:
                told = explain(simulation.snapshot, step.plan, job, step.at)
                outcome.waits[job.name] = [reason.rule for reason in told.reasons]
    return outcome


def cluster(story: dict[str, Any]) -> list[Change]:
    queues = story.get("queues", {"default": {"policy": "fcfs"}})
    changes: list[Change] = [
        PutRules(
            limits=Limits(**story.get("limits", {})),
            score_time_constant=3600.0,
            ordering=from_plain(OrderingRules, story.get("ordering", {})),
            preemption=from_plain(PreemptionRules, story.get("preemption", {})),
            allocation=from_plain(AllocationRules, story.get("allocation", {})),
            backfill=from_plain(BackfillRules, story.get("backfill", {})),
        ),
        *(PutNode(node=machine(name, words)) for name, words in story["nodes"].items()),
        *(PutQueue(queue=queue(name, words or {})) for name, words in queues.items()),
    ]
    for group, users in story.get("groups", {}).items():
        member = Membership(group=group, pool="default")
        changes += [PutMembership(user=user, membership=member) for user in users]
    for name, words in story.get("reservations", {}).items():
        reservation = from_plain(Reservation, {"name": name, "pool": "default", **words})
        changes.append(PutReservation(reservation=reservation))
    for name, words in story.get("volumes", {}).items():
        volume = {"id": name, "name": name, "owner": "ann", "type": VolumeType.BLOCK, **(words or {})}
        changes.append(PutVolume(volume=from_plain(Volume, volume)))
    for user, kinds in story.get("quotas", {}).items():
        for kind, most in kinds.items():
            quota = Quota(gpu_milli=round(most["gpus"] * WHOLE) if "gpus" in most else None)
            changes.append(PutQuota(user=user, kind=JobKind(kind), quota=quota))
    for user, models in story.get("scores", {}).items():
        for model, value in models.items():
            changes.append(PutScore(user=user, model=model, score=Score(value=float(value))))
    return changes


def machine(name: str, words: dict[str, Any]) -> Node:
    """`gpus` is a number of one model, or a list of models; `suspect` and `failed` are places among them. `links` has
    the link group of each."""
    gpus = words.get("gpus", 0)
    models = [words.get("model", "A10")] * gpus if isinstance(gpus, int) else gpus
    healths = {index: health for health in GpuHealth for index in words.get(health, [])}
    return Node(
        id=name,
        state=NodeState(words.get("state", "ready")),
        cpu_milli=words.get("cpus", 64) * WHOLE,
        memory_bytes=words.get("memory_gib", 256) * GIB,
        gpus=tuple(
            Gpu(
                id=f"{name}/{index}",
                index=index,
                model=model,
                pool=words.get("pool", "default"),
                health=healths.get(index, GpuHealth.HEALTHY),
                link_group=words["links"][index] if "links" in words else "",
            )
            for index, model in enumerate(models)
        ),
        labels=tuple(sorted(words.get("labels", {}).items())),
        load=words.get("load"),
    )


def queue(name: str, words: dict[str, Any]) -> Queue:
    blocking = Blocking(words.get("blocking", "backfill"))
    return Queue(name=name, **{"policy": "fcfs", **words, "blocking": blocking})


def arrival(serial: int, words: dict[str, Any]) -> Arrival:
    words = dict(words)
    gpus, at = words.pop("gpus", 0), float(words.pop("at", 0))
    nodes = words.pop("nodes", 1)
    models = words.pop("model", ())
    request = Request(
        nodes=nodes,
        gpus=gpus if isinstance(gpus, int) else 0,
        gpu_milli=0 if isinstance(gpus, int) else round(gpus * WHOLE),
        cpu_milli=words.pop("cpus", 0) * WHOLE,
        memory_bytes=words.pop("memory_gib", 0) * GIB,
        models=(models,) if isinstance(models, str) else tuple(sorted(models)),
        labels=tuple(sorted(words.pop("labels", {}).items())),
    )
    limit, runs = words.pop("limit", None), float(words.pop("runs", 10))
    kind = JobKind(words.pop("kind", "distributed" if nodes > 1 else "training"))
    avoid: dict[str, Any] = {name: tuple(words.pop(name, ())) for name in ("avoid_nodes", "avoid_gpus")}
    saves = words.pop("saves", True)
    mounts = [word.split(":") for word in words.pop("mounts", ())]
    words["mounts"] = tuple(VolumeMount(volume=name, writes=mode == "rw") for name, mode in mounts)
    if "predicted" in words:
        p50, p90 = words.pop("predicted")
        words["predicted"] = Prediction(p50_seconds=float(p50), p90_seconds=float(p90), samples=3)
    if "elastic" in words:
        words["elastic"] = Elastic(**words.pop("elastic"))
    job = Job(
        id=f"j-{serial}",
        user=words.pop("user", "ann"),
        kind=kind,
        state=JobState.QUEUED,
        request=request,
        created_at=at,
        queued_at=at,
        time_limit_seconds=None if limit is None else float(limit),
        grace_seconds=float(words.pop("grace", 0)),
        **avoid,
        **words,
    )
    return Arrival(job=job, run_seconds=runs, saves=saves)
