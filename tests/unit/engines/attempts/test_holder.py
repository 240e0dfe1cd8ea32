"""The holder of a task: it starts the program on its node's GPUs and passes warnings on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral.engines.attempts import holder
from tests.integration.waiting import wait_until

#: Counts the warnings by signal or file, ends after the first, and shows that SIGTERM alone does not end it.
PROGRAM = """
import os, signal, sys, time
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append("signal"))
print("ready", *sys.argv[1:], flush=True)
for _ in range(600):
    if os.path.exists(os.environ["CORRAL_NOTICE_FILE"]):
        seen.append("file")
    if seen:
        print(*seen, flush=True)
        sys.exit(7)
    time.sleep(0.05)
"""


def start(place: Path, env: dict[str, str], /, **program: object) -> subprocess.Popen[str]:
    (place / "program.json").write_text(json.dumps(program))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    return subprocess.Popen(
        [sys.executable, "-u", holder.__file__],
        env={**inherited, "CORRAL_JOB_DIR": str(place), **env},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_each_node_gets_its_own_gpus_and_rank(tmp_path: Path) -> None:
    env = {"CUDA_VISIBLE_DEVICES": "2,3,5", "CORRAL_RANK": "1", "NNODES": "2"}
    show = "import os, sys; print(sys.argv[1:], os.environ['VISIBLE'])"
    command = [sys.executable, "-c", show, "--gpus={gpu_list}", "{gpu_count}", "{node_rank}/{node_count}", "{other}"]
    process = start(tmp_path, env, command=command, env={"VISIBLE": "{gpu_list}"}, workdir=str(tmp_path))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "['--gpus=2,3,5', '3', '1/2', '{other}'] 2,3,5" in output


def test_without_gpus_the_count_is_zero() -> None:
    assert holder.placeholders({}) == {
        "{gpu_list}": "",
        "{gpu_count}": "0",
        "{node_rank}": "0",
        "{node_count}": "1",
    }


@pytest.mark.parametrize(("notify", "seen"), [("SIGUSR1", "signal"), ("file", "file")])
def test_a_warning_is_passed_on_as_the_template_says(tmp_path: Path, notify: str, seen: str) -> None:
    process = start(tmp_path, {}, command=[sys.executable, "-c", PROGRAM], notify=notify)
    assert process.stdout is not None
    lines = iter(process.stdout)
    wait_until(lambda: "ready" in next(lines), "the program runs")
    process.terminate()
    assert [*lines] == [f"{seen}\n"]
    assert process.wait(timeout=60) == 7


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "program.json").write_text(json.dumps({"command": ["no-such-program"]}))
    env = {**os.environ, "CORRAL_JOB_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, holder.__file__], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "cannot run 'no-such-program'" in ended.stderr
