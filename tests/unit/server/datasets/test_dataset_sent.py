"""The record of sent packs: per target and user, bounded, and removed with the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.server.datasets import dataset_sent
from corral.server.datasets.dataset_sent import SentPacks


def pack(number: int) -> str:
    return f"{number:064x}"


def test_packs_are_known_per_target_and_user_and_after_a_restart(tmp_path: Path) -> None:
    sent = SentPacks(tmp_path / "sent")
    assert sent.packs("default", "ann") == frozenset()
    sent.note("default", "ann", pack(1))
    sent.note("default", "ann", pack(2))
    sent.note("../other", "ann", pack(3))
    assert SentPacks(tmp_path / "sent").packs("default", "ann") == {pack(1), pack(2)}
    assert sent.packs("default", "bob") == frozenset()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sent"]
    sent.forget_user("ann")
    assert sent.packs("default", "ann") == sent.packs("../other", "ann") == frozenset()


def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_sent, "MOST_PACKS", 10)
    sent = SentPacks(tmp_path)
    for number in range(11):
        sent.note("default", "ann", pack(number))
    assert sent.packs("default", "ann") == {pack(number) for number in range(6, 11)}
