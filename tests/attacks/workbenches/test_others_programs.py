"""Apps, tunnels and shells lead to programs of one's own jobs; what operators open of others is in the audit log."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.attacks.conftest import SharedMachine
from tests.integration.api import problem
from tests.integration.waiting import wait_until

pytestmark = pytest.mark.slow

SERVE = 'exec python3 -m http.server "$CORRAL_APP_PORT" --bind 127.0.0.1'


def app_of(machine: SharedMachine, user: str) -> str:
    job_id = machine.submit(user, SERVE, port=0)
    wait_until(lambda: page(machine, user, job_id).status_code == 200, "the app answers")
    return job_id


def page(machine: SharedMachine, user: str, job_id: str) -> httpx.Response:
    return httpx.get(f"{machine.server.url}/apps/{job_id}/", headers=bearer(machine, user), timeout=30)


def bearer(machine: SharedMachine, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {machine.server.token(user)}"}


def refusal(machine: SharedMachine, user: str, path: str) -> tuple[int, str]:
    url = f"ws://127.0.0.1:{machine.server.port}{path}"
    with pytest.raises(InvalidStatus) as refused:
        connect(url, additional_headers=bearer(machine, user), proxy=None)
    return refused.value.response.status_code, refused.value.response.body.decode()


def events(machine: SharedMachine, action: str) -> list[dict[str, Any]]:
    with machine.server.http() as http:
        found: list[dict[str, Any]] = http.get(f"/events?action={action}").raise_for_status().json()["items"]
    return found


def _has_line(machine: SharedMachine, action: str) -> bool:
    return bool(events(machine, action))


def test_no_user_reaches_the_programs_of_another(machine: SharedMachine) -> None:
    job_id = app_of(machine, "ann")
    problem(page(machine, "eve", job_id), 403)
    for path in ("tunnel", "tunnel?port=22", "shell"):
        status, text = refusal(machine, "eve", f"/api/v1/jobs/{job_id}/{path}")
        assert status == 404
        # A job that does not exist is refused with the same words.
        assert (404, text.replace(job_id, "j-999")) == refusal(machine, "eve", f"/api/v1/jobs/j-999/{path}")
    assert refusal(machine, "eve", f"/apps/{job_id}/ws")[0] == 403
    assert refusal(machine, "eve", f"/workbenches/{job_id}/jupyter/api/x")[0] == 403
    with machine.server.http("eve") as http:
        assert http.get("/apps").json()["items"] == []
        problem(http.get(f"/apps/{job_id}"), 404)
        problem(http.post(f"/apps/{job_id}/shares", json={"lasts": "1h"}), 404)
    assert events(machine, "app.opened") == events(machine, "job.tunnel-opened") == []


def test_programs_opened_by_an_operator_are_in_the_audit_log(machine: SharedMachine) -> None:
    job_id = app_of(machine, "ann")
    assert page(machine, "operator", job_id).status_code == 200
    url = f"ws://127.0.0.1:{machine.server.port}/api/v1/jobs/{job_id}/tunnel"
    with connect(url, additional_headers=bearer(machine, "operator"), proxy=None):
        pass
    for action in ("app.opened", "job.tunnel-opened"):
        wait_until(partial(_has_line, machine, action), "the line is there")
        (line,) = events(machine, action)
        assert (line["actor"], line["subject"], line["owner"]) == ("operator", job_id, "ann")
    # The owner sees the lines, and none about what she opens herself.
    with machine.server.http("ann") as http:
        seen = [event["action"] for event in http.get(f"/events?subject={job_id}").json()["items"]]
    assert seen.count("app.opened") == seen.count("job.tunnel-opened") == 1


def test_an_app_is_listed_behind_very_many_other_jobs(machine: SharedMachine) -> None:
    job_id = app_of(machine, "eve")
    with machine.server.http("eve") as http:
        waiting = {"command": ["true"], "gpus": 8}
        machine.submit("eve", "sleep 600", gpus=8)
        http.post("/jobs:batch", json={"jobs": [waiting] * 600}).raise_for_status()
        assert [app["job_id"] for app in http.get("/apps").json()["items"]] == [job_id]
