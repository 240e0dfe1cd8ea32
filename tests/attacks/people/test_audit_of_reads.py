"""The audit log has every read of other users' data by operators, and every deletion of a file."""

from __future__ import annotations

from typing import Any

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until


def noted(machine: SharedMachine, user: str, action: str) -> list[dict[str, Any]]:
    with machine.server.http(user) as http:
        found: list[dict[str, Any]] = http.get("/events", params={"action": action}).raise_for_status().json()["items"]
    return found


def test_an_operator_who_reads_logs_and_files_of_others_leaves_a_line(machine: SharedMachine) -> None:
    job, _ = machine.run("ann", "echo secret; echo result > outputs/result.txt")
    with machine.server.http() as operator:
        for _ in range(20):
            assert "secret" in operator.get(f"/jobs/{job['id']}/logs").text
        operator.get(f"/jobs/{job['id']}/logs/search", params={"q": "secret"}).raise_for_status()
        operator.get(f"/jobs/{job['id']}/logs/download").raise_for_status()
        operator.get(f"/jobs/{job['id']}/files").raise_for_status()
    # A request does not wait for its line.
    wait_until(lambda: noted(machine, "operator", "files.read") != [], "the reads are in the audit log")
    seen = [(event["actor"], event["subject"]) for event in noted(machine, "operator", "log.read")]
    assert seen == [("operator", job["id"])], "one line, however many reads"
    assert [event["actor"] for event in noted(machine, "ann", "log.read")] == ["operator"], "she sees who read"
    assert noted(machine, "eve", "log.read") == []
    [files] = noted(machine, "operator", "files.read")
    assert files["subject"] == job["id"]


def test_reading_ones_own_leaves_no_line(machine: SharedMachine) -> None:
    machine.run("ann", "echo hello")
    assert noted(machine, "operator", "log.read") == []


def test_deleted_files_are_in_the_audit_log(machine: SharedMachine) -> None:
    with machine.server.http("ann") as ann:
        volume = (
            ann.post("/volumes", json={"name": "data", "type": "filesystem", "size": "1GiB"}).raise_for_status().json()
        )
        where = f"/volumes/{volume['id']}"
        wait_until(lambda: ann.get(where).json()["state"] == "ready", "the volume is ready")
        path = f"{where}/files"
        for number in range(30):
            ann.put(f"{path}/directory", params={"path": f"d{number}"}).raise_for_status()
        for number in range(30):
            assert ann.delete(path, params={"path": f"d{number}"}).status_code == 204
    with machine.server.http() as operator:
        operator.get(path).raise_for_status()
    machine.server.stop()
    machine.start()
    summary, first = noted(machine, "operator", "files.deleted")
    assert (first["actor"], first["subject"], first["detail"]) == ("ann", volume["id"], {"items": ["d0"]})
    assert summary["detail"] == {"times": 29, "items": [f"d{number}" for number in range(1, 30)]}
    assert [event["actor"] for event in noted(machine, "ann", "files.read")] == ["operator"]
