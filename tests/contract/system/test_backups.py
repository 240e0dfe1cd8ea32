"""Backups without a server: what is in them, what they cost, what damages them, and how old ones go."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from corral.backup import manifest as manifests
from corral.backup.errors import BackupError, DamagedBackup
from corral.backup.expiry import expired, remove_backups
from corral.backup.manifest import Manifest
from corral.backup.verification import read_file_list, verify_backup
from corral.control.ports import Clock
from corral.server.auth.secret_box import SecretBox
from corral.server.settings.settings import Settings
from corral.server.settings.settings_sources import load_settings
from corral.server.system.backup.backup_places import open_archive
from corral.server.system.backup.backup_worker import BackupWorker
from corral.server.system.backup.backups import list_backups, make_backup
from corral.server.system.backup.restore import restore
from corral.stores import StoreError, open_store
from tests.contract.store_samples import added
from tests.servers.s3_server import ACCESS_KEY, SECRET, S3Server

pytest_plugins = ("tests.servers.fixtures",)


class FixedClock:
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now


def settings_of(home: Path, **backup: Any) -> Settings:
    return load_settings(
        overrides={"home": home, **{f"backup.{key}": value for key, value in backup.items()}}, environ={}
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a store, a secret, files of two jobs and a log."""
    home = tmp_path / "home"
    home.mkdir()
    store = open_store(f"sqlite:///{home / 'corral.db'}")
    store.take_over()
    added(store, {"name": "one"}, {"name": "two"})
    store.close()
    SecretBox(home).encrypt("a secret")
    for name, text in {
        "jobs/01/j-1/outputs/result": "made",
        "jobs/01/j-1/checkpoints/step": "saved",
        "jobs/01/j-1/work": "temporary",
        "jobs/01/j-1.key": "a key of the server",
        "local/runs/01/j-1.1/0.log.000000000000000": "said\n",
        "local/runs/01/j-1.1/0/claim": "never copied",
        "local/term": "7",
        "reports/r1.html": "<html>",
        "home-id": "never copied",
        "kubernetes/pods/engine-id": "5b1f09ac",
        "kubernetes/pods/term": "7",
        "slurm/lab/engine-id": "77ab0c12",
        "slurm/lab/engine-key": "5ec4e7",
        "slurm/lab/orders/j-2.1": "never copied",
        "kubernetes/pods/orders/j-1.1": "never copied",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / "jobs/01/j-1/outputs/link").symlink_to("/etc/passwd")
    os.mkfifo(home / "jobs/01/j-1/outputs/pipe")
    return home


def saved(settings: Settings, manifest: Manifest) -> set[str]:
    files = read_file_list(open_archive(settings.backup, make=False), manifest)
    return {file.path for file in files if file.kind != "directory"}


def test_files_are_chosen_by_rule_and_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    everywhere = {
        "kubernetes/pods/engine-id",
        "slurm/lab/engine-id",
        "slurm/lab/engine-key",
        "local/runs/01/j-1.1/0.log.000000000000000",
        "reports/r1.html",
    }
    outputs = {"jobs/01/j-1/outputs/result", "jobs/01/j-1/outputs/link"}
    for rule, expected in {
        "none": set(),
        "outputs": outputs,
        "checkpoints": outputs | {"jobs/01/j-1/checkpoints/step"},
        "all": outputs | {"jobs/01/j-1/checkpoints/step", "jobs/01/j-1/work"},
    }.items():
        settings = settings_of(home, to=str(tmp_path / rule), jobs=rule)
        assert saved(settings, make_backup(settings).manifest) == expected | everywhere, rule
    small = settings_of(home, to=str(tmp_path / "small"), max_file_size="3B")
    made = make_backup(small).manifest
    assert "jobs/01/j-1/outputs/result: larger than 3 bytes" in made.left_out


def test_a_second_backup_writes_what_changed(home: Path, tmp_path: Path) -> None:
    (home / "jobs/01/j-1/outputs/big").write_bytes(os.urandom(9_000_000))
    settings = settings_of(home, to=str(tmp_path / "archive"))
    first = make_backup(settings).manifest
    assert first.written > 9_000_000
    (home / "jobs/01/j-1/outputs/new").write_bytes(os.urandom(1000))
    second = make_backup(settings).manifest
    assert 1000 < second.written < 20_000
    assert second.file_bytes == first.file_bytes + 1000
    # Content that was read before is not read again: the file may even have lost its permissions.
    blobs = open_archive(settings.backup, make=False)
    assert verify_backup(blobs, second).files == second.files


