"""Batch scripts for Slurm, in corral's words."""

from __future__ import annotations

from typing import Any

import pytest

from corral.cli.slurm.sbatch_options import Here, NotUnderstood, models_for, understood

HERE = Here(directory="/home/ann", environment={"SEED": "7", "SECRET": "x"})


def body(*words: str, script: str = "#!/bin/bash\necho hello\n") -> dict[str, Any]:
    return understood(words, script, HERE).body


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--gres=gpu:2", "a.sh"], {"gpus": 2, "nodes": 1, "cpus": 1}),
        (["--gres=gpu:a100:2", "a.sh"], {"gpus": 2, "model": None}),
        (["-G", "8", "-N", "2", "a.sh"], {"gpus": 4, "nodes": 2}),
        (["--gpus-per-node=h200:8", "-N2", "a.sh"], {"gpus": 8, "nodes": 2}),
        (["--gpus-per-task=1", "--ntasks-per-node=4", "a.sh"], {"gpus": 4, "cpus": 4}),
        (["-c", "8", "-n", "2", "a.sh"], {"cpus": 16}),
        (["--mem=16G", "a.sh"], {"memory": "16GiB"}),
        (["--mem-per-cpu=500", "-c4", "a.sh"], {"memory": "2000MiB"}),
        (["-t", "90", "a.sh"], {"time": "5400s"}),
        (["-t", "1:30", "a.sh"], {"time": "90s"}),
        (["-t", "1:30:00", "a.sh"], {"time": "5400s"}),
        (["-t", "2-12", "a.sh"], {"time": "216000s"}),
        (["-t", "1-2:30", "a.sh"], {"time": "95400s"}),
        (["-p", "urgent,batch", "a.sh"], {"queue": "urgent"}),
        (["-C", "ib&rack-7", "a.sh"], {"labels": {"slurm.feature.ib": "yes", "slurm.feature.rack-7": "yes"}}),
        (["-d", "afterok:12:13", "a.sh"], {"after": ["j-12", "j-13"]}),
        (["-a", "0-9%10", "a.sh"], {"array": "0-9"}),
        (["-H", "-J", "train", "a.sh"], {"hold": True, "name": "train"}),
        (["--no-requeue", "a.sh"], {"max_retries": 0}),
        (["-D", "/data", "a.sh"], {"workdir": "/data"}),
        (["a.sh"], {"workdir": "/home/ann", "gpus": 0}),
    ],
)
def test_options_are_put_into_corrals_words(words: list[str], expected: dict[str, Any]) -> None:
    found = body(*words)
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("word", "gpu_type", "models"),
    [
        # as the clusters call it, whatever the capitals
        ("--gres=gpu:a100:2", "a100", ["A100-80G"]),
        ("--gres=gpu:A100", "A100", ["A100-80G"]),
        ("--gpus-per-node=a100-80g:1", "a100-80g", ["A100-80G"]),
        # two clusters may mean two models by it: either will do
        ("-Gv100:4", "v100", ["V100-16G", "V100-32G"]),
        # no cluster reports this type
        ("--gpus-per-task=h200:1", "h200", ["H200"]),
        ("--gres=gpu:1080ti:1", "1080ti", ["1080TI"]),
    ],
)
def test_types_of_slurm_are_the_models_that_the_clusters_say(word: str, gpu_type: str, models: list[str]) -> None:
    found = understood([word, "a.sh"], "#!/bin/sh\n", HERE).gpu_type
    assert found == gpu_type
    clusters: tuple[dict[str, str], ...] = ({"a100": "A100-80G", "v100": "V100-16G"}, {"V100": "V100-32G"}, {})
    assert models_for(found, clusters) == models


def test_lines_of_the_script_count_until_its_first_command_and_the_command_line_wins() -> None:
    lines = ["# a comment", "#SBATCH -N 2 --gres=gpu:4  # four", "", "#SBATCH -J in-script", "echo", "#SBATCH -N 9"]
    script = "\n".join(["#!/bin/bash", *lines, ""])
    found = body("-N", "3", "a.sh", "--epochs", "90", script=script)
    assert (found["nodes"], found["gpus"], found["name"]) == (3, 4, "in-script")
    assert found["command"][-3:] == ["a.sh", "--epochs", "90"]
    # the script runs on the first node only; the others are there for what it starts on them
    assert found["command"][:2] == ["/bin/sh", "-c"]
    assert found["command"][4:6] == ["/bin/bash", "-c"]
    assert found["env"]["SLURM_OVERLAP"] == "1"


def test_a_comment_is_the_description() -> None:
    assert body("--comment", "for the paper", "a.sh")["description"] == "for the paper"
    assert "description" not in body("a.sh")


def test_only_what_is_exported_by_name_leaves_the_laptop() -> None:
    assert "SECRET" not in body("--export=ALL", "a.sh")["env"]
    env = body("--export=ALL,SEED,LR=0.1", "a.sh")["env"]
    assert (env["SEED"], env["LR"], env["SLURM_SUBMIT_DIR"]) == ("7", "0.1", "/home/ann")


def test_output_goes_where_the_script_asks_for_it_and_names_are_no_code() -> None:
    text = body("-J", "x; rm -rf /", "-o", "out dir/%x-%4j.txt", "a.sh")["command"][2]
    assert "exec >>'out dir/''x; rm -rf /'-\"${CORRAL_JOB_ID#j-}\".txt 2>&1\n" in text


def test_wrap_needs_no_script_and_python_scripts_stay_as_they_are() -> None:
    wrapped = understood(["--wrap", "nvidia-smi -L"], None, HERE).body["command"]
    assert wrapped[0] == "/bin/sh"
    assert wrapped[2].endswith("nvidia-smi -L\n")
    script = "#!/usr/bin/env python3\n#SBATCH --gres=gpu:1\nprint(1)\n"
    assert body("a.py", script=script)["command"] == ["/usr/bin/env", "python3", "-c", script, "a.py"]


def test_options_without_effect_are_reported() -> None:
    notes = understood(["--mail-type=END", "-A", "physics", "--nodelist=gpu1", "a.sh"], "#!/bin/sh\n", HERE).notes
    assert [note.split()[0] for note in notes] == ["--account", "--mail-type", "--nodelist"]


@pytest.mark.parametrize(
    ("words", "script", "message"),
    [
        (["a.sh"], "echo hello\n", "must begin with #!"),
        (["a.sh"], "#!/usr/bin/julia\n", "scripts of /usr/bin/julia are not supported"),
        (["--gres=license:1", "a.sh"], "#!/bin/sh\n", "GPUs only"),
        (["-t", "soon", "a.sh"], "#!/bin/sh\n", "is not a time"),
        (["-d", "singleton", "a.sh"], "#!/bin/sh\n", "afterok"),
        (["-C", "a|b", "a.sh"], "#!/bin/sh\n", "joined by &"),
        (["--no-such-option", "a.sh"], "#!/bin/sh\n", "unrecognized"),
        (["-N", "0", "a.sh"], "#!/bin/sh\n", "not a number of nodes"),
        (["--wrap", "x", "a.sh"], None, "exclude each other"),
        ([], None, "there is no script"),
        (["--begin=16:00", "a.sh"], "#!/bin/sh\n", "--hold"),
    ],
)
def test_unsupported_options_are_refused_with_a_message(words: list[str], script: str | None, message: str) -> None:
    with pytest.raises(NotUnderstood, match=message):
        understood(words, script, HERE)
