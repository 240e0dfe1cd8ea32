"""Tokens are stored per server, readable by their owner only; a broken file is reported."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from corral.client.http.credentials import Credential, CredentialFile, default_path
from corral.client.http.errors import CredentialsUnreadable

A, B = "http://127.0.0.1:8470", "https://gpu-head"


def test_tokens_are_kept_per_server_and_only_the_owner_can_read_them(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path / "new" / "credentials.json")
    assert file.get(A) is None
    file.put(A, Credential(user="operator", token="one"))
    file.put(B, Credential(user="maria", token="two"))
    file.put(A, Credential(user="operator", token="three"))
    assert file.get(A) == Credential(user="operator", token="three")
    assert file.get(B) == Credential(user="maria", token="two")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700

    assert file.remove(A) == Credential(user="operator", token="three")
    assert file.remove(A) is None
    assert file.get(B) is not None
    assert [path.name for path in file.path.parent.iterdir()] == ["credentials.json"]


def test_a_file_that_others_could_read_is_closed_by_the_next_write(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path / "credentials.json")
    file.put(A, Credential(user="operator", token="one"))
    file.path.chmod(0o644)
    file.put(B, Credential(user="maria", token="two"))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"servers": 3}',
        b'{"servers": {"a": "b"}}',
        b'{"servers": {"a": {"user": "x", "token": null}}}',
        b"\xff\xfe\x00",
    ],
)
def test_garbage_is_an_error_with_a_way_out_and_is_not_overwritten(tmp_path: Path, garbage: bytes) -> None:
    file = CredentialFile(tmp_path / "credentials.json")
    file.path.write_bytes(garbage)
    for attempt in (lambda: file.get(A), lambda: file.put(A, Credential(user="u", token="t")), lambda: file.remove(A)):
        with pytest.raises(CredentialsUnreadable) as caught:
            attempt()
        assert str(file.path) in caught.value.message
        assert "corral login" in caught.value.hint
    assert file.path.read_bytes() == garbage


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = CredentialFile(tmp_path / "credentials.json")
    file.put(A, Credential(user="operator", token="one"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CredentialsUnreadable, match="No space left on device"):
        file.put(A, Credential(user="operator", token="two"))
    assert file.get(A) == Credential(user="operator", token="one")
    assert [path.name for path in tmp_path.iterdir()] == ["credentials.json"]


def test_the_file_is_under_corral_home_or_in_the_config_directory() -> None:
    assert default_path({"CORRAL_HOME": "/srv/corral"}) == Path("/srv/corral/credentials.json")
    assert default_path({"XDG_CONFIG_HOME": "/cfg"}) == Path("/cfg/corral/credentials.json")
    assert default_path({}) == Path.home() / ".config" / "corral" / "credentials.json"
