"""The quota that counts a job follows from the job's kind: its owner cannot move it to another one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.attacks.conftest import SharedMachine

SLEEP = ["sleep", "600"]


@pytest.fixture
def eve(machine: SharedMachine) -> httpx.Client:
    """One GPU for trainings, none for others of her own programs; workbenches and presets have no limit."""
    with machine.server.http() as operator:
        quota: dict[str, Any] = {"training": {"gpus": 1}, "distributed": {"gpus": 0}}
        operator.put("/users/eve/quota", json=quota).raise_for_status()
    return machine.server.http("eve")


def held(eve: httpx.Client) -> dict[str, float]:
    kinds = eve.get("/me/quota").raise_for_status().json()["kinds"]
    return {kind: amounts["gpus"]["held"] for kind, amounts in kinds.items() if amounts["gpus"]["held"]}


@pytest.mark.parametrize("kind", ["workbench", "distributed"])
def test_a_training_is_not_called_otherwise(eve: httpx.Client, kind: str) -> None:
    answer = eve.post("/jobs", json={"command": SLEEP, "gpus": 4, "kind": kind})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["kind"]
    batch = eve.post("/jobs:batch", json={"jobs": [{"command": SLEEP, "gpus": 4, "kind": kind}]})
    assert batch.status_code == 422
    assert held(eve) == {}


def test_a_label_makes_no_task_of_a_training(eve: httpx.Client) -> None:
    answer = eve.post("/jobs", json={"command": SLEEP, "gpus": 4, "labels": {"task": "mine"}})
    assert answer.status_code == 422
    assert held(eve) == {}


def test_a_clone_of_a_workbench_with_another_command_is_a_training(eve: httpx.Client) -> None:
    body = {"name": "bench", "image": "example.org/bench:1", "gpus": 1, "hold": True}
    bench = eve.post("/workbenches", json=body).raise_for_status().json()
    refused = eve.post(f"/jobs/{bench['id']}/clone", json={"command": SLEEP, "gpus": 4})
    assert (refused.status_code, refused.json()["limit"]) == (409, 1), refused.text
    declared = eve.post(f"/jobs/{bench['id']}/clone", json={"command": SLEEP, "kind": "workbench", "gpus": 4})
    assert declared.status_code == 422


def test_a_clone_of_a_preset_with_another_command_is_a_training(eve: httpx.Client, machine: SharedMachine) -> None:
    with machine.server.http() as operator:
        yaml = "name: hello\ncommand: [echo, hello]\n"
        operator.post("/presets", json={"yaml": yaml}).raise_for_status()
    preset = eve.post("/jobs", json={"preset": "hello", "hold": True}).raise_for_status().json()
    assert preset["kind"] == "preset"
    same = eve.post(f"/jobs/{preset['id']}/clone", json={"hold": True}).raise_for_status().json()
    assert same["kind"] == "preset"
    refused = eve.post(f"/jobs/{preset['id']}/clone", json={"command": SLEEP, "gpus": 4})
    assert (refused.status_code, refused.json()["limit"]) == (409, 1), refused.text


def test_correct_kind_is_accepted(eve: httpx.Client) -> None:
    made = eve.post("/jobs", json={"command": SLEEP, "gpus": 1, "kind": "training"})
    assert made.status_code == 201
    assert held(eve) == {"training": 1}
