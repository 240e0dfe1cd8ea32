"""The systemd units in `deploy/`: systemd's own tool accepts them, and the server's refuses what it does not need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.servers.unit_server import APPLIED, CAPABILITIES, UNIT, directives, words_of

DEPLOY = UNIT.parent
#: Directives that need a later systemd than Debian 12 has; older ones ignore them with a word.
LATER = ("DelegateSubgroup",)
#: What `systemd-analyze security` gives; 9.2 was a unit without any directive.
MOST_EXPOSURE = 7.1
#: Directives of the service that concern no process in it.
OF_THE_SERVICE = {
    "ConfigurationDirectory",
    "ConfigurationDirectoryMode",
    "Delegate",
    "EnvironmentFile",
    "ExecStart",
    "KillMode",
    "Restart",
    "RestartSec",
    "StateDirectory",
    "TasksMax",
    "User",
}


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip(
            "systemd-analyze is not installed: run scripts/install-test-servers as root (Debian package: systemd)"
        )
    return found


def complaints(analyze: str, unit: Path) -> list[str]:
    """The complaints of systemd about a unit and the files beside it, without those about later directives."""
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    # Other units of the machine are read too, and may be worth a complaint themselves.
    ours = [line for line in lines if unit.name in line]
    return [line for line in ours if not any(f"'{name}'" in line for name in LATER)]


def placed(tmp_path: Path, name: str) -> Path:
    """A copy whose program exists here."""
    text = (DEPLOY / name).read_text()
    copied = tmp_path / name
    copied.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text))
    return copied


@pytest.mark.parametrize("name", sorted(path.name for path in DEPLOY.glob("*.service")))
def test_a_unit_is_accepted(analyze: str, tmp_path: Path, name: str) -> None:
    assert complaints(analyze, placed(tmp_path, name)) == []


def test_the_single_user_way_is_accepted(analyze: str, tmp_path: Path) -> None:
    unit = placed(tmp_path, "corral.service")
    folder = tmp_path / "corral.service.d"
    folder.mkdir()
    shutil.copy(DEPLOY / "single-user.conf", folder)
    assert complaints(analyze, unit) == []


def test_a_wrong_directive_would_be_found(analyze: str, tmp_path: Path) -> None:
    unit = placed(tmp_path, "corral.service")
    unit.write_text(unit.read_text().replace("UMask", "UMusk").replace("@swap", "@swop"))
    assert len(complaints(analyze, unit)) == 2


def test_the_server_is_exposed_no_more_than_it_must_be(analyze: str, tmp_path: Path) -> None:
    unit = placed(tmp_path, "corral.service")
    command = [analyze, "security", "--offline=true", "--no-pager", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"Overall exposure level for corral\.service: ([0-9.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) <= MOST_EXPOSURE


def test_the_server_has_no_view_of_the_file_system_of_its_own() -> None:
    """The next server would not see what this one has mounted for jobs that still run."""
    apart = re.compile(
        r"(?m)^(Protect(System|Home|Proc|Kernel\w+|ControlGroups|Hostname)|Private\w+|Mount\w+|ReadOnlyPaths"
        r"|ReadWritePaths|InaccessiblePaths|TemporaryFileSystem|Bind\w*Paths|RootDirectory|ProcSubset|DynamicUser)="
    )
    assert apart.findall(UNIT.read_text()) == []


def test_jobs_of_the_unit_are_never_root() -> None:
    unit = directives(UNIT)
    assert unit["User"] == ["root"]
    # systemd ignores a name that it does not know, without a word.
    assert {f"CAP_{name}" for name in CAPABILITIES} >= set(words_of(unit, "CapabilityBoundingSet"))
    assert "CORRAL_ALLOW_ROOT=false" in words_of(unit, "Environment")
    assert (unit["StateDirectoryMode"], unit["UMask"]) == (["0711"], ["0077"])


def test_attacks_meet_all_directives_of_the_unit() -> None:
    assert set(directives(UNIT)) == {*APPLIED, *OF_THE_SERVICE}
