"""A job file says what its flags say, and its mistakes have a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.cli.jobs.job_file import JobFile, parse_job_file, read_job_file
from corral.cli.terminal.failures import WrongUsage


def parse(text: str) -> JobFile:
    return parse_job_file(text, "job.yaml", directory=Path("/work/dir"))


def test_every_word_of_the_flags_is_a_word_of_the_file() -> None:
    job = parse(
        "# a comment\n"
        "name: resnet\n"
        "kind: training\n"
        "gpus: 0.5\n"
        "nodes: 1\n"
        "cpus: 4\n"
        "memory: 16GiB\n"
        "model: [A100, H200]\n"
        "label: {zone: a}\n"
        "queue: night\n"
        "priority: 3\n"
        "time: 2h\n"
        "grace: 10s\n"
        "env:\n  EPOCHS: 090\n  FAST: yes\n  EMPTY:\n"
        "workdir: runs\n"
        "retries: 2\n"
        "preemptible: false\n"
        "hold: true\n"
        "command: [python, train.py]\n"
    )
    assert job.body == {
        "name": "resnet",
        "kind": "training",
        "gpus": 0.5,
        "nodes": 1,
        "cpus": 4,
        "memory": "16GiB",
        "model": ["A100", "H200"],
        "labels": {"zone": "a"},
        "queue": "night",
        "priority": 3,
        "time": "2h",
        "grace": "10s",
        "env": {"EPOCHS": "090", "FAST": "yes", "EMPTY": ""},
        "workdir": "/work/dir/runs",
        "max_retries": 2,
        "preemptible": False,
        "hold": True,
        "command": ["python", "train.py"],
    }
    assert job.places["gpus"] == "job.yaml:4"
    assert job.places["max_retries"] == "job.yaml:19"


def test_a_command_that_is_a_text_is_for_the_shell() -> None:
    assert parse("command: echo $HOME | wc -c").body["command"] == ["/bin/sh", "-c", "echo $HOME | wc -c"]


def test_an_absolute_workdir_stays_as_it_is() -> None:
    assert parse("workdir: /data").body["workdir"] == "/data"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("gpus: 1\ngpu: 2", "job.yaml:2: gpu: unknown key", "Did you mean gpus?"),
        ("gpus: 1\nflavour: x", "job.yaml:2: flavour: unknown key", "Did you mean flavor?"),
        ("gpus: 1\nsoup: x", "job.yaml:2: soup: unknown key", "Known keys: after, app, app-name, app_name, array, "),
        ("gpus: 1\n\ngpus: 2", "job.yaml:3: gpus: is given twice, first in line 1", ""),
        ("retries: 1\nmax_retries: 2", "job.yaml:2: max_retries: is given twice, first in line 1", ""),
        ("gpus: [1", "job.yaml:1: not valid YAML", ""),
        ("\tgpus: 1", "job.yaml:1: not valid YAML", ""),
        ("name: x\ntime: 2026-01-03", "job.yaml:2: time: cannot be used", ""),
        ("gpus: .nan", "job.yaml:1: gpus: cannot be used", ""),
        ("env: A=1", "job.yaml:1: env: write names and values", ""),
        ("env:\n  A: [1]", "job.yaml:1: env: every value is a text", ""),
        ("command: !!python/object:os.system ls", "job.yaml:1: command: cannot be used", ""),
        ("? [a]\n: 1", "job.yaml:1: : unknown key", ""),
        ("- gpus", "job.yaml:1: a job file holds keys and values", ""),
        ("", "job.yaml:1: a job file holds keys and values", ""),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str, hint: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        parse(text)
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"cannot read .*none\.yaml: No such file"):
        read_job_file(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(WrongUsage, match="not UTF-8"):
        read_job_file(tmp_path / "binary.yaml")
    with pytest.raises(WrongUsage, match="Is a directory"):
        read_job_file(tmp_path)
