"""Secrets encrypted at rest, and the tickets that browsers carry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from corral.control.records import ProviderKind, ProviderRecord
from corral.server.auth.secret_box import KEY_FILE, SecretBox, SecretUnreadable, renewed
from corral.server.auth.tickets import TICKET_SECONDS, TicketOffice, safe_next


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def provider(secret: str) -> ProviderRecord:
    return ProviderRecord(id="lab", kind=ProviderKind.OIDC, client_secret=secret)


def test_the_key_is_made_on_first_use_for_its_owner_only(tmp_path: Path) -> None:
    box = SecretBox(tmp_path)
    assert not box.path.exists()
    locked = box.encrypt("s3cret")
    assert "s3cret" not in locked
    assert box.path.name == KEY_FILE
    assert box.path.stat().st_mode & 0o777 == 0o600
    assert SecretBox(tmp_path).decrypt(locked) == "s3cret"
    assert box.encrypt("s3cret") != locked, "the same secret twice does not look the same"


def test_without_its_key_a_secret_is_unreadable_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    box = SecretBox(tmp_path)
    locked = box.encrypt("s3cret")
    box.path.rename(tmp_path / "elsewhere")
    with pytest.raises(SecretUnreadable, match="is missing: restore it"):
        box.decrypt(locked)
    assert not box.path.exists()
    box.encrypt("another")  # given again: a new key
    with pytest.raises(SecretUnreadable, match="none of the keys"):
        box.decrypt(locked)


@pytest.mark.parametrize(("content", "reason"), [("not a key\n", "not a key"), ("# empty\n", "no key")])
def test_a_broken_key_file_is_reported_and_not_changed(tmp_path: Path, content: str, reason: str) -> None:
    box = SecretBox(tmp_path)
    box.path.write_text(content)
    box.path.chmod(0o600)
    with pytest.raises(SecretUnreadable, match=reason):
        box.encrypt("s3cret")
    assert box.path.read_text() == content


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    box = SecretBox(tmp_path)
    locked = box.encrypt("s3cret")
    box.path.chmod(0o640)
    with pytest.raises(SecretUnreadable, match="chmod 600"):
        box.decrypt(locked)


def test_keys_are_replaced_without_losing_what_they_locked(tmp_path: Path) -> None:
    box = SecretBox(tmp_path)
    locked = box.encrypt("s3cret")
    assert renewed([provider(locked), provider("")], box) == {}
    old = box.path.read_text()
    new = Fernet.generate_key().decode()
    box.path.write_text(f"{new}\n{old}")
    assert box.decrypt(locked) == "s3cret"
    ((place, (before, after)),) = renewed([provider(locked)], box).items()
    assert (place, before) == (("lab", "client_secret"), locked)
    box.path.write_text(f"{new}\n")
    os.chmod(box.path, 0o600)
    assert box.decrypt(after) == "s3cret"
    assert renewed([provider(locked)], box) == {}, "what cannot be read is left as it is"


def test_a_ticket_is_good_for_ten_minutes_and_one_use() -> None:
    clock = Hand()
    office = TicketOffice(now=clock)
    ticket = office.issue(provider="lab", redirect_uri="https://corral.example.org/back", next="/")
    sealed = office.sealed(ticket)
    assert ticket.verifier not in sealed
    clock.at += TICKET_SECONDS - 1
    assert office.opened(sealed) == ticket
    assert office.use(ticket)
    assert not office.use(ticket)
    clock.at += 2
    assert office.opened(sealed) is None
    assert TicketOffice(now=clock).opened(sealed) is None, "of another server"
    for forged in ("", "x", sealed[:-2] + "AA", "gAAAA" + "é"):
        assert office.opened(forged) is None


@pytest.mark.parametrize("path", ["/", "/api/docs", "/jobs?state=running#top"])
def test_paths_of_this_server_are_fine(path: str) -> None:
    assert safe_next(path) == path


@pytest.mark.parametrize(
    "path", [None, "", "jobs", "//evil.example", "/\\evil.example", "https://evil.example", "/a b", "/a\r\nb", "/a\\b"]
)
def test_other_places_are_not(path: str | None) -> None:
    assert safe_next(path) is None
