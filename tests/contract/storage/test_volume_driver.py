"""The contract of every volume driver, and faults of the one for directories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import VolumeDriver, VolumeUnavailable
from corral.engines.storage.driver import DirectoryVolumes
from corral.engines.storage.permissions import allow_passage, may_pass
from corral.engines.storage.project_quotas import ProjectQuotas, quotas_of

GIB = 1 << 30
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account: run as root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "volumes"


@pytest.fixture
def driver(root: Path) -> VolumeDriver:
    return DirectoryVolumes(str(root))


def _data(driver: VolumeDriver, volume_id: str) -> Path:
    path = driver.path_of(volume_id)
    assert path is not None
    return Path(path)


def test_a_volume_is_made_once_and_keeps_what_it_holds(driver: VolumeDriver) -> None:
    driver.create("v-1", GIB, "ada")
    (_data(driver, "v-1") / "kept").write_text("x")
    driver.create("v-1", GIB, "ada")
    driver.resize("v-1", 2 * GIB)
    assert (_data(driver, "v-1") / "kept").read_text() == "x"
    assert driver.volumes() == {"v-1"}


def test_deleting_removes_all_of_it_and_is_done_once(driver: VolumeDriver, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    driver.create("v-1", GIB, "ada")
    data = _data(driver, "v-1")
    (data / "deep" / "down").mkdir(parents=True)
    (data / "deep" / "way-out").symlink_to(outside)
    (data / "deep").chmod(0o000)
    driver.delete("v-1")
    driver.delete("v-1")
    driver.delete("v-7")
    assert driver.volumes() == set()
    assert (outside / "precious").read_text() == "x"


def test_usage_counts_blocks_once_and_follows_no_links(driver: VolumeDriver, tmp_path: Path) -> None:
    driver.create("v-1", GIB, "ada")
    data = _data(driver, "v-1")
    empty = driver.usage("v-1").used_bytes
    (data / "file").write_bytes(b"x" * 1_000_000)
    os.link(data / "file", data / "second-name")
    (tmp_path / "large").write_bytes(b"x" * 5_000_000)
    (data / "elsewhere").symlink_to(tmp_path / "large")
    with (data / "sparse").open("wb") as sparse:
        sparse.truncate(GIB)
    assert 1_000_000 <= driver.usage("v-1").used_bytes - empty < 1_200_000


def test_missing_volume_is_reported(driver: VolumeDriver) -> None:
    for refused in (lambda: driver.usage("v-9"), lambda: driver.resize("v-9", GIB)):
        with pytest.raises(VolumeUnavailable, match="v-9"):
            refused()
    for bad in ("../v-1", "v-1/..", "", ".trash"):
        with pytest.raises(VolumeUnavailable, match="not the id of a volume"):
            driver.create(bad, GIB, "ada")


def test_leftovers_of_a_crash_are_known_and_removed(driver: VolumeDriver, root: Path) -> None:
    """Killed while it made v-1, and while it removed v-2."""
    driver.create("v-2", GIB, "ada")
    (root / ".making" / "v-1.0" / "data").mkdir(parents=True)
    (root / ".trash").mkdir()
    (root / "v-2").rename(root / ".trash" / "v-2.0")
    assert driver.volumes() == {"v-1", "v-2"}
    driver.create("v-1", GIB, "ada")
    assert _data(driver, "v-1").is_dir()
    driver.delete("v-2")
    driver.delete("v-1")
    assert driver.volumes() == set()


@needs_root
def test_every_account_writes_in_it_and_none_comes_in_from_outside(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    driver = DirectoryVolumes(str(tmp_path / "volumes"))
    driver.create("v-1", GIB, "ada")
    data = _data(driver, "v-1")
    before = os.umask(0o077)
    (data / "of-root").write_text("x")
    os.umask(before)
    assert (data / "of-root").stat().st_mode & 0o666 == 0o666
    assert data.parent.stat().st_mode & 0o077 == 0
    assert allow_passage(str(data.parent), {12345})
    assert may_pass(str(data.parent)) == {12345}
    assert driver.is_open_to_jobs("v-1")
    for _ in range(2):
        driver.close_to_jobs("v-1")
    assert not driver.is_open_to_jobs("v-1")
    assert may_pass(str(data.parent)) == set()
    assert data.parent.stat().st_mode & 0o077 == 0
    driver.close_to_jobs("v-9")


def test_quotas_are_found_where_the_file_system_has_them(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    without = f"36 35 {number} / / rw,noatime - ext4 /dev/sda1 rw,errors=continue\n"
    other = "37 35 250:99 / /data rw - xfs /dev/sdb1 rw,prjquota\n"
    assert quotas_of(str(tmp_path), without + other) is None
    if os.geteuid() == 0:
        found = quotas_of(str(tmp_path), other + without.replace("errors", "prjquota,errors"))
        assert found is not None
        assert found.device == "/dev/sda1"


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Path]:
    """A real file system with project quotas."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system with quotas: run as root")
    image, place = tmp_path / "disk", tmp_path / "mounted"
    with image.open("wb") as disk:
        disk.truncate(64 << 20)
    place.mkdir()
    for command in (
        ["mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", str(image)],
        ["mount", "-o", "loop,prjquota", str(image), str(place)],
    ):
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("this kernel cannot mount ext4 with project quotas (CONFIG_QFMT_V2)")
    yield place
    subprocess.run(["umount", place], check=True)


def test_the_file_system_refuses_more_than_the_size(limited: Path) -> None:
    driver = DirectoryVolumes(str(limited / "volumes"))
    driver.create("v-1", 4 << 20, "ada")
    with pytest.raises(OSError, match=r"No space left|quota"):
        (_data(driver, "v-1") / "large").write_bytes(bytes(8 << 20))
    use = driver.usage("v-1")
    assert use.is_enforced
    assert use.used_bytes <= 4 << 20
    driver.resize("v-1", 16 << 20)
    (_data(driver, "v-1") / "large").write_bytes(bytes(8 << 20))


def test_files_in_another_project_count_as_use(limited: Path) -> None:
    driver = DirectoryVolumes(str(limited / "volumes"))
    driver.create("v-1", 4 << 20, "ada")
    large = _data(driver, "v-1") / "large"
    large.touch()
    subprocess.run(["chattr", "-p", "77", large], check=True)
    large.write_bytes(bytes(8 << 20))
    assert driver.usage("v-1").used_bytes >= 8 << 20


class _NoUse(ProjectQuotas):
    """Quotas of a file system on which every file is in another project."""

    def limit(self, directory: str, project: int, size_bytes: int) -> None:
        pass

    def used_bytes(self, project: int) -> int:
        return 0


def test_files_that_the_quota_does_not_count_are_measured(tmp_path: Path) -> None:
    driver = DirectoryVolumes(str(tmp_path / "volumes"), _NoUse("/dev/none"))
    driver.create("v-1", 4 << 20, "ada")
    (_data(driver, "v-1") / "large").write_bytes(os.urandom(1 << 20))
    assert driver.usage("v-1").used_bytes >= 1 << 20
