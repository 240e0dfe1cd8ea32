"""Shares of volumes and datasets: which users and groups may read and write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from corral.control.errors import Invalid
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import Share, ShareKind, ShareMode

MAX_SHARES = 200


class Circle:
    """The shares that one caller can use. The caller's group is looked up once, when needed."""

    def __init__(self, tx: Transaction, caller: Caller) -> None:
        self.caller = caller
        self._tx = tx
        self._group: str | None = None
        self._is_known = False

    def sees(self, owner: str, shares: Iterable[Share]) -> bool:
        return self.caller.is_operator or owner == self.caller.name or any(map(self._is_meant, shares))

    def writes(self, owner: str, shares: Iterable[Share]) -> bool:
        if self.caller.is_operator or owner == self.caller.name:
            return True
        return any(share.mode is ShareMode.WRITE and self._is_meant(share) for share in shares)

    def _is_meant(self, share: Share) -> bool:
        if share.kind is ShareKind.USER:
            return share.name == self.caller.name
        if not self._is_known:
            record = self._tx.people.user(self.caller.name)
            self._group, self._is_known = (record.group if record is not None else None), True
        return share.name == self._group


def check_shares(tx: Transaction, shares: Sequence[Share]) -> tuple[Share, ...]:
    """The shares, ordered by name. Each must name a user or group, and each only once."""
    if len(shares) > MAX_SHARES:
        raise Invalid(f"at most {MAX_SHARES} shares", field="shares", asked=len(shares), limit=MAX_SHARES)
    groups = {group.name for group in tx.people.groups()}
    for share in shares:
        is_there = tx.people.user(share.name) is not None if share.kind is ShareKind.USER else share.name in groups
        if not is_there:
            raise Invalid(f"there is no {share.kind.value} {share.name!r}", field="shares")
    by_name = {(share.kind, share.name): share for share in shares}
    if len(by_name) < len(shares):
        raise Invalid("a user or group is named twice", field="shares")
    return tuple(by_name[key] for key in sorted(by_name))
