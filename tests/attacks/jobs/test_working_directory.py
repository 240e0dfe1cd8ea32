"""A server that was started in a directory that others can write to runs no code of theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corral
from tests.attacks.conftest import shared_machine
from tests.integration.waiting import wait_until

SOURCES = Path(corral.__file__).parent
#: Python would look for modules in the working directory first.
UNSAFE = re.compile(r'sys\.executable, "-m"')
#: A server in a directory beside its home that everybody can write to.
SERVER = """
import os, sys
place = os.path.join(os.path.dirname(os.environ["CORRAL_HOME"]), "open")
os.mkdir(place)
os.chmod(place, 0o777)
os.chdir(place)
os.execv(sys.executable, [sys.executable, "-P", "-m", "corral.cli.main", *sys.argv[1:]])
"""
PLANT = """
mkdir -p {open}/corral && echo 'import os; open("{mark}", "w").write(str(os.getuid()))' > {open}/corral/__init__.py
cp {open}/corral/__init__.py {open}/json.py; cp {open}/corral/__init__.py {open}/sitecustomize.py; ls {open}
"""


@pytest.mark.slow
def test_a_module_in_the_working_directory_is_not_loaded(worker_id: str, tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    with shared_machine(worker_id, program=[str(program)]) as machine:
        shared = machine.place / "open"
        mark = shared / "mark"
        ended, log = machine.run("eve", PLANT.format(open=shared, mark=mark))
        assert ended["state"] == "completed", log
        with machine.server.http() as http:
            asked = http.post("/simulations", json={"candidate": {"queues": {"default": {"policy": "shortest"}}}})
            simulation = asked.raise_for_status().json()["id"]
            ends = ("ready", "failed")
            wait_until(lambda: http.get(f"/simulations/{simulation}").json()["state"] in ends, "it has run")
        assert not mark.exists(), f"a scientist's code has run as uid {mark.read_text()}"


def test_workers_of_the_server_do_not_look_into_the_working_directory() -> None:
    # Presets are programs of jobs: they run in the directory of their job, as its account.
    programs = [path for path in SOURCES.rglob("*.py") if SOURCES / "presets" not in path.parents]
    assert [str(path) for path in programs if UNSAFE.search(path.read_text())] == []