def test_key_and_configuration_are_sealed_with_a_passphrase(home: Path, tmp_path: Path) -> None:
    (tmp_path / "passphrase").write_text("open sesame\n")
    (home / "corral.yaml").write_text("server: {port: 9999}\n")
    key = (home / "secrets.key").read_text()
    archive = str(tmp_path / "archive")
    settings = settings_of(home, to=archive, passphrase_file=str(tmp_path / "passphrase"))
    made = make_backup(settings).manifest
    stored = b"".join(path.read_bytes() for path in (tmp_path / "archive").rglob("*") if path.is_file())
    assert b"9999" not in stored
    assert key.splitlines()[-1].encode() not in stored
    assert (tmp_path / "archive").stat().st_mode & 0o077 == 0
    elsewhere = settings_of(tmp_path / "other", to=archive)
    blobs = open_archive(elsewhere.backup, make=False)
    for passphrase, reason in ((None, "give the passphrase"), ("wrong", "passphrase is wrong")):
        with pytest.raises(BackupError, match=reason):
            restore(elsewhere, blobs, made, passphrase=passphrase)
    restore(elsewhere, blobs, made, passphrase="open sesame")
    assert (elsewhere.home / "secrets.key").read_text() == key
    assert (elsewhere.home / "secrets.key").stat().st_mode & 0o077 == 0
    assert (elsewhere.home / "corral.yaml").read_text() == "server: {port: 9999}\n"


def test_a_restore_without_the_key_says_so(home: Path, tmp_path: Path) -> None:
    settings = settings_of(home, to=str(tmp_path / "archive"), jobs="all")
    made = make_backup(settings).manifest
    blobs = open_archive(settings.backup, make=False)
    other = settings_of(tmp_path / "other", to=str(tmp_path / "archive"))
    rehearsal = restore(other, blobs, made, rehearse=True)
    assert not other.home.exists()
    done = restore(other, blobs, made)
    assert any("put secrets.key" in line for line in done.missing)
    assert rehearsal.missing == done.missing
    for path in ("jobs/01/j-1/outputs/result", "jobs/01/j-1/work", "reports/r1.html"):
        before, after = home / path, other.home / path
        assert after.read_bytes() == before.read_bytes()
        assert after.stat().st_mtime_ns == before.stat().st_mtime_ns
        assert after.stat().st_mode == before.stat().st_mode
    assert os.readlink(other.home / "jobs/01/j-1/outputs/link") == "/etc/passwd"
    assert not (other.home / "home-id").exists()
    assert not (other.home / "local/runs/01/j-1.1/0/claim").exists()
    # The pods of the former server have its id.
    kept = [path.name for path in (other.home / "kubernetes/pods").iterdir()]
    assert kept == ["engine-id"]
    store = open_store(f"sqlite:///{other.home / 'corral.db'}")
    (new,) = added(store, {"name": "three"})
    assert new.job.id == "j-10003"
    store.close()


