"""Reading traces: the jobs of each format, and the errors for lines that cannot be parsed."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.simulator.fleets import parse_fleet
from corral.simulator.traces import FORMATS, detect, history
from corral.simulator.traces.job import LeftOut, TraceJob, UnreadableTrace

GIB = 2**30

PHILLY = """job_id,num_gpu,submit_time,iterations,model_name,iteration_time,priority
a,4,1000,100,resnet,500,1
b,0,2000,10,resnet,500,1
c,16,3000,10,vgg,2000,0
"""
SWF = """; Version: 2.2
; MaxNodes: 4
; MaxProcs: 32

1 0 5 100 8 -1 -1 8 200 -1 1 3 7 -1 1 -1 -1 -1
2 10 -1 -1 8 -1 -1 8 200 -1 0 3 7 -1 1 -1 -1 -1
3 20 0 50 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 1 -1 -1 -1
4 30 0 50.5 16 -1 -1 -1 -1 -1 1 -1 -1 -1 1 -1 -1 -1
"""
SACCT = """JobID|JobName|User|Account|Submit|Start|End|State|ReqTRES|Timelimit|NNodes|Comment
7|train "x"|ann|vision|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00|COMPLETED|\
billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1|1-02:00:00|1|
7.batch|batch||vision|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:01:00|COMPLETED|cpu=8||1|
8_1|array|bob|text|2026-01-01T00:10:00|Unknown|Unknown|PENDING|gres/gpu=1|UNLIMITED|1|
9|gang|bob|text|2026-01-01T00:20:00|2026-01-01T00:20:00|2026-01-01T00:30:30|TIMEOUT|cpu=32,gres/gpu=16,node=4|10:30|4|
"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,1000,1024,1,500,,LS,Running,10,100,20
p-1,2000,2048,8,1000,A|B,LS,Failed,20,80,
p-2,2000,2048,1,1000,,LS,Failed,90,80,90
"""
REPORT = """attempt,job,job_name,user,group,gpu_model,nodes,gpus,queued_at,planned_at,started_at,ended_at,outcome
j-1.1,j-1,train,ann,vision,A10,1,2,2026-01-01T00:00:00.000000Z,2026-01-01T00:01:00Z,2026-01-01T00:01:00Z,\
2026-01-01T00:02:00Z,failed
j-2.1,j-2,share,bob,,A10,1,0.5,2026-01-01T00:00:30Z,2026-01-01T00:01:00Z,,2026-01-01T00:02:00Z,failed
j-1.2,j-1,train,ann,vision,A10,1,2,2026-01-01T00:02:00Z,2026-01-01T00:03:00Z,2026-01-01T00:03:00Z,\
2026-01-01T00:13:00Z,completed
j-3.1,j-3,runs,bob,,A10,1,1,2026-01-01T00:00:30Z,2026-01-01T00:01:00Z,2026-01-01T00:01:00Z,,
"""
TEXTS = {"philly": PHILLY, "swf": SWF, "slurm": SACCT, "openb": OPENB, "corral": REPORT}


def written(folder: Path, text: str, name: str = "trace") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(path: Path) -> tuple[list[TraceJob], LeftOut]:
    left_out: LeftOut = Counter()
    return list(detect(path).read(path, left_out)), +left_out


@pytest.mark.parametrize("name", TEXTS)
def test_a_format_is_seen_from_the_content_compressed_or_not(name: str, tmp_path: Path) -> None:
    assert detect(written(tmp_path, TEXTS[name])) is FORMATS[name]
    (tmp_path / "packed").write_bytes(gzip.compress(TEXTS[name].encode()))
    assert detect(tmp_path / "packed") is FORMATS[name]
    assert read(tmp_path / "packed") == read(tmp_path / "trace")
    assert [key for key, known in FORMATS.items() if known.matches(TEXTS[name])] == [name]


def test_philly(tmp_path: Path) -> None:
    jobs, left_out = read(written(tmp_path, PHILLY))
    assert [(job.name, job.submitted_at, job.gpus) for job in jobs] == [("a", 1.0, 4), ("c", 3.0, 16)]
    assert [job.run_seconds for job in jobs] == pytest.approx([50 * 1.015, 20 * 1.015])
    assert left_out == {"asks for no GPU": 1}
    assert [len(node.gpus) for node in FORMATS["philly"].fleet(tmp_path / "trace")] == [8] * 8


def test_swf(tmp_path: Path) -> None:
    jobs, left_out = read(written(tmp_path, SWF))
    assert jobs == [
        TraceJob(
            name="1",
            user="user-3",
            group="group-7",
            submitted_at=0,
            run_seconds=100,
            gpus=8,
            time_limit_seconds=200,
        ),
        TraceJob(name="4", user="unknown", submitted_at=30, run_seconds=50.5, gpus=16),
    ]
    assert left_out == {"the run time is not known": 1, "the number of processors is not known": 1}
    assert [len(node.gpus) for node in FORMATS["swf"].fleet(tmp_path / "trace")] == [8] * 4


def test_sacct(tmp_path: Path) -> None:
    jobs, left_out = read(written(tmp_path, SACCT))
    one, gang = jobs
    assert (one.name, one.user, one.group, one.gpus, one.nodes) == ('train "x"', "ann", "vision", 2, 1)
    assert (one.models, one.cpu_milli, one.memory_bytes) == (("a100",), 8000, 64 * GIB)
    assert (one.run_seconds, one.time_limit_seconds) == (3600, 26 * 3600)
    assert (gang.gpus, gang.nodes, gang.models, gang.time_limit_seconds) == (16, 4, (), 630)
    assert gang.submitted_at - one.submitted_at == 1200
    assert left_out == {"it did not run, or has not ended": 1}


def test_openb(tmp_path: Path) -> None:
    jobs, left_out = read(written(tmp_path, OPENB))
    assert [(job.submitted_at, job.run_seconds, job.gpus, job.gpu_milli, job.models) for job in jobs] == [
        (10, 80, 0, 500, ()),
        (20, 60, 8, 0, ("A", "B")),
    ]
    assert left_out == {"it was deleted before it was scheduled": 1}


def test_a_report_of_corral(tmp_path: Path) -> None:
    """The run time of a job is that of all its attempts; one that still runs is left out."""
    jobs, left_out = read(written(tmp_path, REPORT))
    assert [(job.name, job.user, job.group, job.run_seconds, job.gpus, job.gpu_milli) for job in jobs] == [
        ("train", "ann", "vision", 660, 2, 0),
        ("share", "bob", "", 0, 0, 500),
    ]
    assert left_out == {"it has not ended": 1}


def view(job_id: str, **values: Any) -> dict[str, Any]:
    base = {"name": job_id, "user": "ann", "queue": "default", "priority": 5, "nodes": 1, "gpus": 1, "cpus": 2.0}
    base |= {"memory_bytes": GIB, "models": ["A10"], "time_limit_seconds": 600.0, "attempt": 1}
    base |= {"created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:01:00Z"}
    return {"id": job_id, "ended_at": "2026-01-01T00:03:00Z", **base, **values}


def test_finished_jobs_of_a_server() -> None:
    asked = []

    def attempts_of(job_id: str) -> Iterator[dict[str, Any]]:
        asked.append(job_id)
        yield {"started_at": "2026-01-01T00:01:00Z", "ended_at": "2026-01-01T00:02:00Z"}
        yield {"started_at": "2026-01-01T00:04:00Z", "ended_at": "2026-01-01T00:09:00Z"}
        yield {"started_at": None, "ended_at": "2026-01-01T00:10:00Z"}

    views = [view("j-1"), view("j-2", attempt=3), view("j-3", started_at=None), view("j-4", nodes=2, gpus=8)]
    left_out: LeftOut = Counter()
    jobs = list(history.jobs_of(views, attempts_of, left_out))
    assert [(job.name, job.run_seconds, job.gpus, job.nodes) for job in jobs] == [
        ("j-1", 120, 1, 1),
        ("j-2", 360, 1, 1),
        ("j-4", 120, 16, 2),
    ]
    assert (asked, left_out) == (["j-2"], {"it did not run": 1})


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("philly", "c,16", "c,many", "line 4: num_gpu is 'many', not a number"),
        ("philly", "c,16", "c,-1", "line 4: num_gpu is '-1', not a whole number from 0 on"),
        ("philly", "c,16", "c,nan", "line 4: num_gpu is 'nan', not a finite number"),
        ("philly", ",0\n", "\n", "line 4: 6 fields, but 7 titles"),
        ("swf", "16 -1 -1 -1 -1 -1 1", "16 -1 -1 -1 -1 1", "line 8: 17 fields; the format has 18"),
        ("swf", "50.5", "x", "line 8: 'x' is not a number"),
        ("slurm", "00:30:30|TIMEOUT", "00:10:30|TIMEOUT", "line 5: End lies before Start"),
        ("slurm", "2026-01-01T00:20:00|2026", "yesterday|2026", "line 5: Submit is 'yesterday', not a time"),
        ("slurm", "gres/gpu=16", "gres/gpu=x", "line 5: 'gres/gpu=x' has no whole number"),
        ("slurm", "10:30|4", "soon|4", "line 5: Timelimit is 'soon'"),
        ("slurm", "mem=64G", "mem=much", "line 2: mem=much is not a size"),
        ("slurm", "|Start|", "|Begin|", "line 1: the columns Start are missing"),
        ("slurm", "ReqTRES", "Other", "line 2: none of the columns ReqTRES"),
        ("openb", "creation_time", "created", "line 1: the columns creation_time are missing"),
        ("openb", "p-1,2000", "p-1,", "line 3: cpu_milli is empty"),
        ("corral", "A10,1,0.5", "A10,1,1.5", "line 3: gpus: "),
        ("corral", "2026-01-01T00:00:30Z,2026-01-01T00:01:00Z,,", "never,never,,", "line 3: queued_at is 'never'"),
    ],
)
def test_invalid_line_of_a_trace_is_reported_with_its_number(
    name: str, old: str, new: str, problem: str, tmp_path: Path
) -> None:
    assert old in TEXTS[name]
    path = written(tmp_path, TEXTS[name].replace(old, new, 1))
    with pytest.raises(UnreadableTrace) as raised:
        list(FORMATS[name].read(path, Counter()))
    assert str(raised.value).startswith(f"{path}, {problem}")


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match="No such file"):
        detect(tmp_path / "absent")
    for content in (b"", b"hello\n", b"a,b,c\n1,2,3\n"):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(UnreadableTrace, match="not in a format that is known"):
            detect(tmp_path / "other")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(UnreadableTrace, match="not a text file"):
        detect(tmp_path / "binary")
    (tmp_path / "torn").write_bytes(gzip.compress(PHILLY.encode())[:-9])
    with pytest.raises(UnreadableTrace, match="cannot be read"):
        read(tmp_path / "torn")
    for name in ("slurm", "corral"):
        with pytest.raises(UnreadableTrace, match="name the fleet"):
            FORMATS[name].fleet(tmp_path / "trace")


def test_a_fleet_in_words() -> None:
    nodes = parse_fleet("2x8xA100:96:1TiB, 1x4")
    assert [(len(node.gpus), node.cpu_milli, node.memory_bytes) for node in nodes] == [
        (8, 96_000, 2**40),
        (8, 96_000, 2**40),
        (4, 0, 0),
    ]
    assert {gpu.model for node in nodes for gpu in node.gpus} == {"A100", "GPU"}
    assert len({gpu.id for node in nodes for gpu in node.gpus}) == 20


@pytest.mark.parametrize("text", ["", "8", "0x8", "8x", "axb", "8x8xV100:much", "9999999x8", "8x8xV100:1:much"])
def test_a_fleet_that_cannot_be_understood(text: str) -> None:
    with pytest.raises(ValueError, match=r"fleet|size"):
        parse_fleet(text)
