"""Fleets with a problem, and the finding with its numbers; and a healthy fleet, with none."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from corral.core.alerts.model import Severity
from corral.core.model import Gpu, Job, JobKind, Node, Queue
from corral.core.monitoring.attempt_usage import Measured
from corral.core.reports.analysis import FINDERS, analyse, present_fleet
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind, PackageSize, UsageLine
from corral.core.snapshot.node_index import Fleet
from tests.unit.core.builders import node, running, waiting

HOUR = 3600.0
NOW = 7 * 24 * HOUR
GIB = 1 << 30


def used(
    serial: int,
    gpus: tuple[str, ...],
    *,
    hours: float,
    utilization: float,
    used_gpus: int | None = None,
    memory: int = 0,
    idle_hours: float = 0.0,
    **changes: Any,
) -> UsageLine:
    """An attempt that held these GPUs for so long, up to now, and was measured all the time."""
    seconds = hours * HOUR * len(gpus)
    fields: dict[str, Any] = {
        "attempt_id": f"j-{serial}.1",
        "job_id": f"j-{serial}",
        "job_name": f"job-{serial}",
        "user": "eve",
        "kind": JobKind.TRAINING,
        "queue": "default",
        "pool": "default",
        "model": "A10",
        "nodes": 1,
        "gpu_milli": 1000 * len(gpus),
        "gpu_ids": gpus,
        "queued_at": NOW - hours * HOUR,
        "planned_at": NOW - hours * HOUR,
        "ended_at": NOW,
        "measured": Measured(
            gpu_seconds=seconds,
            busy_gpu_seconds=seconds * utilization,
            idle_gpu_seconds=idle_hours * HOUR,
            memory_peak_bytes=memory,
            used_gpu_ids=gpus[: len(gpus) if used_gpus is None else used_gpus],
        ),
    }
    return UsageLine(**{**fields, **changes})


def seen(*things: Node | Job | Queue | UsageLine, **values: Any) -> AnalysisInput:
    queues = {thing.name: thing for thing in things if isinstance(thing, Queue)} or {"default": Queue(name="default")}
    return AnalysisInput(
        since=0.0,
        until=NOW,
        nodes=tuple(thing for thing in things if isinstance(thing, Node)),
        jobs=tuple(thing for thing in things if isinstance(thing, Job)),
        usage=tuple(thing for thing in things if isinstance(thing, UsageLine)),
        queues=queues,
        **values,
    )


def all_at(value: float, *nodes: Node) -> dict[str, float]:
    return {gpu.id: value for one in nodes for gpu in one.gpus}


N1, N2, N3 = node("n1", gpus=4), node("n2", gpus=4), node("n3", gpus=4)
#: GPUs whose memory is known
LARGE = node("big", gpus=(Gpu(id="big/0", index=0, model="A10", memory_bytes=80 * GIB),))


@dataclass(frozen=True, kw_only=True)
class Story:
    what: str
    seen: AnalysisInput
    #: nothing is expected where there is no kind
    kind: FindingKind | None = None
    subject: str = ""
    severity: Severity = Severity.WARNING
    evidence: dict[str, Any] = field(default_factory=dict)
    proposal: str = ""


HEALTHY = seen(
    N1,
    N2,
    running(1, {"n1": (0, 1, 2, 3)}),
    used(1, ("n1/0", "n1/1", "n1/2", "n1/3"), hours=10, utilization=0.9),
    used(2, ("n2/0",), hours=5, utilization=0.8, queued_at=NOW - 5 * HOUR - 60),
    recent_utilization={**all_at(0.9, N1), **all_at(0.0, N2)},
    recent_temperature={**all_at(70.0, N1), **all_at(35.0, N2)},
)

STORIES = [
    Story(what="a healthy fleet", seen=HEALTHY),
    Story(what="nothing at all", seen=seen()),
    # ---------------------------------------------------------------- idle allocations
    Story(
        what="two GPUs under a job that does nothing",
        seen=seen(
            N1,
            running(1, {"n1": (0, 1)}),
            used(1, ("n1/0", "n1/1"), hours=0.4, utilization=0.0, idle_hours=0.75, ended_at=None),
            recent_utilization={"n1/0": 0.0, "n1/1": 0.01},
        ),
        kind=FindingKind.IDLE_ALLOCATION,
        subject="j-1",
        evidence={"gpus": 2, "utilization": 0.005, "idle_gpu_hours": 0.75, "window_seconds": 1800, "user": "eve"},
        proposal="corral stop j-1",
    ),
    Story(
        what="an idle workbench is only mentioned",
        seen=seen(N1, running(1, {"n1": (0,)}, kind=JobKind.WORKBENCH), recent_utilization={"n1/0": 0.0}),
        kind=FindingKind.IDLE_ALLOCATION,
        subject="j-1",
        severity=Severity.INFO,
    ),
    Story(
        what="one of its GPUs works",
        seen=seen(N1, running(1, {"n1": (0, 1)}), recent_utilization={"n1/0": 0.0, "n1/1": 0.5}),
    ),
    Story(
        what="it has only just begun",
        seen=seen(N1, running(1, {"n1": (0,)}, started_at=NOW - 60), recent_utilization={"n1/0": 0.0}),
    ),
    Story(what="what was not measured is not idle", seen=seen(N1, running(1, {"n1": (0,)}))),
    # ---------------------------------------------------------------- low utilisation
    Story(
        what="ten GPU-hours of which two were used",
        seen=seen(N1, used(1, ("n1/0", "n1/1"), hours=5, utilization=0.2)),
        kind=FindingKind.LOW_UTILIZATION,
        subject="j-1",
        severity=Severity.INFO,
        evidence={"utilization": 0.2, "gpu_hours": 10, "unused_gpu_hours": 8, "gpus": 2},
    ),
    Story(
        what="attempts of one job count together",
        seen=seen(
            N1,
            used(1, ("n1/0",), hours=1, utilization=0.0, used_gpus=0),
            used(1, ("n1/0",), hours=1, utilization=0.9, attempt_id="j-1.2"),
        ),
    ),
    Story(what="too short to tell", seen=seen(N1, used(1, ("n1/0",), hours=0.9, utilization=0.0, used_gpus=0))),
    # ---------------------------------------------------------------- oversized requests
    Story(
        what="four GPUs held and one used",
        seen=seen(
            N1,
            used(1, ("n1/0", "n1/1", "n1/2", "n1/3"), hours=3, utilization=0.4, used_gpus=1),
            packages=(PackageSize(name="other", gpus=1, models=("H200",)), PackageSize(name="small", gpus=1)),
        ),
        kind=FindingKind.OVERSIZED_REQUEST,
        subject="j-1",
        evidence={"gpus": 4, "used_gpus": 1, "proposed_gpus": 1, "unused_gpu_hours": 9},
        proposal="--gpus 1 …, or --package small",
    ),
    Story(
        what="every node of a gang gets the same",
        seen=seen(
            N1,
            N2,
            used(1, ("n1/0", "n1/1", "n2/0", "n2/1"), hours=3, utilization=0.6, used_gpus=3, nodes=2),
        ),
        kind=FindingKind.OVERSIZED_REQUEST,
        subject="j-1",
        evidence={"used_gpus": 3, "proposed_gpus": 2},
        proposal="Ask for 2 next time on each node",
    ),
    Story(
        what="a fifth of one GPU would do",
        seen=seen(LARGE, used(1, ("big/0",), hours=4, utilization=0.3 - 1e-9, memory=8 * GIB)),
        kind=FindingKind.OVERSIZED_REQUEST,
        subject="j-1",
        severity=Severity.INFO,
        evidence={"proposed_gpus": 0.5, "memory_part": 0.1, "unused_gpu_hours": 2},
        proposal="--gpus 0.5",
    ),
    Story(
        what="it needs the memory",
        seen=seen(LARGE, used(1, ("big/0",), hours=4, utilization=0.35, memory=60 * GIB)),
    ),
    # ---------------------------------------------------------------- fragmentation
    Story(
        what="four free GPUs, one on each node, and a job that waits for four",
        seen=seen(
            *(node(f"n{place}", gpus=4) for place in range(1, 5)),
            *(running(place, {f"n{place}": (0, 1, 2)}) for place in range(1, 5)),
            waiting(9, gpus=4, at=NOW - 60),
        ),
        kind=FindingKind.FRAGMENTATION,
        subject="default/A10",
        evidence={"free_gpus": 4, "most_free_on_one_node": 1, "wanted_gpus": 4, "waiting_job": "j-9"}
        | {"moves": 0, "freed_nodes": 0, "unusable_gpus": 4},
    ),
    Story(
        what="two of six free GPUs are reserved, and count neither as free nor as a way out",
        seen=seen(
            *(node(f"n{place}", gpus=4) for place in range(1, 4)),
            *(running(place, {f"n{place}": (0, 1)}) for place in range(1, 4)),
            waiting(9, gpus=4, at=NOW - 60),
            reserved=frozenset({"n3/2", "n3/3"}),
        ),
        kind=FindingKind.FRAGMENTATION,
        subject="default/A10",
        evidence={"free_gpus": 4, "nodes_with_free_gpus": 2, "most_free_on_one_node": 2, "wanted_gpus": 4},
    ),
    Story(
        what="one move would make room",
        seen=seen(
            N1,
            N2,
            running(1, {"n1": (0, 1)}),
            running(2, {"n2": (0, 1)}),
            waiting(9, gpus=4, at=NOW - 60),
        ),
        kind=FindingKind.FRAGMENTATION,
        subject="default/A10",
        evidence={"free_gpus": 4, "most_free_on_one_node": 2, "moves": 1, "freed_nodes": 1},
        proposal="1 move would free n1 as a whole, at the cost of at most 0.3 GPU-hours",
    ),
    Story(
        what="nothing waits, but jobs usually ask for four",
        seen=seen(
            N1,
            N2,
            running(1, {"n1": (0, 1)}, kind=JobKind.WORKBENCH),
            running(2, {"n2": (0, 1)}, kind=JobKind.WORKBENCH),
            used(3, ("n1/0", "n1/1", "n1/2", "n1/3"), hours=1, utilization=1.0),
        ),
        kind=FindingKind.FRAGMENTATION,
        subject="default/A10",
        severity=Severity.INFO,
        evidence={"wanted_gpus": 4, "moves": 0},
    ),
    Story(
        what="there is a node that has room",
        seen=seen(N1, N2, running(1, {"n1": (0, 1)}), waiting(9, gpus=4, at=NOW - 60)),
    ),
    Story(
        what="there are not enough in total: that is a full cluster, not a scattered one",
        seen=seen(N1, running(1, {"n1": (0, 1)}), waiting(9, gpus=4, at=NOW - 60)),
    ),
    # ---------------------------------------------------------------- hot GPUs
    Story(
        what="over the limit like all its neighbours",
        seen=seen(N1, recent_temperature=all_at(84.0, N1) | {"n1/2": 88.0}),
        kind=FindingKind.HOT_GPU,
        subject="n1/2",
        evidence={"temperature_celsius": 88, "threshold_celsius": 85, "neighbours_celsius": 84},
        proposal="cooling of n1",
    ),
    Story(
        what="much hotter than its neighbours",
        seen=seen(N1, recent_temperature=all_at(55.0, N1) | {"n1/0": 75.0}),
        kind=FindingKind.HOT_GPU,
        subject="n1/0",
        severity=Severity.INFO,
        evidence={"temperature_celsius": 75, "neighbours_celsius": 55},
        proposal="corral nodes drain n1",
    ),
    Story(what="warm beside cold ones", seen=seen(N1, recent_temperature=all_at(30.0, N1) | {"n1/0": 55.0})),
    # ---------------------------------------------------------------- pools out of balance
    Story(
        what="one pool waits, another stands idle",
        seen=seen(
            N1,
            node("m1", gpus=4, pool="vision"),
            node("m2", gpus=4, pool="vision"),
            Queue(name="default", policy="fcfs"),
            Queue(name="vision", pool="vision"),
            running(1, {"n1": (0, 1, 2, 3)}),
            waiting(2, gpus=4, at=NOW - HOUR),
            used(3, ("m1/0", "m1/1"), hours=84, utilization=1.0, pool="vision", queue="vision"),
        ),
        kind=FindingKind.POOL_BALANCE,
        subject="default",
        evidence={"waiting_gpus": 4, "oldest_wait_seconds": HOUR, "from_pool": "vision", "from_pool_free_gpus": 8}
        | {"from_pool_mean_held_gpus": 1.0, "move_gpus": 4, "to_pool": "default"},
        proposal="corral pool move-gpus default m1/0 m1/1 m1/2 m1/3",
    ),
    Story(
        what="what the other pool usually holds, and is guaranteed, it keeps",
        seen=seen(
            N1,
            node("m1", gpus=4, pool="vision"),
            Queue(name="default", policy="fcfs"),
            Queue(name="vision", pool="vision", guaranteed_gpus=3),
            running(1, {"n1": (0, 1, 2, 3)}),
            waiting(2, gpus=4, at=NOW - HOUR),
        ),
        kind=FindingKind.POOL_BALANCE,
        subject="default",
        evidence={"move_gpus": 1},
    ),
    Story(
        what="another model is no help",
        seen=seen(
            N1,
            node("m1", gpus=4, pool="vision", model="H200"),
            Queue(name="default", policy="fcfs"),
            Queue(name="vision", pool="vision"),
            running(1, {"n1": (0, 1, 2, 3)}),
            waiting(2, gpus=4, at=NOW - HOUR),
        ),
    ),
    Story(
        what="both wait",
        seen=seen(
            N1,
            node("m1", gpus=4, pool="vision"),
            Queue(name="default", policy="fcfs"),
            Queue(name="vision", pool="vision"),
            running(1, {"n1": (0, 1, 2, 3)}),
            waiting(2, gpus=4, at=NOW - HOUR),
            waiting(3, gpus=1, at=NOW - HOUR, queue="vision"),
        ),
    ),
    # ---------------------------------------------------------------- queues that starve
    Story(
        what="three hours in one queue, minutes in the other",
        seen=seen(
            N1,
            Queue(name="default"),
            Queue(name="night", weight=3.0),
            running(1, {"n1": (0, 1, 2, 3)}),
            waiting(2, gpus=1, at=NOW - 3 * HOUR, queue="night"),
            waiting(3, gpus=1, at=NOW - 2 * HOUR, queue="night"),
            used(1, ("n1/0",), hours=10, utilization=1.0, queued_at=NOW - 10 * HOUR - 300),
        ),
        kind=FindingKind.STARVING_QUEUE,
        subject="night",
        evidence={"waiting_jobs": 2, "oldest_wait_seconds": 3 * HOUR, "p90_wait_seconds": 3 * HOUR}
        | {"others_p90_wait_seconds": 300, "share_of_gpu_hours": 0, "share_of_weight": 0.75},
        proposal="corral queue edit night",
    ),
    Story(
        what="a day is too long whatever others wait",
        seen=seen(N1, running(1, {"n1": (0, 1, 2, 3)}), waiting(2, gpus=1, at=NOW - 25 * HOUR)),
        kind=FindingKind.STARVING_QUEUE,
        subject="default",
        evidence={"oldest_wait_seconds": 25 * HOUR},
    ),
    Story(
        what="all wait alike",
        seen=seen(
            N1,
            Queue(name="default"),
            Queue(name="night"),
            running(1, {"n1": (0, 1, 2, 3)}),
            waiting(2, gpus=1, at=NOW - 3 * HOUR, queue="night"),
            waiting(3, gpus=1, at=NOW - 3 * HOUR),
        ),
    ),
]


def of_kind(found: list[Finding], kind: FindingKind) -> list[Finding]:
    return [finding for finding in found if finding.kind is kind]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.what)
def test_story(story: Story) -> None:
    found = analyse(story.seen)
    if story.kind is None:
        assert [finding.title for finding in found] == []
        return
    (finding,) = of_kind(found, story.kind)
    assert (finding.subject, finding.severity) == (story.subject, story.severity)
    evidence = {name: finding.evidence[name] for name in story.evidence}
    for name, value in story.evidence.items():
        assert evidence[name] == (value if isinstance(value, str) else pytest.approx(value)), name
    assert story.proposal in finding.proposal
    assert finding.text.endswith(".")
    assert finding.text.count("{") == 0
    # Reports and the console show the text as it is.
    assert "`" not in finding.title + finding.text + finding.proposal


def test_every_kind_has_a_story() -> None:
    assert {story.kind for story in STORIES} - {None} == set(FindingKind) == FINDERS.keys()


def test_an_idle_job_is_listed_once() -> None:
    found = analyse(
        seen(
            N1,
            running(1, {"n1": (0,)}),
            used(1, ("n1/0",), hours=10, utilization=0.0, used_gpus=0, ended_at=None),
            recent_utilization={"n1/0": 0.0},
        )
    )
    assert [finding.kind for finding in found] == [FindingKind.IDLE_ALLOCATION]


def test_the_severe_and_the_large_come_first_and_no_kind_fills_everything() -> None:
    lines = [used(serial, ("n1/0",), hours=serial, utilization=0.1) for serial in range(1, 31)]
    hot = {"n1/3": 90.0, "n1/2": 95.0}
    found = analyse(seen(N1, *lines, recent_temperature=all_at(80.0, N1) | hot))
    assert [finding.subject for finding in found[:2]] == ["n1/2", "n1/3"]
    assert [finding.subject for finding in found[2:]] == [f"j-{serial}" for serial in range(30, 10, -1)]


def test_thresholds_are_data() -> None:
    strict = replace(HEALTHY, rules=replace(HEALTHY.rules, low_utilization=0.95))
    assert [finding.kind for finding in analyse(strict)] == [FindingKind.LOW_UTILIZATION] * 2


def test_waiting_jobs_are_looked_through_once_for_all_pools_and_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 200,000 of them each look takes a third of a second."""
    queues = {name: Queue(name=name, pool=name) for name in ("red", "blue")}
    nodes = tuple(
        node(f"n{number}", 4, model=model, pool=pool)
        for number, (model, pool) in enumerate((model, pool) for model in ("A10", "H100") for pool in queues)
    )
    jobs = tuple(waiting(number, gpus=4, queue=("red", "blue")[number % 2]) for number in range(1, 41))
    read: list[str] = []
    serial = Job.serial.fget  # type: ignore[attr-defined]

    def noted(job: Job) -> int:
        read.append(job.id)
        return int(serial(job))

    monkeypatch.setattr(Job, "serial", property(noted))
    seen = AnalysisInput(since=0.0, until=NOW, nodes=nodes, jobs=jobs, queues=queues)
    analyse(seen)
    assert len(read) == len(jobs)


