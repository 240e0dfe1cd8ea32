"""One user opens many tunnels, also to a program that accepts nothing: no other user waits for that."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until

pytestmark = pytest.mark.slow

PER_USER = 8
LISTENS = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen({queue}); "
SAYS = "print(s.getsockname()[1], flush=True)\n"
#: It listens, takes one connection into its queue, and accepts none.
DEAF = LISTENS.format(queue=0) + SAYS + "import time; time.sleep(600)"
#: It accepts everything and says nothing.
QUIET = LISTENS.format(queue=50) + SAYS + "held = []\nwhile True: held.append(s.accept())"


@pytest.fixture
def limited(machine: SharedMachine) -> SharedMachine:
    config = machine.place / "corral.yaml"
    config.write_text(f"{config.read_text()}server: {{max_connections_per_user: {PER_USER}}}\n")
    machine.server.kill()
    machine.start()
    return machine


def listening(machine: SharedMachine, program: str) -> tuple[str, int]:
    """A job of eve's with the program, and its port."""
    job_id = machine.submit("eve", 'exec python3 -c "$PROGRAM"', env={"PROGRAM": program})
    machine.wait("eve", job_id, "running")
    wait_until(lambda: machine.log("eve", job_id).strip().isdigit(), "the program listens")
    return job_id, int(machine.log("eve", job_id))


def tunnel(machine: SharedMachine, user: str, job_id: str, port: int) -> ClientConnection:
    url = f"ws://127.0.0.1:{machine.server.port}/api/v1/jobs/{job_id}/tunnel?port={port}"
    headers = {"Authorization": f"Bearer {machine.server.token(user)}"}
    return connect(url, additional_headers=headers, proxy=None, open_timeout=60)


def test_tunnels_to_a_program_that_accepts_nothing_keep_no_one_waiting(machine: SharedMachine) -> None:
    job_id, port = listening(machine, DEAF)
    machine.server.token("eve")
    machine.server.token("ann")
    with ThreadPoolExecutor(60) as many:
        tries = [many.submit(partial(_ignored, machine, job_id, port)) for _ in range(60)]
        time.sleep(1)
        with machine.server.http("ann") as http:
            for _ in range(5):
                assert http.get("/jobs", timeout=4).is_success
        assert any(not one.done() for one in tries), "the tunnels still wait for the program"
        with machine.server.http("eve") as http:
            http.post(f"/jobs/{job_id}/stop").raise_for_status()


def _ignored(machine: SharedMachine, job_id: str, port: int) -> None:
    try:
        with tunnel(machine, "eve", job_id, port) as opened:
            opened.recv(timeout=60)
    except Exception:  # noqa: BLE001 - it ends in one way or another
        return


def test_connections_of_a_user_have_a_limit(limited: SharedMachine) -> None:
    job_id, port = listening(limited, QUIET)
    with ExitStack() as stack:
        for _ in range(PER_USER):
            stack.enter_context(tunnel(limited, "eve", job_id, port))
        with pytest.raises(InvalidStatus) as refused, tunnel(limited, "eve", job_id, port):
            pass
        assert refused.value.response.status_code == 429
        assert b"server.max_connections_per_user" in refused.value.response.body
        with limited.server.http("eve") as http:
            assert http.get(f"/jobs/{job_id}/logs?follow=true").status_code == 429
        # The operator's are not eve's.
        with tunnel(limited, "operator", job_id, port):
            pass
    wait_until(lambda: _opens(limited, job_id, port), "a tunnel that is closed makes room")


def _opens(machine: SharedMachine, job_id: str, port: int) -> bool:
    try:
        with tunnel(machine, "eve", job_id, port):
            return True
    except InvalidStatus:
        return False
