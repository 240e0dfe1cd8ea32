"""Only the owner's program answers at a workbench's socket, never one of another account of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.attacks.conftest import SharedMachine, shared_machine
from tests.attacks.hostile_workbench import PROGRAM
from tests.e2e.workbench_steps import create, token
from tests.integration.api import problem

pytestmark = pytest.mark.slow


def own_program(machine: SharedMachine, user: str, page: str) -> str:
    """A virtual environment of the user's with a program in place of Jupyter that shows one page."""
    venv = machine.place / user
    programs = venv / "bin"
    programs.mkdir(parents=True)
    venv.chmod(0o755)
    programs.chmod(0o777)  # what it hears is written there
    (programs / "jupyter-lab").write_text(PROGRAM)
    (programs / "page.html").write_text(page)
    for path in programs.iterdir():
        path.chmod(0o755)
    return str(venv)


def socket_of(machine: SharedMachine, view: dict[str, Any]) -> Path:
    return next(machine.server.home.glob(f"jobs/*/{view['id']}/workbench/run/jupyter.sock"))


def test_a_replaced_socket_leads_to_no_other_users_workbench(machine: SharedMachine) -> None:
    anns = create(machine.server, "ann", "anns", venv=own_program(machine, "ann", "ann's secret"))
    eves = create(machine.server, "eve", "eves", venv=own_program(machine, "eve", "eve's own"))
    address, eve = eves["jupyter"]["address"], token(machine.server, "eve")
    assert httpx.get(f"{address}lab", headers=eve).text == "eve's own"
    theirs, hers = socket_of(machine, anns), socket_of(machine, eves)

    # A link to the other socket: the server could follow it, and so it looks whose program answers.
    _, log = machine.run("eve", f"mv {hers} {hers}.kept && ln -s {theirs} {hers} && ls -l {hers}")
    assert "jupyter.sock ->" in log
    answer = httpx.get(f"{address}lab", headers={**eve, "Connection": "close"})
    for _ in range(20):  # connections that rest go back to her own program
        if answer.status_code != 200:
            break
        assert "secret" not in answer.text
        answer = httpx.get(f"{address}lab", headers=eve)
    assert "secret" not in answer.text

    # The whole directory as a link, which is not followed at all.
    run = hers.parent
    machine.run("eve", f"mv {run} {run}.kept && ln -s {theirs.parent} {run}")
    assert "secret" not in httpx.get(f"{address}lab", headers=eve).text
    assert httpx.get(f"{anns['jupyter']['address']}lab", headers=token(machine.server, "ann")).text == "ann's secret"


def test_an_operators_workbench_is_refused_an_account_that_others_have(worker_id: str) -> None:
    """Others with its account could put a program of theirs in its place."""
    with shared_machine(worker_id, settings=", share_default: true") as machine:
        refuse_shared_workbenches(machine)


def refuse_shared_workbenches(machine: SharedMachine) -> None:
    server = machine.server
    server.add_user("bob")  # has no account of his own either: both would run as `nobody`
    with server.http() as http:
        refused = problem(http.post("/workbenches", json={"name": "mine"}), 409)
        assert "local.run_as.users" in refused["detail"]
        assert "bob" in refused["detail"]
        assert http.get("/workbenches").json()["items"] == []
    # One that was made before its owner became an operator does not start any more.
    venv = own_program(machine, "ann", "page")
    create(server, "bob", "bobs", venv=venv)
    with server.http("bob") as http:
        http.post("/workbenches/bobs/stop").raise_for_status()
    with server.http() as http:
        http.patch("/users/bob", json={"role": "operator"}).raise_for_status()
    until_ended(machine, "bobs")
    with server.http("bob") as http:
        problem(http.post("/workbenches/bobs/start"), 409)
        problem(http.post("/jobs/bobs/start"), 409)
    # With an account of her own it is no question.
    (Path(venv) / "bin" / "heard").unlink()  # which is his
    with server.http() as http:
        http.patch("/users/ann", json={"role": "operator"}).raise_for_status()
    assert create(server, "ann", "anns", venv=venv)["state"] == "running"


def until_ended(machine: SharedMachine, name: str) -> None:
    with machine.server.http("bob") as http:
        machine.wait("bob", http.get(f"/workbenches/{name}").json()["id"])
