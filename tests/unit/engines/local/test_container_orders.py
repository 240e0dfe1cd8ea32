"""The requests to Podman and Docker, as data."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import Instance, LaunchRefused, RegistryLogin
from corral.engines.attempts.accounts import Account
from corral.engines.local.cgroups import CgroupSupport
from corral.engines.local.containers.container_job import error_in
from corral.engines.local.containers.container_orders import (
    ContainerMount,
    ContainerOrder,
    ContainerRuntime,
    RuntimeKind,
    auth_text,
    container_spec,
)
from corral.engines.local.containers.container_runtime import cdi_devices, group_below_mount

ADA = Account(name="ada", uid=1001, gid=100, groups=(100, 27), home="/home/ada")
PODMAN = ContainerRuntime(kind=RuntimeKind.PODMAN, program="/usr/bin/podman", env={"PATH": "/bin"})
DOCKER = replace(PODMAN, kind=RuntimeKind.DOCKER, program="/usr/bin/docker")
ORDER = ContainerOrder(
    engine="e1",
    attempt_id="j-7.2",
    instance=Instance(rank=1, node="n1"),
    image="registry.example.org/train:1",
    command=("python", "train.py", "--lr", "0.1"),
    env={"A": "b"},
    login=None,
    workdir="/home/ada/project",
    tmp="/run/7/tmp",
    rank_dir="/run/7",
    rights="/run/images",
    mounts=(ContainerMount(source="/home/ada/project", target="/home/ada/project"),),
    account=ADA,
)


def options(runtime: ContainerRuntime, order: ContainerOrder) -> str:
    return " ".join(container_spec(runtime, order)["run"])


def test_a_container_is_named_labelled_and_has_the_jobs_command() -> None:
    spec = container_spec(PODMAN, ORDER)
    assert spec["name"] == "corral-e1-j-7.2-1"
    line = " ".join(spec["run"])
    assert line.startswith("/usr/bin/podman run --name corral-e1-j-7.2-1 ")
    assert "--label corral.engine=e1 --label corral.attempt=j-7.2" in line
    assert line.endswith("--entrypoint  registry.example.org/train:1 python train.py --lr 0.1")
    assert spec["remove"][-1] == spec["name"]
    assert spec["is_child"]
    assert not container_spec(DOCKER, ORDER)["is_child"]


def test_the_user_has_no_privileges_and_all_its_groups() -> None:
    line = options(PODMAN, ORDER)
    assert "--user 1001:100 --security-opt no-new-privileges --cap-drop ALL --group-add 27" in line
    assert "--userns keep-id" in options(replace(PODMAN, is_rootless=True), ORDER)
    assert "--cap-drop" not in options(PODMAN, replace(ORDER, account=replace(ADA, uid=0)))


def test_mounts_have_the_same_place_inside_and_the_temporary_directory_is_its_own() -> None:
    data = ContainerMount(source="/data/set", target="/data", read_only=True)
    order = replace(ORDER, mounts=(*ORDER.mounts, data, *ORDER.mounts))
    line = options(PODMAN, order)
    assert line.count("--volume") == 3
    # By places of the supervisor's own, at which it mounts the sources: no job can replace them.
    assert "--volume /run/7/storage/0:/tmp --volume /run/7/storage/1:/home/ada/project" in line
    assert "--volume /run/7/storage/2:/data:ro" in line
    sources = [mount["source"] for mount in container_spec(PODMAN, order)["mounts"]]
    assert sources == ["/run/7/tmp", "/home/ada/project", "/data/set"]
    assert "--workdir /home/ada/project" in line
    with pytest.raises(LaunchRefused, match="cannot be mounted"):
        options(PODMAN, replace(ORDER, mounts=(ContainerMount(source="/etc", target="/x:/y"),)))


def test_limits_are_the_groups_or_else_the_runtimes() -> None:
    limited = replace(ORDER, memory_bytes=1 << 30, cpu_milli=1500, max_processes=99)
    line = options(PODMAN, limited)
    assert "--memory 1073741824 --memory-swap 1073741824 --cpus 1.5 --pids-limit 99" in line
    assert "--pids-limit -1" in options(PODMAN, ORDER)
    grouped = options(PODMAN, replace(limited, group="/corral/x"))
    assert "--cgroup-parent /corral/x --cgroups no-conmon --pids-limit -1" in grouped
    assert "--memory" not in grouped


def test_gpus_come_by_cdi_or_dockers_own_way_and_virtual_ones_need_nothing() -> None:
    real = replace(ORDER, instance=Instance(rank=0, node="n", gpu_ids=("GPU-aa", "GPU-bb"), gpu_indexes=(2, 3)))
    by_id = replace(PODMAN, cdi_devices=frozenset({"GPU-aa", "GPU-bb", "0"}))
    assert "--device nvidia.com/gpu=GPU-aa --device nvidia.com/gpu=GPU-bb" in options(by_id, real)
    by_index = replace(PODMAN, cdi_devices=frozenset({"0", "1", "2", "3"}))
    assert "--device nvidia.com/gpu=2 --device nvidia.com/gpu=3" in options(by_index, real)
    assert '--gpus "device=GPU-aa,GPU-bb"' in options(DOCKER, real)
    with pytest.raises(LaunchRefused, match="nvidia-ctk cdi generate"):
        options(PODMAN, real)
    with pytest.raises(LaunchRefused, match="GPU-aa is not in this node's CDI specification"):
        options(replace(PODMAN, cdi_devices=frozenset({"0"})), real)
    virtual = replace(ORDER, instance=Instance(rank=0, node="n", gpu_ids=("n-gpu0",), gpu_indexes=(0,)))
    line = options(PODMAN, virtual)
    assert "--device" not in line
    assert "--gpus" not in line


def test_environment_and_login_are_on_no_command_line() -> None:
    login = RegistryLogin(registry="docker.io", username="ada", secret="s3cret")
    spec = container_spec(PODMAN, replace(ORDER, env={"TOKEN": "hidden"}, login=login))
    lines = [word for key in ("exists", "pull", "run", "inspect", "terminate", "remove") for word in spec[key]]
    assert not [word for word in lines if "hidden" in word or "s3cret" in word]
    assert spec["pull"][-1] == "docker://registry.example.org/train:1"
    assert spec["pull"][-3:-1] == ["--authfile", "/run/7/auth/config.json"]
    assert container_spec(DOCKER, replace(ORDER, login=login))["pull"][1:3] == ["--config", "/run/7/auth"]
    assert "s3cret" not in repr(login)
    auths = json.loads(auth_text(login))["auths"]
    assert sorted(auths) == ["docker.io", "https://index.docker.io/v1/"]
    assert base64.b64decode(auths["docker.io"]["auth"]) == b"ada:s3cret"


def test_cdi_specifications_are_read_and_damaged_ones_left_out(tmp_path: Path) -> None:
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\ndevices: [{name: GPU-aa}, {name: '0'}, {name: all}]\n")
    (tmp_path / "other.json").write_text('{"kind": "vendor.com/nic", "devices": [{"name": "x"}]}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "notes.txt").write_text("kind: nvidia.com/gpu")
    assert cdi_devices([str(tmp_path), str(tmp_path / "nothing")]) == {"GPU-aa", "0", "all"}


def test_a_group_is_named_as_runtimes_do() -> None:
    top = "/sys/fs/cgroup"
    second = CgroupSupport(version=2, memory=f"{top}/a/corral", cpu=f"{top}/a/corral", pids=f"{top}/a/corral")
    assert group_below_mount(second, "x") == "/a/corral/x"
    first = CgroupSupport(version=1, memory=f"{top}/memory/corral", cpu=f"{top}/cpu/corral", pids=f"{top}/pids/corral")
    assert group_below_mount(first, "x") == "/corral/x"
    assert group_below_mount(replace(first, memory=f"{top}/memory/own/corral"), "x") == ""
    assert group_below_mount(replace(first, pids=""), "x") == ""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"Trying to pull x...\nError: initializing source: refused\n", "initializing source: refused"),
        (b"the job's own\nError response from daemon: no such image\n", "no such image"),
        (b"docker: Error response from daemon: bad mount.\nSee 'docker run --help'.\n", "bad mount."),
        (b"", ""),
        (b"\xff\xfe only this\n", "\ufffd\ufffd only this"),
    ],
)
def test_the_runtimes_complaint_is_found(output: bytes, words: str) -> None:
    assert error_in(output) == words
