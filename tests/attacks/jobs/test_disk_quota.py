"""A job that fills the disk is stopped, wherever it writes and however it hides it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.conftest import SharedMachine

pytestmark = pytest.mark.slow

#: Waits to be stopped, and ends at once then.
_STAY = "exec sleep 300"

WAYS = {
    "its working directory": "head -c 60M /dev/zero > big",
    "its temporary directory": "head -c 60M /dev/zero > $TMPDIR/big",
    "its outputs": "head -c 60M /dev/zero > $CORRAL_OUTPUT_DIR/big",
    "its checkpoints": "head -c 60M /dev/zero > $CORRAL_CHECKPOINT_DIR/big",
    "a directory that no other account may read": "mkdir -m 700 d; head -c 60M /dev/zero > d/big; chmod 0 d",
    # longer than any path that the kernel takes
    "a path that is too long": (
        'n=$(printf "%0200d" 0); i=0; while [ $i -lt 30 ]; do mkdir $n; cd -P ./$n; i=$((i+1)); done; '
        "head -c 60M /dev/zero > big"
    ),
    "directories without end": "i=0; while [ $i -lt 300 ]; do mkdir d; cd -P ./d; i=$((i+1)); done",
    "files without end": "i=0; while [ $i -lt 600 ]; do : > f$i; i=$((i+1)); done",
}


@pytest.fixture
def narrow(machine: SharedMachine) -> SharedMachine:
    """The machine, with narrow limits."""
    machine.server.kill()
    config = machine.place / "corral.yaml"
    config.write_text(config.read_text() + "disk: {job_limit: 50MiB, job_files: 500}\n")
    machine.start()
    return machine


def test_a_job_over_its_limit_is_stopped(narrow: SharedMachine) -> None:
    running = {
        way: narrow.submit("eve", f"{script}\n{_STAY}", name=f"filler-{number}", grace="1s")
        for number, (way, script) in enumerate(WAYS.items())
    }
    honest = narrow.submit("ann", f"head -c 40M /dev/zero > big; {_STAY}")
    ended: dict[str, dict[str, Any]] = {way: narrow.wait("eve", job) for way, job in running.items()}
    evicted = ended.pop("its temporary directory")
    assert (evicted["state"], evicted["end_reason"]) == ("stopped", "evicted")
    assert evicted["message"].startswith("temporary storage: it has 60")
    for way, job in ended.items():
        assert (job["state"], job["end_reason"]) == ("failed", "disk_quota"), (way, job)
        assert "stopped because" in job["message"], way
    assert "a job may have 50MiB" in ended["its outputs"]["message"]
    assert narrow.job("ann", honest)["state"] == "running"


def test_holes_count_for_what_they_take(narrow: SharedMachine) -> None:
    sparse = narrow.submit("ann", f"truncate -s 2T $CORRAL_OUTPUT_DIR/hole; {_STAY}")
    narrow.wait("ann", sparse, "running")
    # One that is over its limit is found later than this one was measured.
    filler = narrow.submit("eve", f"head -c 60M /dev/zero > big; {_STAY}", grace="1s")
    assert narrow.wait("eve", filler)["end_reason"] == "disk_quota"
    assert narrow.job("ann", sparse)["state"] == "running"
    with narrow.server.http("ann") as http:
        answer = http.get(f"/jobs/{sparse}/files/content", params={"path": "hole"})
        assert answer.status_code == 403, answer.text
        assert "a job may have 50MiB" in answer.json()["detail"]
        archive = http.get(f"/jobs/{sparse}/files/content").raise_for_status().content
    assert len(archive) < 10_000
