"""How often a cluster is looked at: regularly, soon when that is wanted, and more seldom where it answers slowly."""

from __future__ import annotations

import threading

import pytest

from corral.control.live.cluster_watch import MAX_PAUSE_SECONDS, Watch, pause_after
from tests.unit.control.world import StillClock


@pytest.mark.parametrize(
    ("took", "regular", "pause"),
    [(0.01, 5.0, 5.0), (1.5, 5.0, 5.0), (6.0, 5.0, 20.0), (30.0, 5.0, MAX_PAUSE_SECONDS), (1.0, 120.0, 120.0)],
)
def test_a_slow_cluster_is_asked_more_seldom(took: float, regular: float, pause: float) -> None:
    assert pause_after(took, regular) == pytest.approx(pause)


def test_each_is_looked_at_soon_when_that_is_wanted_and_one_failure_is_not_the_end() -> None:
    looks = [threading.Semaphore(0), threading.Semaphore(0)]

    def fails() -> bool:
        looks[0].release()
        raise OSError("the disk is away")

    def answers() -> bool:
        looks[1].release()
        return True

    watches = [
        Watch("bad", fails, 3600.0, StillClock()),
        Watch("good", answers, 3600.0, StillClock()),
    ]
    for watch in watches:
        watch.start()
    try:
        for _ in range(3):
            for watch, look in zip(watches, looks, strict=True):
                watch.observe_soon()
                assert look.acquire(timeout=30)
    finally:
        for watch in watches:
            watch.stop()