def test_the_console_names_every_number_of_a_finding() -> None:
    root = Path(__file__).parents[5]
    analysis = root / "src" / "corral" / "core" / "reports" / "analysis"
    sources = "".join(file.read_text(encoding="utf-8") for file in sorted(analysis.glob("*.py")))
    names = set(re.findall(r'^ +"([a-z0-9_]+)": ', sources, re.MULTILINE))
    names |= set(re.findall(r'evidence\["([a-z0-9_]+)"\] = ', sources))
    assert {"free_gpus", "waiting_job", "neighbours_celsius"} <= names
    texts = root / "console" / "src" / "pages" / "reports" / "analysis" / "findings.texts.ts"
    named = set(re.findall(r"^  ([a-z0-9_]+): \[", texts.read_text(encoding="utf-8"), re.MULTILINE))
    assert names <= named, f"add to findings.texts.ts: {sorted(names - named)}"


def test_an_analysis_makes_the_fleet_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes half a second with 12,500 nodes, and two findings read it."""
    made: list[Fleet] = []

    def noted(nodes: tuple[Node, ...]) -> Fleet:
        made.append(Fleet(nodes))
        return made[-1]

    monkeypatch.setattr(present_fleet, "Fleet", noted)
    whole = seen(node("n1", gpus=4), node("n2", gpus=4), running(1, {"n1": (0, 1, 2, 3)}), waiting(2, gpus=2))
    assert analyse(whole) == analyse(replace(whole))
    assert len(made) == 2, "one for each analysis"
    assert present_fleet.waiting_jobs(whole, ("default", "A10")) is present_fleet.waiting_jobs(
        whole, ("default", "A10")
    )
