"""The entitlement token: whom this installation is licensed to, and until when. Nothing depends on it.

A token is three parts joined by dots: the text `corral-licence-1`, the claims as base64url of a JSON object, and the
Ed25519 signature, in base64url, of the first two parts with the dot between them. The claims are `holder` (text),
`issued_at` and `expires_at` (seconds since the epoch; without `expires_at` it never ends). base64url has no padding.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from corral.control.errors import Invalid, NotFound
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator

HEADER = "corral-licence-1"
#: The key that signs the tokens of this distribution; `server.licence_public_key` replaces it.
PUBLIC_KEY = "l7niSb8_FIF5sSL8EKWblbh02Fca4G6vOrKeWq2JizQ"
WARN_SECONDS = 30 * 86400.0
MAX_TOKEN = 4096
MAX_HOLDER = 200
_YEAR_10000 = 253_402_300_800.0
#: where the store keeps the token, and which warning was given for which one
KEPT = "licence"
WARNED = "licence-warned"


class LicenceState(StrEnum):
    NONE = "none"
    VALID = "valid"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True, slots=True)
class Licence:
    state: LicenceState
    detail: str
    holder: str | None = None
    expires_at: float | None = None


class BadToken(ValueError):
    """The token is not one, or was not signed by the right key."""


# ---------------------------------------------------------------- tokens


def sign(key: Ed25519PrivateKey, *, holder: str, issued_at: float, expires_at: float | None) -> str:
    """A new token, signed with the private key."""
    claims: dict[str, Any] = {"holder": holder, "issued_at": int(issued_at)}
    if expires_at is not None:
        claims["expires_at"] = int(expires_at)
    text = json.dumps(claims, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    signed = f"{HEADER}.{_encoded(text.encode())}"
    return f"{signed}.{_encoded(key.sign(signed.encode()))}"


def verify(token: str, public_key: str) -> Mapping[str, Any]:
    """The claims of a token with a right signature. Raises BadToken."""
    parts = token.strip().split(".")
    if len(token) > MAX_TOKEN or len(parts) != 3 or parts[0] != HEADER:
        raise BadToken(f"a licence token begins with {HEADER}. and has three parts")
    try:
        key = Ed25519PublicKey.from_public_bytes(_decoded(public_key))
        key.verify(_decoded(parts[2]), f"{parts[0]}.{parts[1]}".encode())
        claims = json.loads(_decoded(parts[1]))
    except InvalidSignature:
        raise BadToken("the signature is wrong: the token was changed, or is for another installation") from None
    except (binascii.Error, ValueError, RecursionError):
        raise BadToken("the token is cut or damaged") from None
    if not _are_claims(claims):
        raise BadToken("the token does not say who holds it until when")
    found: Mapping[str, Any] = claims
    return found


def check_public_key(text: str) -> str:
    """The text, if it is a public key: 32 bytes in base64url. Raises ValueError."""
    try:
        Ed25519PublicKey.from_public_bytes(_decoded(text))
    except (binascii.Error, ValueError):
        raise ValueError("must be an Ed25519 public key: 32 bytes in base64url") from None
    return text


def assess(token: str | None, public_key: str, now: float) -> Licence:
    """Returns the licence of a stored token at a moment."""
    if not token:
        return Licence(state=LicenceState.NONE, detail="no licence; everything works without one")
    try:
        claims = verify(token, public_key)
    except BadToken as error:
        return Licence(state=LicenceState.INVALID, detail=str(error))
    holder, expires_at = str(claims["holder"]), claims.get("expires_at")
    if expires_at is None:
        return Licence(state=LicenceState.VALID, detail=f"licensed to {holder}", holder=holder)
    left, day = expires_at - now, f"{datetime.fromtimestamp(expires_at, UTC):%Y-%m-%d}"
    if left <= 0:
        state, detail = LicenceState.EXPIRED, f"the licence of {holder} ran out on {day}; everything goes on working"
    elif left <= WARN_SECONDS:
        state, detail = LicenceState.EXPIRING, f"the licence of {holder} runs out on {day}, in {left / 86400:.0f} days"
    else:
        state, detail = LicenceState.VALID, f"licensed to {holder} until {day}"
    return Licence(state=state, detail=detail, holder=holder, expires_at=float(expires_at))


# ---------------------------------------------------------------- use cases


def put(work: Work, caller: Caller, token: str, public_key: str) -> Licence:
    """Keep a token, if it is worth anything."""
    require_operator(caller, "manage the licence")
    token = token.strip()
    licence = assess(token, public_key, work.now)
    if licence.state in (LicenceState.NONE, LicenceState.INVALID, LicenceState.EXPIRED):
        raise Invalid(licence.detail, field="token")
    work.tx.meta.put(KEPT, token)
    detail = {"holder": licence.holder, "state": licence.state.value, "expires_at": licence.expires_at}
    work.record(caller, "licence.set", "licence", detail=detail)
    return licence


def remove(work: Work, caller: Caller) -> None:
    require_operator(caller, "manage the licence")
    if not work.tx.meta.get(KEPT):
        raise NotFound("there is no licence", field="licence")
    work.tx.meta.put(KEPT, "")
    work.record(caller, "licence.removed", "licence")


def warn(work: Work, public_key: str) -> Licence | None:
    """Put a warning in the audit log before the licence runs out, and one after: each once for each token."""
    token = work.tx.meta.get(KEPT)
    licence = assess(token, public_key, work.now)
    mark = f"{licence.state.value} {licence.expires_at}"
    if licence.state not in (LicenceState.EXPIRING, LicenceState.EXPIRED) or work.tx.meta.get(WARNED) == mark:
        return None
    work.tx.meta.put(WARNED, mark)
    action = "licence.expiring" if licence.state is LicenceState.EXPIRING else "licence.expired"
    work.record(SYSTEM, action, "licence", detail={"detail": licence.detail, "expires_at": licence.expires_at})
    return licence


def _are_claims(claims: Any) -> bool:
    if not isinstance(claims, dict) or not isinstance(claims.get("holder"), str):
        return False
    times = [claims[name] for name in ("issued_at", "expires_at") if claims.get(name) is not None]
    return 0 < len(claims["holder"]) <= MAX_HOLDER and all(
        isinstance(time, int | float) and not isinstance(time, bool) and 0 <= time < _YEAR_10000 for time in times
    )


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
