"""What can speak against a GPU. One file per sign, one line here; a sign is a function from a sight to a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corral.core.monitoring.health.model import Finding, Sight, Sign
from corral.core.monitoring.health.signs import ecc, hot, idle, lost, row_remap, xid


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    sign: Sign
    look: Callable[[Sight], Finding]
    #: so many bad readings as the rules say confirm it; otherwise the sign itself says when it is certain
    is_counted: bool = True
    #: a bad word stands until the sign takes it back; otherwise it tells of an event, which passes
    is_persistent: bool = False


SIGNS = (
    Look(sign=Sign.LOST, look=lost.look, is_persistent=True),
    Look(sign=Sign.HOT, look=hot.look, is_persistent=True),
    Look(sign=Sign.IDLE, look=idle.look, is_counted=False, is_persistent=True),
    Look(sign=Sign.ECC, look=ecc.look),
    Look(sign=Sign.ROW_REMAP, look=row_remap.look),
    Look(sign=Sign.XID, look=xid.look),
)
PERSISTENT = frozenset(look.sign for look in SIGNS if look.is_persistent)
