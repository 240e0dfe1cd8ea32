"""Engines under contract. A new engine adds its harness here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.engine_harness import EngineHarness, LocalHarness
from tests.contract.kubernetes_harness import KubernetesHarness
from tests.contract.slurm_harness import SlurmHarness, SlurmRestHarness
from tests.servers.slurm import SlurmCluster

#: what starts each, given a directory and the test
HARNESSES: dict[str, Callable[[Path, pytest.FixtureRequest], EngineHarness]] = {
    LocalHarness.name: lambda root, _: LocalHarness(root),
    SlurmHarness.name: lambda root, request: SlurmHarness(root, request.getfixturevalue("slurm_cluster")),
    SlurmRestHarness.name: lambda root, request: SlurmRestHarness(root, request.getfixturevalue("slurm_rest")),
    KubernetesHarness.name: lambda root, request: KubernetesHarness(root, request.getfixturevalue("kubernetes_access")),
}


@pytest.fixture(params=sorted(HARNESSES))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EngineHarness]:
    harness = HARNESSES[request.param](tmp_path / "engine", request)
    yield harness
    harness.clean_up()


@pytest.fixture
def local_cluster(tmp_path: Path) -> Iterator[LocalHarness]:
    """For what only the local engine does: its jobs may do to their own places what would harm a node of others."""
    harness = LocalHarness(tmp_path / "engine")
    yield harness
    harness.clean_up()


@pytest.fixture
def harness(tmp_path: Path, slurm_cluster: SlurmCluster) -> Iterator[SlurmHarness]:
    """For what only a Slurm cluster does."""
    made = SlurmHarness(tmp_path / "slurm", slurm_cluster)
    yield made
    made.clean_up()
