"""The records of Slurm, in each generation of its JSON, as corral reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.core.model import EndReason, NodeState
from corral.engines.slurm.attempts.ends import exit_from_slurm, parse_exit, why_not_begun
from corral.engines.slurm.cluster.nodes import FleetRules, nodes_seen, others_use, unexplained
from corral.engines.slurm.slurm_api.hostlist import expand
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob, Unreadable, gpus_in, jobs_of, nodes_of

NODE_22: dict[str, Any] = {
    "name": "gpu1",
    "address": "10.0.0.1",
    "state": "mixed",
    "state_flags": ["DRAIN"],
    "reason": "disk",
    "cpus": 16,
    "real_memory": 64000,
    "alloc_cpus": 3,
    "alloc_memory": 300,
    "gres": "gpu:a100:8(S:0-1)",
    "gres_used": "gpu:a100:5(IDX:0-4)",
    "partitions": ["batch", "urgent"],
    "active_features": "rack-7,ib",
}
#: As `scontrol --details show nodes --json` dumps it from 23.02 on, and slurmrestd.
NODE_23: dict[str, Any] = {
    "architecture": "x86_64",
    "name": "gpu1",
    "address": "10.0.0.1",
    "hostname": "gpu1",
    "state": ["MIXED", "DRAIN"],
    "next_state_after_reboot": ["INVALID"],
    "reason": "disk",
    "reason_changed_at": 1700000000,
    "cpus": 16,
    "effective_cpus": 16,
    "real_memory": 64000,
    "free_mem": {"set": True, "infinite": False, "number": 60000},
    "alloc_memory": 300,
    "alloc_cpus": 3,
    "alloc_idle_cpus": 13,
    "gres": "gpu:a100:8(S:0-1)",
    "gres_drained": "N/A",
    "gres_used": "gpu:a100:5(IDX:0-4)",
    "partitions": ["batch", "urgent"],
    "features": ["rack-7", "ib"],
    "active_features": ["rack-7", "ib"],
    "reservation": "",
    "tres": "cpu=16,mem=62.50G,billing=16,gres/gpu=8,gres/gpu:a100=8",
    "tres_used": "cpu=3,mem=300M,gres/gpu=5,gres/gpu:a100=5",
}
#: Times became numbers with two words beside them.
NODE_24 = {
    **NODE_23,
    "reason_changed_at": {"set": True, "infinite": False, "number": 1700000000},
    "resume_after": {"set": False, "infinite": False, "number": 0},
    "gpu_spec": "",
}
JOB_22: dict[str, Any] = {
    "job_id": 7,
    "name": "corral-ab-j-1.1",
    "job_state": "RUNNING",
    "state_reason": "None",
    "user_name": "ann",
    "user_id": 1001,
    "comment": "corral-ab-j-1.1",
    "nodes": "gpu[1,3]",
    "cpus": 4,
    "tres_alloc_str": "cpu=4,mem=200M,node=2,billing=4,gres/gpu=8,gres/gpu:a100=8",
    "submit_time": 100,
    "start_time": 101,
    "end_time": 0,
    "exit_code": 0,
}
JOB_24 = {
    **JOB_22,
    "job_state": ["RUNNING"],
    "cpus": {"set": True, "infinite": False, "number": 4},
    "submit_time": {"set": True, "infinite": False, "number": 100},
    "start_time": {"set": True, "infinite": False, "number": 101},
    "end_time": {"set": False, "infinite": False, "number": 0},
    "exit_code": {
        "status": ["SUCCESS"],
        "return_code": {"set": True, "infinite": False, "number": 0},
        "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
    },
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[1,3-4],login", ["gpu1", "gpu3", "gpu4", "login"]),
        ("r[1-2]n[08-10]", ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]),
        ("", []),
    ],
)
def test_short_lists_of_hosts_are_written_out(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:a100:8(S:0-1)", {"a100": 8}),
        ("gpu:4", {"": 4}),
        ("gpu:a100:2,gpu:v100:2", {"a100": 2, "v100": 2}),
        ("cpu=4,gres/gpu=8,gres/gpu:a100=8", {"a100": 8}),
        ("gres:gpu:2", {"": 2}),
        ("gpu:a100:0(IDX:N/A)", {"a100": 0}),
        # types that begin with a digit, or are nothing else
        ("gpu:1080ti:4(S:0)", {"1080ti": 4}),
        ("gpu:4090:8", {"4090": 8}),
        ("gpu:1g.5gb:7,gpu:3g.20gb:1(S:0,1)", {"1g.5gb": 7, "3g.20gb": 1}),
        ("cpu=2,mem=1G,gres/gpu:1080ti=2,gres/gpu=2", {"1080ti": 2}),
        ("gpu:a100:2(IDX:0,3),gpu:v100:1(IDX:5)", {"a100": 2, "v100": 1}),
        # one, without a number
        ("gres:gpu", {"": 1}),
        ("gres/gpu:h100", {"h100": 1}),
        # no GPUs
        ("vgpu:4,shard:32,gpumem:80G,mps:gpu:100", {}),
        ("gres/gpumem=40G,gres/gpuutil=50", {}),
        ("(null)", {}),
        ("", {}),
    ],
)
def test_gpus_are_counted_once_in_every_notation(text: str, gpus: dict[str, int]) -> None:
    assert gpus_in(text) == gpus


@pytest.mark.parametrize("node", [NODE_22, NODE_23, NODE_24])
def test_a_node_is_the_same_in_all_generations(node: dict[str, Any]) -> None:
    (seen,) = nodes_of({"nodes": [node]})
    assert (seen.state, "DRAIN" in seen.flags, seen.used_gpus) == ("MIXED", True, 5)
    assert (seen.features, seen.gpus) == (("ib", "rack-7"), {"a100": 8})
    assert (seen.address, seen.cpus, seen.memory_mib, seen.reason) == ("10.0.0.1", 16, 64000, "disk")
    assert seen.partitions == ("batch", "urgent")


@pytest.mark.parametrize(
    "document",
    [
        # rows of partitions, as `sinfo --json` gives since 23.02
        {"sinfo": [{"nodes": {"allocated": 1, "nodes": ["gpu1"]}, "gres": {"total": "gpu:8"}}], "errors": []},
        {"meta": {}, "errors": []},
        {"nodes": None, "jobs": {}},
    ],
)
def test_an_answer_about_something_else_is_not_an_empty_cluster(document: dict[str, Any]) -> None:
    with pytest.raises(Unreadable, match="there are no nodes in what Slurm answered, but "):
        nodes_of(document)
    with pytest.raises(Unreadable, match="there are no jobs in what Slurm answered, but "):
        jobs_of(document)
    assert (nodes_of({"nodes": []}), jobs_of({"jobs": []})) == ([], [])
    # Slurm keeps a place for nodes that it hides.
    assert [node.name for node in nodes_of({"nodes": [{**NODE_24, "name": None}, NODE_24]})] == ["gpu1"]


@pytest.mark.parametrize(
    "change", [{"cpus": "many"}, {"cpus": {"set": True}}, {"job_state": 7}, {"job_id": None}, {"nodes": "gpu[a-b]"}]
)
def test_an_answer_in_other_words_is_unreadable_and_breaks_nothing(change: dict[str, Any]) -> None:
    with pytest.raises(Unreadable, match="its jobs have a form that is not known here"):
        jobs_of({"jobs": [{**JOB_24, **change}]})
    nameless = {name: value for name, value in NODE_24.items() if name != "name"}
    with pytest.raises(Unreadable, match=r"its nodes have a form .* \(KeyError\('name'\)\)"):
        nodes_of({"nodes": [nameless]})
    # One unreadable job does not hide the others.
    assert len(jobs_of({"jobs": [JOB_24, {**JOB_24, **change}]})) == 1


@pytest.mark.parametrize("job", [JOB_22, JOB_24])
def test_a_job_is_the_same_in_both_generations(job: dict[str, Any]) -> None:
    (seen,) = jobs_of({"jobs": [job]})
    assert (seen.state, seen.nodes, seen.gpus, seen.cpus, seen.memory_mib) == ("RUNNING", ("gpu1", "gpu3"), 4, 2, 100)
    assert (seen.submitted_at, seen.started_at, seen.ended_at, seen.exit_code) == (100.0, 101.0, None, 0)
    assert JobOwner(uid=seen.uid, name="other").owns(seen)
    assert not JobOwner(uid=4711, name=seen.user).owns(seen)


@pytest.mark.parametrize("state", ["COMPLETING", ["COMPLETED", "COMPLETING"], ["FAILED", "COMPLETING"]])
def test_a_job_holds_its_nodes_until_they_are_cleaned_up(state: Any) -> None:
    (seen,) = jobs_of({"jobs": [{**JOB_24, "job_state": state}]})
    assert (seen.is_over, seen.holds_nodes) == (False, True)
    (over,) = jobs_of({"jobs": [{**JOB_24, "job_state": ["FAILED"]}]})
    assert (over.is_over, over.holds_nodes) == (True, False)


def test_gpus_held_by_others_are_never_those_that_a_plan_has_named() -> None:
    (job,) = jobs_of({"jobs": [JOB_22]})
    named = {"gpu1": frozenset({"gpu1-gpu6", "gpu1-gpu7"})}
    rules = FleetRules(models={"a100": "A100-80G"})
    (node,) = nodes_seen(nodes_of({"nodes": [NODE_22]}), others_use([job], own=()), named, rules)
    assert (node.state, len(node.gpus), node.gpus[0].model) == (NodeState.CORDONED, 8, "A100-80G")
    # half of that job's eight are here, and none of them is one that a plan has named
    assert node.taken.gpus == ("gpu1-gpu2", "gpu1-gpu3", "gpu1-gpu4", "gpu1-gpu5")
    assert (node.taken.cpu_milli, node.taken.memory_bytes) == (2000, 100 << 20)
    assert ("rack", "rack-7") in node.labels
    (mine,) = nodes_seen(nodes_of({"nodes": [NODE_22]}), others_use([job], own={job.id}), named, rules)
    assert mine.taken.gpus == ()


@pytest.mark.parametrize(
    ("details", "taken"),
    [
        # as Slurm reports: which ones, of which node of the job
        (["gpu:a100:4(IDX:0-2,5)", "gpu:a100:4(IDX:4-7)"], {0, 1, 2, 5}),
        (["gpu:a100:3(IDX:0-2),gpu:v100:1(IDX:3)", ""], {0, 1, 2, 3}),
        # those that a plan has named are its own, whatever Slurm says at this moment
        (["gpu:a100:4(IDX:0,5-7)", ""], {0, 3, 4, 5}),
        # and GPUs that it does not report are estimated
        (["gpu:a100:4(IDX:N/A)", ""], {2, 3, 4, 5}),
        (["gpu:a100:4(IDX:0-3)"], {2, 3, 4, 5}),
        # nor are those of something else GPUs
        (["vgpu:4(IDX:0-3)", ""], {2, 3, 4, 5}),
    ],
)
def test_others_have_the_gpus_that_slurm_gave_them(details: list[str], taken: set[int]) -> None:
    (job,) = jobs_of({"jobs": [{**JOB_22, "gres_detail": details}]})
    named = {"gpu1": frozenset({"gpu1-gpu6", "gpu1-gpu7"})}
    (node,) = nodes_seen(nodes_of({"nodes": [NODE_22]}), others_use([job], own=()), named, FleetRules())
    assert node.taken.gpus == tuple(f"gpu1-gpu{index}" for index in sorted(taken))


@pytest.mark.parametrize("booked", ["cpu=4,mem=200M,node=2,billing=4,gres/gpu=5", "cpu=4,mem=200M,node=2,billing=4"])
def test_each_node_has_the_gpus_that_slurm_gave_the_job_there(booked: str) -> None:
    """Also where the accounting has no column for GPUs, or five are on two nodes."""
    details = ["gpu:a100:4(IDX:0-3)", "gpu:a100:1(IDX:0)"]
    (job,) = jobs_of({"jobs": [{**JOB_24, "tres_alloc_str": booked, "gres_detail": details}]})
    assert (job.gpus_on("gpu1"), job.gpus_on("gpu3")) == (4, 1)
    assert job.gpus > 0, "otherwise they would not be queried"
    others = others_use([job], own=())
    assert (others["gpu1"].gpus, others["gpu3"].gpus) == (4, 1)
    seen = nodes_of({"nodes": [{**NODE_24, "tres_used": "cpu=3,mem=300M"}]})
    assert unexplained(seen, [job]) == {"gpu1": 1}


def test_gpus_that_slurm_lost_count_of_belong_to_no_job() -> None:
    seen, (job,) = nodes_of({"nodes": [NODE_22]}), jobs_of({"jobs": [JOB_22]})
    # five are called used, and the job has four of them
    assert unexplained(seen, [job]) == {"gpu1": 1}
    assert unexplained(seen, [job, replace(job, id=8)]) == {}
    (node,) = nodes_seen(seen, others_use([job], own={job.id}, lost={"gpu1": 1}), {}, FleetRules())
    assert node.taken.gpus == ("gpu1-gpu7",)


def test_nodes_of_other_partitions_are_not_corrals() -> None:
    seen = nodes_of({"nodes": [NODE_22]})
    assert nodes_seen(seen, {}, {}, FleetRules(partitions=frozenset({"elsewhere"}))) == ()
    assert len(nodes_seen(seen, {}, {}, FleetRules(partitions=frozenset({"urgent"})))) == 1


@pytest.mark.parametrize(
    ("line", "reason", "code", "message"),
    [
        ("10.5 exit_code 0 - 10.4", EndReason.EXIT_CODE, 0, ""),
        ("10.5 exit_code 3 - 10.4", EndReason.EXIT_CODE, 3, "exit code 3"),
        ("10.5 exit_code 139 11 10.4", EndReason.EXIT_CODE, 139, "killed by SIGSEGV"),
        ("10.5 timed_out 143 15 10.4", EndReason.TIMED_OUT, 143, "reached its time limit of 9 s"),
        ("10.5 launch_error - - x: command not found", EndReason.LAUNCH_ERROR, None, "x: command not found"),
    ],
)
def test_end_written_by_an_instance_is_reported(line: str, reason: EndReason, code: int | None, message: str) -> None:
    end = parse_exit(line, limit_seconds=9.0, since=0.0, now=99.0).exit
    assert (end.ended_at, end.reason, end.exit_code, end.message) == (10.5, reason, code, message)


@pytest.mark.parametrize(
    ("state", "stopped", "reason", "code"),
    [
        ("OUT_OF_MEMORY", False, EndReason.OOM_KILLED, None),
        ("TIMEOUT", False, EndReason.TIMED_OUT, None),
        ("NODE_FAIL", False, EndReason.NODE_LOST, None),
        ("PREEMPTED", False, EndReason.PREEMPTED, None),
        ("CANCELLED", False, EndReason.LOST, None),
        ("CANCELLED", True, EndReason.EXIT_CODE, None),
        ("FAILED", False, EndReason.EXIT_CODE, 5),
        ("COMPLETED", False, EndReason.EXIT_CODE, 5),
    ],
)
def test_where_nodes_left_no_word_slurms_own_counts(
    state: str, stopped: bool, reason: EndReason, code: int | None
) -> None:
    job = SlurmJob(id=1, name="x", state=state, exit_code=5, started_at=1.0, ended_at=2.0)
    end = exit_from_slurm(job, has_begun=True, was_stopped=stopped, now=9.0)
    assert (end.reason, end.exit_code, end.ended_at) == (reason, code, 2.0)


@pytest.mark.parametrize(("signal", "code"), [(15, 143), (None, 137)])
def test_a_job_that_was_stopped_before_it_listened_ended_by_that_word(signal: int | None, code: int) -> None:
    job = SlurmJob(id=1, name="x", state="FAILED", signal=signal, started_at=1.0, ended_at=2.0)
    end = exit_from_slurm(job, has_begun=False, was_stopped=True, now=9.0)
    assert (end.reason, end.exit_code) == (EndReason.EXIT_CODE, code)


@pytest.mark.parametrize("state", ["FAILED", "COMPLETED"])
def test_a_job_that_slurm_could_not_begin_is_not_the_programs_failure(state: str) -> None:
    job = SlurmJob(id=1, name="x", state=state, exit_code=2, started_at=1.0, ended_at=2.0)
    end = exit_from_slurm(job, has_begun=False, was_stopped=False, now=9.0)
    assert (end.reason, end.exit_code) == (EndReason.LOST, None)
    assert "could not begin it on its node (exit code 2)" in end.message


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "others in Slurm got its place first (job 7 waited for Resources)"),
        ("Nodes required for job are DOWN, DRAINED", "did not begin it (job 7 waited: Nodes required for job are DOWN"),
        ("", "did not begin it (job 7 waited: no reason given)"),
    ],
)
def test_a_job_that_was_taken_back_says_why_it_had_not_begun(reason: str, words: str) -> None:
    assert words in why_not_begun(SlurmJob(id=7, name="x", state="PENDING", reason=reason))
