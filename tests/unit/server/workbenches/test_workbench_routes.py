"""The address of a workbench: from the plan and the engine, never from the workbench."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from corral.control.live.controller import Controller
from corral.server.workbenches.workbench_routes import Place, WorkbenchRoutes, listen_address, place_of
from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches
from corral.stores.workbenches.workbench_keys import WorkbenchKeys
from tests.unit.server.far_nodes import Desk

REPORTED = {
    "attempt": 2,
    "at": 100.0,
    "account": "ann",
    "jupyter_ready": True,
    "ssh_ready": False,
    "ssh_port": None,
    "ssh_host_key": None,
    "ssh_sessions": 0,
    "busy": False,
    "used_at": 90.0,
}


class World:
    def __init__(self, directory: Path, cluster: str = "hpc") -> None:
        self.desk = Desk(cluster)
        self.run = directory / "j-1" / "workbench" / "run"
        files = DirectoryWorkbenches(lambda job_id: directory / job_id, {})
        keys = WorkbenchKeys(lambda job_id: directory / f"{job_id}.key")
        files.prepare("j-1", {}, [], keys.of("j-1"))
        self.routes = WorkbenchRoutes(controller=cast("Controller", self.desk), files=files, keys=keys)

    def report(self, **reported: object) -> None:
        (self.run / "status.json").write_text(json.dumps({**REPORTED, **reported}))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_on_another_machine_it_is_reached_at_its_nodes_address(world: World, port: int) -> None:
    world.report(relay_port=port, host="192.0.2.1", relay_host="192.0.2.1", address="192.0.2.1")
    way = asyncio.run(world.routes.way("j-1").open())
    with way.connection:
        assert way.connection.getpeername() == ("127.0.0.1", port), "no host that it names counts"
        assert way.connection.gettimeout() == 0.0
    assert way.tls is not None
    assert world.desk.far.asked == ["node7"]


@pytest.mark.parametrize(
    "reported",
    [
        {"relay_port": 22},
        {"relay_port": 0},
        {"relay_port": 70_000},
        {"relay_port": "192.0.2.1:22"},
        {"relay_port": None},
        {},
        {"relay_port": 40_000, "attempt": 1},
    ],
)
def test_a_report_cannot_lead_to_another_place(world: World, reported: dict[str, object]) -> None:
    world.report(**reported)
    with pytest.raises(ConnectionError, match="does not say where"):
        world.routes.way("j-1")
    assert world.desk.far.asked == []


def test_a_port_at_which_no_program_listens_is_reported(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    world.report(relay_port=port)
    way = world.routes.way("j-1")
    with pytest.raises(ConnectionError, match=f"127.0.0.1 port {port} cannot be reached"):
        asyncio.run(way.open())
    assert way.connection.fileno() == -1


def test_a_workbench_at_an_unknown_address_is_not_reached(world: World, port: int) -> None:
    world.report(relay_port=port)
    world.desk.far.is_there = False
    with pytest.raises(ConnectionError, match="no answer"):
        world.routes.way("j-1")
    assert world.routes.address(Place(attempt=2, cluster="hpc", node="node7")) == "node7", "as people may know it"
    world.desk.is_stopped = True
    with pytest.raises(ConnectionError, match="stopping"):
        world.routes.way("j-1")


def test_on_this_machine_it_is_reached_by_its_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, cluster="local")
    monkeypatch.chdir(world.run)
    with socket.socket(socket.AF_UNIX) as jupyter:
        jupyter.bind("jupyter.sock")
        jupyter.listen()
        way = world.routes.way("j-1")
        with way.connection:
            assert way.connection.family == socket.AF_UNIX
        assert way.tls is None
    assert world.routes.address(Place(attempt=2, cluster="local", node="node7")) is None


def test_places_are_those_of_the_plan(world: World) -> None:
    state = cast("Any", world.desk.state)
    assert place_of(state, "j-1") == Place(attempt=2, cluster="hpc", node="node7")
    assert place_of(state, "j-2") is None, "one that waits is nowhere"
    assert place_of(state, "j-3") is None


@pytest.mark.parametrize(
    ("address", "families", "listen"),
    [
        ("10.0.0.7", [], "10.0.0.7"),
        ("fd00::7", [], "fd00::7"),
        ("node7", [socket.AF_INET6, socket.AF_INET], "0.0.0.0"),
        ("node7", [socket.AF_INET6], "::"),
        ("unknown", None, "0.0.0.0"),
    ],
)
def test_workbench_listens_at_the_address_where_it_is_reached(
    address: str, families: list[int] | None, listen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(*words: object, **options: object) -> list[tuple[int]]:
        if families is None:
            raise socket.gaierror("no such name")
        return [(family,) for family in families]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert listen_address(address) == listen