def test_nothing_is_overwritten(home: Path, tmp_path: Path) -> None:
    settings = settings_of(home, to=str(tmp_path / "archive"))
    made = make_backup(settings).manifest
    blobs = open_archive(settings.backup, make=False)
    with pytest.raises(BackupError, match="is the home of a server"):
        restore(settings, blobs, made)
    (home / "home-id").unlink()
    with pytest.raises(StoreError, match="is not empty"):
        restore(settings, blobs, made)


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "manifest"])
def test_damage_is_found(home: Path, tmp_path: Path, damage: str) -> None:
    settings = settings_of(home, to=str(tmp_path / "archive"))
    made = make_backup(settings).manifest
    (pack,) = [path for path in (tmp_path / "archive" / "packs").rglob("*") if path.is_file()]
    data = pack.read_bytes()
    if damage == "flip":
        pack.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    elif damage == "cut":
        pack.write_bytes(data[: len(data) // 2])
    elif damage == "remove":
        pack.unlink()
    else:
        path = tmp_path / "archive" / "backups" / f"{made.id}.json"
        path.write_text(path.read_text().replace('"rows":2', '"rows":3'))
    blobs = open_archive(settings.backup, make=False)
    with pytest.raises(DamagedBackup):
        verify_backup(blobs, manifests.load(blobs, made.id))
    other = settings_of(tmp_path / "other", to=str(tmp_path / "archive"))
    if damage != "manifest":
        with pytest.raises(DamagedBackup):
            restore(other, blobs, made)
    assert not (other.home / "corral.db").exists()


def test_a_backup_that_was_interrupted_does_not_count(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(home, to=str(tmp_path / "archive"))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(manifests, "save", die)
        with pytest.raises(KeyboardInterrupt):
            make_backup(settings)
    blobs = open_archive(settings.backup, make=False)
    assert list_backups(blobs) == []
    make_backup(settings)
    assert len(list_backups(blobs)) == 1


def test_retention_keeps_what_the_rules_say(home: Path, tmp_path: Path) -> None:
    settings = settings_of(home, to=str(tmp_path / "archive"), keep=2)
    made = []
    for number in range(4):
        (home / "jobs/01/j-1/outputs/result").write_bytes(os.urandom(5000 + number))
        made.append(make_backup(settings).manifest.id)
    blobs = open_archive(settings.backup, make=False)
    kept = list_backups(blobs)
    assert [manifest.id for manifest in kept] == made[-2:]
    packs = sum(path.is_file() for path in (tmp_path / "archive" / "packs").rglob("*"))
    assert packs == 4, "packs of the last day stay: another backup may be under way"
    freed = remove_backups(blobs, [], kept[-1].at + 2 * 86_400)
    assert freed > 5000
    for manifest in kept:
        verify_backup(blobs, manifest)
    late = kept[-1].at + 10
    assert expired(kept, keep=1, keep_days=1, now=late) == []
    assert expired(kept, keep=1, keep_days=None, now=late) == [kept[0].id]
    assert expired(kept[:1], keep=1, keep_days=None, now=late) == []


def test_an_archive_belongs_to_one_installation(home: Path, tmp_path: Path) -> None:
    make_backup(settings_of(home, to=str(tmp_path / "archive")))
    other = tmp_path / "other"
    other.mkdir()
    store = open_store(f"sqlite:///{other / 'corral.db'}")
    store.take_over()
    store.close()
    with pytest.raises(BackupError, match="backups of another installation"):
        make_backup(settings_of(other, to=str(tmp_path / "archive")))


def test_the_metric_history_is_copied_if_wanted(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "history.db")) as history, history:
        history.execute("CREATE TABLE reading (value)")
        history.execute("INSERT INTO reading VALUES (42)")
    settings = settings_of(home, to=str(tmp_path / "archive"), metrics=True)
    made = make_backup(settings).manifest
    other = settings_of(tmp_path / "other", to=str(tmp_path / "archive"))
    restore(other, open_archive(other.backup, make=False), made)
    with closing(sqlite3.connect(other.home / "history.db")) as history:
        assert history.execute("SELECT value FROM reading").fetchall() == [(42,)]


def test_a_bucket_holds_backups(home: Path, tmp_path: Path, s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket("backups")
    (tmp_path / "secret").write_text(SECRET)
    place = {
        "to": "s3://backups/lab/one",
        "endpoint": s3_server.url,
        "access_key": ACCESS_KEY,
        "key_file": str(tmp_path / "secret"),
    }
    settings = settings_of(home, **place)
    made = make_backup(settings).manifest
    assert (bucket / "lab" / "one" / "backups" / f"{made.id}.json").is_file()
    other = settings_of(tmp_path / "other", **place)
    blobs = open_archive(other.backup, make=False)
    assert [manifest.id for manifest in list_backups(blobs)] == [made.id]
    assert restore(other, blobs, made).verified.files == made.files


def test_the_schedule_follows_the_archive(home: Path, tmp_path: Path) -> None:
    settings = settings_of(home, to=str(tmp_path / "archive"), every_hours=2.0)
    blobs = open_archive(settings.backup, make=True)

    def worker(now: float) -> BackupWorker:
        clock: Clock = FixedClock(now)
        return BackupWorker(settings, clock)

    assert worker(0.0).run_if_due() > 0
    (made,) = list_backups(blobs)
    assert worker(made.at + 3600).run_if_due() == pytest.approx(3600, abs=1)
    assert len(list_backups(blobs)) == 1, "a new server does not make one before its time"
    worker(made.at + 7201).run_if_due()
    assert len(list_backups(blobs)) == 2
    assert json.loads((tmp_path / "archive" / "corral-backups.json").read_text())["format"] == 1
