"""Fixtures that start real servers, for `pytest_plugins`. No module imports this one.

One PostgreSQL runs for all tests of a process; every test gets a database of its own, on both kinds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.control.ports import Store
from corral.stores import open_store
from tests.servers.gcs_server import GcsServer, gcs_serving
from tests.servers.kubernetes import programs as kubernetes_programs
from tests.servers.kubernetes.access import KubernetesAccess
from tests.servers.kubernetes.cluster import KubernetesCluster
from tests.servers.postgres import HOW_TO_INSTALL, PostgresServer, find_account, find_programs
from tests.servers.prometheus import HOW_TO_INSTALL as HOW_TO_INSTALL_PROMETHEUS
from tests.servers.prometheus import PrometheusServer, find_program
from tests.servers.s3_server import S3Server, s3_serving
from tests.servers.slurm import HOW_TO_INSTALL as HOW_TO_INSTALL_SLURM
from tests.servers.slurm import HOW_TO_INSTALL_REST, SlurmCluster, has_rest, is_installed
from tests.servers.stores import StorePlace

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    programs, account = find_programs(), find_account()
    if programs is None or account is None:
        pytest.skip(HOW_TO_INSTALL)
    # Short, because a socket's path may have 107 characters only; and not under pytest's own directory, which others
    # than its owner cannot enter.
    directory = Path(tempfile.mkdtemp(prefix="corral-pg-", dir="/tmp"))
    server = PostgresServer(directory=directory, programs=programs, account=account)
    try:
        shutil.chown(directory, user=account)
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """Four nodes with eight GPUs each, for all tests of a process."""
    if not is_installed():
        pytest.skip(HOW_TO_INSTALL_SLURM)
    # Short, as a socket's path must be, and where the accounts of other people's jobs can pass.
    directory = Path(tempfile.mkdtemp(prefix="corral-slurm-", dir="/tmp"))
    try:
        with SlurmCluster(directory=directory) as started:
            yield started
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def slurm_rest(slurm_cluster: SlurmCluster) -> SlurmCluster:
    """The same cluster, with slurmrestd."""
    if not has_rest():
        pytest.skip(HOW_TO_INSTALL_REST)
    slurm_cluster.start_rest()
    return slurm_cluster


@pytest.fixture(scope="session")
def kubernetes_cluster() -> Iterator[KubernetesCluster]:
    """Two real and two hollow nodes with eight GPUs each, for all tests of a process, which may break its parts."""
    yield from _kubernetes()


@pytest.fixture(scope="session")
def device_cluster() -> Iterator[KubernetesCluster]:
    """Two real nodes with four GPUs each: a device plugin counts those of `gpu1`, a driver of Dynamic Resource
    Allocation publishes those of `gpu2`."""
    yield from _kubernetes(hollow_nodes=0, driver_nodes=1, gpus=4)


def _kubernetes(**options: Any) -> Iterator[KubernetesCluster]:
    if not kubernetes_programs.is_installed():
        pytest.skip(kubernetes_programs.HOW_TO_INSTALL)
    programs = kubernetes_programs.find_programs()
    if programs is None:
        pytest.skip(kubernetes_programs.HOW_TO_BUILD)
    # Short, as a socket's path must be.
    directory = Path(tempfile.mkdtemp(prefix="corral-k8s-", dir="/tmp"))
    try:
        with KubernetesCluster(directory=directory, programs=programs, **options) as started:
            yield started
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def kubernetes_access(request: pytest.FixtureRequest) -> KubernetesAccess:
    """The cluster of `CORRAL_TEST_KUBECONFIG`, which the tests only use; else the one that is started for them."""
    given = os.environ.get("CORRAL_TEST_KUBECONFIG")
    if given is None:
        cluster: KubernetesCluster = request.getfixturevalue("kubernetes_cluster")
        return cluster.access
    return KubernetesAccess(
        kubeconfig=Path(given),
        kubectl_program=kubernetes_programs.find_kubectl(),
        image=os.environ.get("CORRAL_TEST_IMAGE", "docker.io/library/busybox:1"),
    )


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file: copying it is quicker than migrating for every test."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    name = postgres_server.create_database()
    open_store(postgres_server.url(name)).close()
    return name


@pytest.fixture(params=DATABASES)
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorePlace]:
    if request.param == "sqlite":
        path = tmp_path / "corral.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        place = StorePlace(url=f"sqlite:///{path}")
        yield place
        place.close()
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database(request.getfixturevalue("postgres_template"))
    place = StorePlace(url=server.url(name))
    yield place
    place.close()
    server.drop_database(name)


@pytest.fixture(params=DATABASES)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'corral.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database()
    yield server.url(name)
    server.drop_database(name)


@pytest.fixture
def store(store_place: StorePlace) -> Store:
    return store_place.open()


@pytest.fixture
def prometheus_server(tmp_path: Path) -> Iterator[PrometheusServer]:
    """Not started: a test knows what it should scrape."""
    program = find_program()
    if program is None:
        pytest.skip(HOW_TO_INSTALL_PROMETHEUS)
    server = PrometheusServer(directory=tmp_path / "prometheus", program=program)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One for all tests of a process: each takes a bucket with a name of its own."""
    with s3_serving(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsServer]:
    """A fake of Google Cloud Storage, like `s3_server`."""
    with gcs_serving(tmp_path_factory.mktemp("gcs")) as server:
        yield server
