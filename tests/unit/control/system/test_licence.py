"""The licence token: who signed it, until when, and that nothing depends on it."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corral.control.errors import Forbidden, Invalid, NotFound
from corral.control.system import licence
from corral.control.system.licence import LicenceState
from tests.unit.control.world import ANN, ROOT, Desk, draft

DAY = 86400.0
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def public(key: Ed25519PrivateKey) -> str:
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def token(days: float | None = 100, *, key: Ed25519PrivateKey = KEY, holder: str = "Institute") -> str:
    expires_at = None if days is None else 1000 + days * DAY
    return licence.sign(key, holder=holder, issued_at=1000, expires_at=expires_at)


def state(text: str | None, now: float = 1000.0) -> LicenceState:
    return licence.assess(text, public(KEY), now).state


def test_the_state_of_a_licence_over_time() -> None:
    assert state(None) is state("") is LicenceState.NONE
    assert state(token(None)) is LicenceState.VALID
    assert state(token(100)) is LicenceState.VALID
    assert state(token(100), 1000 + 69 * DAY) is LicenceState.VALID
    assert state(token(100), 1000 + 70 * DAY) is LicenceState.EXPIRING
    assert state(token(100), 1000 + 100 * DAY) is LicenceState.EXPIRED
    found = licence.assess(token(10), public(KEY), 1000.0)
    assert (found.holder, found.expires_at) == ("Institute", 1000 + 10 * DAY)
    assert "in 10 days" in found.detail


def test_a_changed_token_or_another_key_is_not_believed() -> None:
    good = token()
    header, claims, signature = good.split(".")
    forged = base64.urlsafe_b64encode(json.dumps({"holder": "Thief"}).encode()).decode().rstrip("=")
    other = Ed25519PrivateKey.generate()
    for bad in (
        f"{header}.{forged}.{signature}",
        token(key=other),
        f"{header}.{claims}",
        f"{header}.{claims}.",
        f"corral-licence-2.{claims}.{signature}",
        "hello",
        "ü.ü.ü",
        "x" * 5000,
    ):
        assert state(bad) is LicenceState.INVALID, bad
    assert licence.assess(good, public(other), 1000.0).state is LicenceState.INVALID


@pytest.mark.parametrize(
    "claims",
    [
        [],
        {},
        {"holder": ""},
        {"holder": 5},
        {"holder": "x", "expires_at": "soon"},
        {"holder": "x", "expires_at": 1e300},
        {"holder": "x", "expires_at": True},
    ],
)
def test_signed_nonsense_is_still_nonsense(claims: object) -> None:
    text = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    signed = f"{licence.HEADER}.{text}"
    signature = base64.urlsafe_b64encode(KEY.sign(signed.encode())).decode().rstrip("=")
    assert state(f"{signed}.{signature}") is LicenceState.INVALID


def test_keeping_and_removing_one(desk: Desk) -> None:
    for act in (lambda work: licence.put(work, ANN, token(), public(KEY)), lambda work: licence.remove(work, ANN)):
        with pytest.raises(Forbidden):
            desk.do(act)
    with pytest.raises(NotFound):
        desk.do(licence.remove, ROOT)
    for bad in ("", "nonsense", token(-1)):
        with pytest.raises(Invalid) as refusal:
            desk.do(licence.put, ROOT, bad, public(KEY))
        assert refusal.value.field == "token"
    assert desk.do(licence.put, ROOT, f" {token()}\n", public(KEY)).state is LicenceState.VALID
    with desk.store.read() as tx:
        assert tx.meta.get(licence.KEPT) == token()
    desk.do(licence.remove, ROOT)
    with pytest.raises(NotFound):
        desk.do(licence.remove, ROOT)


def test_licence_warns_once_before_and_once_after_its_end(desk: Desk) -> None:
    assert desk.do(licence.warn, public(KEY)) is None
    desk.do(licence.put, ROOT, token(100), public(KEY))
    assert desk.do(licence.warn, public(KEY)) is None
    desk.now += 80 * DAY
    assert [desk.do(licence.warn, public(KEY)) is not None for _ in range(2)] == [True, False]
    desk.now += 30 * DAY
    assert [desk.do(licence.warn, public(KEY)) is not None for _ in range(2)] == [True, False]
    assert desk.actions("licence") == ["licence.set", "licence.expiring", "licence.expired"]
    (job,) = desk.submit(draft("still-works"))
    assert desk.cycle() == [job.id]


def test_the_shipped_key_is_a_key_and_a_wrong_setting_is_refused() -> None:
    assert licence.check_public_key(licence.PUBLIC_KEY)
    for wrong in ("", "AAAA", "not base64!", "ü"):
        with pytest.raises(ValueError, match="Ed25519"):
            licence.check_public_key(wrong)
