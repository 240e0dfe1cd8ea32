"""An image file as a scientist uses it on a Slurm cluster, beside a machine that runs no such files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, operator_of
from tests.integration.slurm_server import server_on
from tests.servers.apptainer import apptainer, busybox_file, needs_apptainer
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_apptainer]


@pytest.fixture
def server(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[CorralServer]:
    home = tmp_path / "home"
    started = server_on(slurm_cluster, home, "--virtual-gpus", "2xA10", local=True, apptainer=apptainer())
    started.start()
    yield started
    started.stop()


@pytest.fixture
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def test_a_file_is_named_run_and_entered_on_slurm_and_refused_elsewhere(operator: Person, tmp_path: Path) -> None:
    image = str(busybox_file(apptainer(), tmp_path / "image"))
    operator.ok("image", "create", "tools", image)
    operator.ok("secret", "set", "token", stdin="a $(secret) value")
    on_slurm = ("--label", "corral.cluster=hpc", "--image", "tools", "--secret", "token=TOKEN")
    text = 'echo "$TOKEN"; ls / | grep -c usr; echo kept >$CORRAL_OUTPUT_DIR/result'
    job = operator.submit(*on_slurm, "--gpus", "2", "--", "sh", "-c", text)
    operator.wait_for(job, "completed")
    assert operator.ok("logs", job) == "a $(secret) value\n0\n"
    assert "result" in operator.ok("files", job)
    service = operator.submit(*on_slurm, "--", "sh", "-c", "echo up; exec sleep 600")
    operator.wait_for(service, "running")
    assert operator.ok("shell", service, "--", "sh", "-c", 'echo "$TOKEN in $APPTAINER_NAME"') == (
        "a $(secret) value in busybox.sif\n"
    )
    operator.ok("stop", service)
    operator.wait_for(service, "stopped")
    elsewhere = operator.submit("--label", "corral.cluster=local", "--image", "tools", "--", "true")
    operator.wait_for(elsewhere, "failed")
    assert "runs on Slurm clusters" in operator.ok("show", elsewhere)
