"""The room in a volume between two measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import OverLimit
from corral.control.records import VolumeRecord
from corral.core.storage.volumes import VolumeType
from corral.server.storage.volume_storage import VolumeRoom

VOLUME = VolumeRecord(
    id="v-1", name="data", owner="ann", type=VolumeType.FILESYSTEM, size_bytes=100, used_bytes=40, measured_at=1.0
)


def test_announced_and_received_bytes_count_until_they_are_measured() -> None:
    room = VolumeRoom()
    room.announce(VOLUME, "a", 30)
    with pytest.raises(OverLimit) as refused:
        room.announce(VOLUME, "b", 31)
    assert refused.value.numbers == {"asked": 31, "held": 70, "limit": 100}
    room.announce(VOLUME, "b", 30)
    # The same again is no second one.
    room.announce(VOLUME, "b", 30)
    room.land(VOLUME, "a", 30)
    room.end(VOLUME, "a")
    with pytest.raises(OverLimit):
        room.announce(VOLUME, "c", 1)
    measured = replace(VOLUME, used_bytes=70, measured_at=2.0)
    with pytest.raises(OverLimit):
        room.announce(measured, "c", 1)
    room.end(measured, "b")
    room.announce(measured, "c", 30)


def test_a_bucket_has_no_limit_here() -> None:
    VolumeRoom().announce(replace(VOLUME, type=VolumeType.OBJECT, size_bytes=0), "a", 1 << 60)
    assert replace(VOLUME, size_bytes=0).is_full is False
