"""Entries of people in a directory: their id, login, name, and whether the account is disabled."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from corral.control.records import DirectoryRecord
from corral.server.auth.directory.connection import Entry
from corral.server.auth.outside import Person

#: An id that is sent as 16 bytes, and in which the first groups are turned round (Active Directory).
GUID = "objectguid"
#: Attributes that say that an account is disabled, of the usual directories.
STATE_ATTRIBUTES = ("userAccountControl", "accountExpires", "nsAccountLock", "pwdAccountLockedTime", "shadowExpire")

_ACCOUNT_DISABLED = 0x2
#: ppolicy: locked until an administrator unlocks it; other times are locks that end by themselves.
_LOCKED_FOR_GOOD = re.compile(r"0000(01010000|0101000000)?Z|000001010000Z")
#: Active Directory counts 100 ns since 1601; these values mean "never".
_NEVER = frozenset({0, 0x7FFFFFFFFFFFFFFF})
_SECONDS_TO_1970 = 11_644_473_600


def wanted_attributes(directory: DirectoryRecord, groups_attribute: str) -> list[str]:
    own = (directory.login_attribute, directory.id_attribute, directory.name_attribute, directory.email_attribute)
    return list(dict.fromkeys([*own, groups_attribute, *STATE_ATTRIBUTES]))


def subject_of(directory: DirectoryRecord, entry: Entry) -> str:
    """The unchanging id of the entry; "" if it has none that can be used."""
    values = entry.values.get(directory.id_attribute.casefold(), ())
    if len(values) != 1:
        return ""
    if directory.id_attribute.casefold() == GUID:
        return str(uuid.UUID(bytes_le=values[0])) if len(values[0]) == 16 else ""
    text = values[0].decode("utf-8", "replace").strip()
    return text if 0 < len(text) <= 255 and text.isprintable() else ""


def id_value(directory: DirectoryRecord, subject: str) -> bytes | None:
    """The id as the directory stores it; None if it cannot be one of this attribute."""
    if directory.id_attribute.casefold() != GUID:
        return subject.encode()
    try:
        return uuid.UUID(subject).bytes_le
    except ValueError:
        return None


def person_of(directory: DirectoryRecord, entry: Entry, member_of: Sequence[str]) -> Person | None:
    """The person of the entry; None without an id or a login. The login is the directory's, whatever was typed."""
    subject, login = subject_of(directory, entry), _line(entry.text(directory.login_attribute))
    if not subject or not login:
        return None
    name, email = _line(entry.text(directory.name_attribute)), _line(entry.text(directory.email_attribute))
    return Person(subject=subject, login=login, name=name, email=email, member_of=tuple(member_of))


def is_disabled(entry: Entry, now: float) -> bool:
    """Whether the directory has disabled the account, or it has expired."""
    if _number(entry, "userAccountControl") & _ACCOUNT_DISABLED:
        return True
    expires = _number(entry, "accountExpires")
    if expires > 0 and expires not in _NEVER and expires / 10_000_000 - _SECONDS_TO_1970 <= now:
        return True
    days = _number(entry, "shadowExpire")
    if days > 0 and days * 86400 <= now:
        return True
    if entry.text("nsAccountLock").casefold() == "true":
        return True
    return _LOCKED_FOR_GOOD.fullmatch(entry.text("pwdAccountLockedTime")) is not None


def _number(entry: Entry, attribute: str) -> int:
    try:
        return int(entry.text(attribute))
    except ValueError:
        return 0


def _line(text: str) -> str:
    return "".join(char for char in text if char.isprintable())[:253].strip()
