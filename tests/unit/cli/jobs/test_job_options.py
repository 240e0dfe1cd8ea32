"""Every field of the API's requests is an option of the commands that send it, and reaches the server as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.cli.jobs.job_options import FILE_KEYS, JOB_OPTIONS
from corral.core.jobs.field_types import JobCommand
from corral.core.jobs.job_fields import JOB_FIELDS
from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import as_json, problem, scripted

DESCRIPTION = Path(__file__).parents[4] / "docs" / "reference" / "openapi.json"
#: fields that only a job file or the API sets
FILE_FIELDS = {name for name, field in JOB_FIELDS.items() if not field.options}
JOB = {"id": "j-7", "name": "resnet", "state": "queued", "queue": "night", "priority": 5, "time_limit_seconds": None}


def fields_of(schema: str) -> set[str]:
    description = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    return set(description["components"]["schemas"][schema]["properties"])


def options_of(command: JobCommand) -> set[str]:
    return {option.field for option in JOB_OPTIONS if command in option.help}


def sent(*words: str) -> dict[str, Any]:
    """The request that the server received."""
    with scripted(lambda seen, n: as_json(JOB)) as server:
        result = corral(*words, "--server", server.url)
    assert result.exit_code == 0, result.output
    found = json.loads(server.requests[0].body)
    assert isinstance(found, dict)
    return found


def test_every_field_of_a_request_is_an_option() -> None:
    assert options_of(JobCommand.SUBMIT) == fields_of("JobCreate") - FILE_FIELDS
    assert options_of(JobCommand.CLONE) == fields_of("JobClone") - FILE_FIELDS
    assert options_of(JobCommand.EDIT) == fields_of("JobEdit")
    assert options_of(JobCommand.WORKBENCH_CREATE) <= fields_of("WorkbenchCreate")


def test_a_job_file_may_set_every_field() -> None:
    assert set(FILE_KEYS.values()) == fields_of("JobArray")
    assert (FILE_KEYS["retries"], FILE_KEYS["max_retries"]) == ("max_retries", "max_retries")


def test_a_clone_may_change_what_submit_sets() -> None:
    assert sent("clone", "resnet", "--checkpoint-interval", "5m", "--kind", "training", "--mount", "none") == {
        "checkpoint_interval": "5m",
        "kind": "training",
        "mounts": [],
    }


def test_an_edit_sends_only_what_is_given() -> None:
    options = ("--gpus", "0.5", "--cpus", "2", "--memory", "8GiB", "--model", "A100,H200", "--no-preemptible")
    assert sent("edit", "j-7", *options) == {
        "gpus": 0.5,
        "cpus": 2,
        "memory": "8GiB",
        "model": ["A100", "H200"],
        "preemptible": False,
    }
    cleared = ("--queue", "auto", "--time", "none", "--after", "none", "--model", "any")
    assert sent("edit", "j-7", *cleared) == {"queue": None, "time": None, "after": [], "model": None}
    assert "nothing to change" in corral("edit", "j-7").stderr


@pytest.mark.parametrize("command", ["clone", "edit"])
def test_the_servers_objections_name_the_option(command: str) -> None:
    answer = problem(422, title="Invalid", detail="…", errors=[{"field": "min_gpus", "message": "at least 1, got 0"}])
    with scripted(lambda seen, n: answer) as server:
        result = corral(command, "j-7", "--min-gpus", "0", "--server", server.url)
    assert result.stderr == f"Error: --min-gpus: at least 1, got 0\nHint: `corral {command} --help` explains it.\n"
