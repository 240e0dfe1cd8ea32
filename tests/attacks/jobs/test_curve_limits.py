"""Files of curves that a job writes: whatever is in them, reading them neither leads elsewhere nor stops the server."""

from __future__ import annotations

import pytest

from tests.attacks.conftest import SharedMachine
from tests.servers.corral_server import plain_http

pytestmark = pytest.mark.slow

LINE = '{"step":%d,"at":1,"attempt":1,"values":{"loss":1.5}}'
GOOD = f"echo '{LINE % 1}' >>curves.jsonl"


@pytest.mark.parametrize(
    ("plant", "names"),
    [
        ("ln -s /etc/shadow curves.jsonl", []),
        ("mkfifo curves.jsonl", []),
        ("truncate -s 2T curves.jsonl", []),
        ("truncate -s 2T events.out.tfevents.1.host", []),
        (f"head -c 3000000 /dev/zero | tr '\\0' '[' >curves.jsonl; echo >>curves.jsonl; {GOOD}", ["loss"]),
        (f"{GOOD}; mkdir d; cd d; i=0; while [ $i -lt 60 ]; do mkdir d$i; cd d$i; i=$((i+1)); done", ["loss"]),
        (f"{GOOD}; head -c 100000 /dev/urandom >events.out.tfevents.2.host", ["loss"]),
        (f"{GOOD}; ln -s / root; ln -s . loop", ["loss"]),
    ],
)
def test_curves_are_read_whatever_a_job_has_written(machine: SharedMachine, plant: str, names: list[str]) -> None:
    ended, log = machine.run("eve", f'cd "$CORRAL_OUTPUT_DIR" && {{ {plant}; }}')
    assert ended["state"] == "completed", log
    with machine.server.http("eve") as http:
        for _ in range(3):
            answer = http.get(f"/jobs/{ended['id']}/curves", timeout=60)
            assert answer.is_success, answer.text
        assert [curve["name"] for curve in answer.json()["curves"]] == names
    with machine.server.http("ann") as http:
        assert http.get(f"/jobs/{ended['id']}/curves").status_code == 404
    with plain_http(machine.server.url, timeout=5) as http:
        assert http.get("/readyz").is_success
