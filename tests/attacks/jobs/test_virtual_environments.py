"""A virtual environment is looked at with the rights of the job's account: it shows nothing of other users."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import SharedMachine

pytestmark = pytest.mark.slow


def test_a_virtual_environment_in_a_closed_directory_is_as_good_as_none(machine: SharedMachine) -> None:
    private = machine.place / "private"
    for name in ("real/bin", "conda/bin", "conda/conda-meta"):
        (private / name).mkdir(parents=True)
    private.chmod(0o700)
    messages = set()
    for name in ("real", "conda", "none"):
        job_id = machine.submit("eve", "env", venv=str(private / name))
        ended = machine.wait("eve", job_id)
        assert ended["state"] == "failed"
        with machine.server.http("eve") as http:
            (attempt,) = http.get(f"/jobs/{job_id}/attempts").raise_for_status().json()["items"]
        messages.add(attempt["message"].replace(name, "NAME", 1))
    assert messages == {f"{private}/NAME: there is no virtual environment: it has no directory bin"}


def test_a_workbench_does_not_tell_whether_a_closed_directory_has_jupyter(machine: SharedMachine) -> None:
    private = machine.place / "private"
    program = private / "real" / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    private.chmod(0o700)
    answers = set()
    for name in ("real", "none"):
        with machine.server.http("eve") as http:
            body = {"name": name, "jupyter": True, "venv": str(private / name), "env": {"PATH": "/nowhere"}}
            answer = http.post("/workbenches", json=body)
        answers.add(answer.status_code)
    assert answers == {201}
