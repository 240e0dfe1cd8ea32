"""Flavors, packages, quotas of many and scores at the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-catalog"), "--virtual-gpus", "4xA100-80G") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def test_from_the_hardware_to_a_running_job(server: CorralServer, operator: Person, tmp_path: Path) -> None:
    assert "4 GPUs of it" in operator.ok("flavor", "create", "a100", "--model", "A100-80G")
    said = operator.ok(
        "package", "create", "a100-x2", "--gpus", "2", "--cpus", "1", "--flavor", "a100", "--kind", "training"
    )
    assert "corral submit --package a100-x2" in said
    operator.ok("package", "create", "bench", "--gpus", "0.5", "--kind", "workbench")
    nina = scientist(server, operator, "nina")
    assert nina.ok("package", "ls").splitlines()[1].split()[:5] == ["a100-x2", "2", "1", "any", "a100"]
    row = nina.ok("package", "ls", "--kind", "training").splitlines()[1].split()
    assert (row[0], row[-3:]) == ("a100-x2", ["2", "0", "0s"])

    job = nina.submit("--package", "a100-x2", "--", "sleep", "300")
    assert nina.wait_for(job, "running")["package"] == "a100-x2"
    file = tmp_path / "job.yaml"
    file.write_text("package: a100-x2\ncommand: sleep 300\n")
    second = nina.submit("-f", str(file))
    nina.wait_for(second, "running")
    assert nina.ok("package", "ls", "--kind", "training").splitlines()[1].split()[-3:] == ["0", "0", "unknown"]
    file.write_text("flavor: a100\ngpus: 1\npackage: a100-x2\ncommand: sleep 300\n")
    refused = nina.run("submit", "-f", str(file), code=2)
    assert f"{file}:2: gpus" in refused.err
    assert "--flavor" in nina.run("submit", "--flavor", "none", "--gpus", "1", "--", "true", code=2).err

    assert nina.ok("scores").splitlines()[1].split()[:2] == ["nina", "A100-80G"]
    history = nina.read("scores", "nina", "--points", "5")["items"]
    assert history[-1]["usage"] == 4
    assert nina.ok("scores", "nina").splitlines()[1].startswith("A100-80G")
    nina.ok("stop", job, second)


def test_editing_and_removing(operator: Person) -> None:
    operator.ok("flavor", "create", "disk", "--label", "disk=nvme", "--description", "quick disks")
    operator.ok("package", "create", "cpu", "--cpus", "2", "--memory", "1GiB", "--flavor", "disk", "--rdma")
    view = operator.read("package", "edit", "cpu", "--flavor", "none", "--kind", "training", "--no-rdma")
    assert (view["flavor"], view["kinds"], view["rdma"], view["memory_bytes"]) == (None, ["training"], False, 1024**3)
    assert operator.read("package", "edit", "cpu", "--kind", "none", "--flavor", "disk")["kinds"] == []
    assert operator.read("flavor", "edit", "disk", "--label", "none", "--model", "none")["labels"] == {}
    refused = operator.run("flavor", "rm", "-y", "disk", code=1)
    assert "package cpu" in refused.err
    operator.run("package", "rm", "-y", "cpu", "none", code=4)
    assert "cpu" in operator.ok("package", "ls")
    assert operator.ok("package", "rm", "-y", "cpu") == "Deleted cpu\n"
    assert operator.ok("flavor", "rm", "-y", "disk") == "Deleted disk\n"


def test_quotas_of_many(server: CorralServer, operator: Person) -> None:
    otto = scientist(server, operator, "otto")
    scientist(server, operator, "pia")
    assert operator.ok("quota", "set", "--users", "otto,pia", "--kind", "workbench", "--gpus", "3") == (
        "Changed the quota of 2 users.\n"
    )
    operator.ok("quota", "set", "--all", "--volume", "block=1TiB")
    shown = otto.ok("quota", "show")
    assert "0 of 3" in shown
    assert "0B of 1TiB" in shown
    rows = {line.split()[0]: line for line in operator.ok("quota", "ls").splitlines()[1:]}
    assert "0 of 3" in rows["pia"]
    assert "block 0B of 1TiB" in rows["operator"]
    operator.run("quota", "set", "--users", "otto,absent", "--gpus", "1", code=4)
    operator.run("quota", "set", "--all", "--volume", "tape=1", code=2)
    otto.run("quota", "ls", code=3)
