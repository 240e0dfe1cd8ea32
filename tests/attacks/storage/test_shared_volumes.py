"""Users of a shared volume can neither write to a read-only one nor keep access to it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from corral.core.storage.checksums import checksum_of
from tests.attacks.conftest import SharedMachine

pytestmark = pytest.mark.slow


def shared(machine: SharedMachine, mode: str | None) -> None:
    shares = [{"kind": "user", "name": "eve", "mode": mode}] if mode is not None else []
    with machine.server.http("ann") as http:
        http.put("/volumes/data/shares", json={"shares": shares}).raise_for_status()


@pytest.fixture
def volume(machine: SharedMachine) -> Path:
    """The directory of a volume of ann's with a file in it."""
    with machine.server.http("ann") as http:
        body = {"name": "data", "type": "filesystem", "size": "1GiB"}
        made: dict[str, Any] = http.post("/volumes", json=body).raise_for_status().json()
    ended, log = machine.run("ann", "echo secret > $CORRAL_MOUNT_DATA/secret", mounts=["data:/data"])
    assert ended["state"] == "completed", log
    return machine.server.home / "volumes" / str(made["id"]) / "data"


@pytest.mark.parametrize("path", ["/var/data", "/etc/corral-data", "/tmp/not/there", "/corral-attack"])
def test_read_only_share_is_not_written(machine: SharedMachine, volume: Path, path: str) -> None:
    shared(machine, "ro")
    script = "cd $CORRAL_MOUNT_DATA && cat secret; echo eve > secret; echo eve > new; chmod 777 .; pwd; ls -a"
    _, log = machine.run("eve", script, mounts=[f"ann/data:{path}:ro"])
    assert "secret" in log
    assert log.count("Read-only file system") == 3, log
    assert str(volume) not in log
    assert (volume / "secret").read_text() == "secret\n"
    assert os.listdir(volume) == ["secret"]
    assert not Path(path).exists()


@pytest.mark.parametrize("path", ["/var/data", "/corral-attack"])
def test_a_hard_link_is_not_kept_from_before(machine: SharedMachine, volume: Path, path: str) -> None:
    shared(machine, "rw")
    keep = "ln $CORRAL_MOUNT_DATA/secret $CORRAL_JOB_DIR/kept; ln $CORRAL_MOUNT_DATA/secret $TMPDIR/kept; "
    ended, log = machine.run("eve", f"{keep} cat $CORRAL_MOUNT_DATA/secret", mounts=[f"ann/data:{path}"])
    assert "secret\n" in log
    assert log.count("Invalid cross-device link") == 2, log
    kept = machine.server.home / "jobs" / "000000" / ended["id"] / "kept"
    # One from an older server, or made by an operator, is not used by corral either.
    shared(machine, None)
    ended, log = machine.run("eve", f"cat {kept}; cat {volume}/secret; ls {volume.parent}; true")
    assert "secret\n" not in log
    assert log.count("Permission denied") == 2, log
    assert (volume / "secret").stat().st_nlink == 1
    with machine.server.http("eve") as http:
        answer = http.post("/jobs", json={"command": ["true"], "mounts": [f"ann/data:{path}"]})
    assert answer.status_code in (403, 404, 422), answer.text


def test_mount_points_leave_nothing_in_the_root(machine: SharedMachine, volume: Path) -> None:
    before = sorted(os.listdir("/"))
    for path in ("/corral-attack", "/corral-attack-2/with/more"):
        ended, log = machine.run("ann", f"cat {path}/secret; ls /", mounts=[f"data:{path}"])
        assert (ended["state"], log.splitlines()[0]) == ("completed", "secret")
        assert path.split("/")[1] in log
    assert sorted(os.listdir("/")) == before


def test_a_replaced_directory_of_uploads_delays_no_other_user(machine: SharedMachine, volume: Path) -> None:
    """A user who may write to the volume puts pipes where parts of another user's upload are written."""
    shared(machine, "rw")
    content = b"x" * 100
    asked = {"path": "big", "size": len(content), "part_bytes": 1 << 20}
    with machine.server.http("ann") as http:
        upload = http.post("/volumes/data/uploads", json=asked).raise_for_status().json()["id"]
    order = {"path": "big", "size_bytes": len(content), "part_bytes": 1 << 20, "user": "ann"}
    about = json.dumps({**order, "checksum": None, "modified_ms": None})
    plant = (
        "cd $CORRAL_MOUNT_DATA && mv .corral-uploads aside && umask 0 && mkdir -p .corral-uploads/UPLOAD && "
        f"cd .corral-uploads/UPLOAD && mkfifo data have && echo '{about}' > upload.json"
    ).replace("UPLOAD", upload)
    ended, log = machine.run("eve", plant, mounts=["ann/data:/data"])
    assert ended["state"] == "completed", log
    headers = {"X-Checksum": checksum_of([content])}
    with machine.server.http("ann") as http:
        answer = http.put(f"/volumes/data/uploads/{upload}/parts/0", content=content, headers=headers)
        assert answer.status_code == 409, answer.text
        assert "is not the server's" in answer.text
        again = http.post("/volumes/data/uploads", json=asked)
    assert again.status_code == 409
