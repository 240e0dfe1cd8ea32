"""The file system of a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.server.system.file_systems import network_file_system

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
proc /proc proc rw 0 0
filer:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
fs /scratch lustre rw 0 0
user@host: /mnt/with\\040space fuse.sshfs rw 0 0
filer:/old /srv nfs rw 0 0
/dev/sdc1 /srv ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/corral", None),
        ("/home/maria/corral", "nfs4"),
        ("/home/local/corral", None),
        ("/homeless", None),
        ("/scratch", "lustre"),
        ("/mnt/with space/home", "sshfs"),
        ("/srv/corral", None),
    ],
)
def test_the_innermost_and_latest_mount_counts(path: str, kind: str | None) -> None:
    assert network_file_system(Path(path), MOUNTS) == kind


def test_this_machine_can_be_asked(tmp_path: Path) -> None:
    assert network_file_system(tmp_path) in (None, "9p", "nfs", "nfs4", "virtiofs", "ceph")
