"""The messages for supervisors about an attempt's storage."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from corral.control.ports import LaunchRefused, StorageKind, StorageOrder
from corral.engines.slurm.attempts.storage import slurm_specs
from corral.engines.storage.job_mounts import mount_environment
from corral.engines.storage.storage_specs import StoragePlaces, preparer_spec, storage_specs

PLACES = StoragePlaces.below("/home/corral")


def order(kind: StorageKind, name: str, path: str, **more: object) -> StorageOrder:
    return StorageOrder(kind=kind, name=name, path=path, read_only=False, **more)  # type: ignore[arg-type]


def test_each_mount_has_a_link_and_a_variable_of_its_own() -> None:
    orders = [
        order(StorageKind.VOLUME, "data", "/a", id="v-1"),
        order(StorageKind.VOLUME, "bob/data", "/b/", id="v-2"),
        order(StorageKind.VOLUME, "DATA", "/c", id="v-3"),
        order(StorageKind.LOCAL, "local", "/d"),
    ]
    specs = storage_specs(orders, PLACES, scratch="/scratch/j-1.1-1", suffix="-1")
    assert [spec["link"] for spec in specs] == ["data", "data-2", "DATA-3", "local-1"]
    assert [spec["source"] for spec in specs] == [
        "/home/corral/volumes/v-1/data",
        "/home/corral/volumes/v-2/data",
        "/home/corral/volumes/v-3/data",
        "/scratch/j-1.1-1/3",
    ]
    env = mount_environment(specs, {spec["path"]: spec["source"] for spec in specs})
    assert env["CORRAL_MOUNT_DATA_2"] == "/home/corral/volumes/v-2/data"
    assert list(json.loads(env["CORRAL_MOUNTS"])) == ["/a", "/b", "/c", "/d"]
    assert preparer_spec(specs, PLACES, {}) is None


def test_a_job_without_mounts_has_no_variables() -> None:
    assert mount_environment([], {}) == {}


def test_slow_storage_is_prepared_and_its_secret_is_on_no_command_line() -> None:
    orders = [order(StorageKind.OBJECT, "set", "/set", id="v-1", access={"secret": "s3cret"})]
    specs = storage_specs(orders, PLACES, scratch="/scratch")
    assert specs[0]["source"] == ""
    spec = preparer_spec(specs, PLACES, {"PATH": "/bin", "CORRAL_TOKEN": "secret", "https_proxy": "http://proxy"})
    assert spec is not None
    assert "s3cret" not in json.dumps(spec)
    assert spec["env"] == {"PATH": "/bin", "https_proxy": "http://proxy"}
    assert "s3cret" not in repr(orders[0])


def test_read_only_share_is_refused_on_slurm() -> None:
    data = StorageOrder(kind=StorageKind.VOLUME, name="data", id="v-1", path="/data", read_only=True, owner="ann")
    with pytest.raises(LaunchRefused, match="volume data is ann's, and on a Slurm cluster nothing keeps a job from"):
        slurm_specs([data], PLACES, 0, "eve")
    assert slurm_specs([data], PLACES, 0, "ann")[0]["source"] == "/home/corral/volumes/v-1/data"
    assert slurm_specs([replace(data, read_only=False)], PLACES, 0, "eve")
