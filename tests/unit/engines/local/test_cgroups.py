"""The places of control groups and the values written to them, on imitated file systems."""

from __future__ import annotations

from pathlib import Path

from corral.engines.local.cgroups import Cgroup, CgroupSupport, cgroup_support, sweep


def v2_directory(path: Path, controllers: str = "") -> Path:
    path.mkdir(parents=True)
    (path / "cgroup.controllers").write_text("cpu memory\n")
    (path / "cgroup.subtree_control").write_text(controllers)
    return path


def own_file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "own"
    path.write_text(text)
    return str(path)


def test_version_2_uses_a_directory_of_its_own_at_the_top(tmp_path: Path) -> None:
    mount = v2_directory(tmp_path / "cgroup", "cpu memory")
    v2_directory(mount / "corral", "cpu memory")
    support = cgroup_support(str(mount), own_file(tmp_path, "0::/user.slice\n"))
    assert (support.version, support.memory, support.cpu) == (2, str(mount / "corral"), str(mount / "corral"))
    assert support.writable


def test_version_2_without_rights_uses_the_level_above_a_delegated_subgroup(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    mount.mkdir()
    (mount / "cgroup.controllers").write_text("cpu memory\n")  # and no subtree_control: as good as not writable
    unit = v2_directory(mount / "system.slice" / "corral.service", "cpu memory")
    v2_directory(unit / "corral", "cpu memory")
    support = cgroup_support(str(mount), own_file(tmp_path, "0::/system.slice/corral.service/server\n"))
    assert support.memory == str(unit / "corral")


def test_version_2_that_is_not_writable_says_why(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    mount.mkdir()
    (mount / "cgroup.controllers").write_text("")
    support = cgroup_support(str(mount), own_file(tmp_path, "0::/\n"))
    assert not support.writable
    assert "not writable" in support.detail
    assert str(mount) in support.detail


def test_version_1_has_a_directory_per_controller(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    for controller in ("memory", "cpu"):
        (mount / controller).mkdir(parents=True)
    support = cgroup_support(str(mount), own_file(tmp_path, "4:memory:/a/b\n1:cpu,cpuacct:/\n"))
    assert (support.version, support.writable) == (1, True)
    assert support.memory == str(mount / "memory" / "corral")
    assert support.cpu == str(mount / "cpu" / "corral")


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    support = cgroup_support(str(tmp_path / "nothing"), str(tmp_path / "neither"))
    assert (support.version, support.writable) == (0, False)


def test_version_2_limits(tmp_path: Path) -> None:
    support = CgroupSupport(version=2, memory=str(tmp_path), cpu=str(tmp_path))
    group = Cgroup(support, "x-j-1.1-0", memory_bytes=64 << 20, cpu_milli=1500)
    directory = tmp_path / "x-j-1.1-0"
    directory.mkdir()
    for name in ("memory.swap.max", "memory.oom.group"):
        (directory / name).write_text("")
    group.create()
    written = {path.name: path.read_text() for path in directory.iterdir()}
    assert written == {
        "memory.max": str(64 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
    }


def test_version_2_reports_what_the_kernel_counted(tmp_path: Path) -> None:
    support = CgroupSupport(version=2, memory=str(tmp_path), cpu=str(tmp_path))
    group = Cgroup(support, "g", memory_bytes=1000, cpu_milli=0)
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n")
    (tmp_path / "g" / "memory.peak").write_text("1000\n")
    report = group.memory_report()
    assert (report.oom_kills, report.peak_bytes, report.own_limit) == (2, 1000, True)
    (tmp_path / "g" / "memory.events").write_text("oom 0\noom_kill 1\n")
    (tmp_path / "g" / "memory.peak").write_text("400\n")
    assert not group.memory_report().own_limit  # the machine was short of memory, not the job over its limit


def test_only_what_is_limited_gets_a_group(tmp_path: Path) -> None:
    support = CgroupSupport(version=1, memory=str(tmp_path / "memory"), cpu=str(tmp_path / "cpu"))
    assert Cgroup(support, "g", memory_bytes=0, cpu_milli=0).directories == []
    assert Cgroup(support, "g", memory_bytes=1, cpu_milli=0).directories == [str(tmp_path / "memory" / "g")]
    assert len(Cgroup(support, "g", memory_bytes=1, cpu_milli=1).directories) == 2
    assert Cgroup(CgroupSupport(version=0), "g", memory_bytes=1, cpu_milli=1).directories == []


def test_a_sweep_takes_only_ones_own_forgotten_groups(tmp_path: Path) -> None:
    support = CgroupSupport(version=2, memory=str(tmp_path), cpu=str(tmp_path))
    for name in ("mine-a", "mine-b", "theirs-c"):
        (tmp_path / name).mkdir()
    sweep(support, "mine-", {"mine-b"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine-b", "theirs-c"]
