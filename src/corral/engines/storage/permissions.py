"""Permissions in a volume's directory, where jobs have accounts of their own.

A job that mounts a volume for writing may change everything in it, whichever account made it: that is the meaning of
sharing it for writing. So permissions inside are open to all accounts, and a default ACL opens new files whatever a
program's umask is. Access is controlled by the directory around it, which only the server may pass: jobs get volumes as
mounts, and where that is not possible an ACL names their accounts. The supervisor imports this module, so it uses the
standard library only.
"""

from __future__ import annotations

import errno
import os
import struct

_ACCESS = "system.posix_acl_access"
_DEFAULT = "system.posix_acl_default"
_VERSION = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_USER_OWNER, _USER, _GROUP_OWNER, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _PASS, _NOTHING = 7, 1, 0
_NO_ID = 0xFFFFFFFF
_WITHOUT = {errno.ENOTSUP, errno.EPERM, errno.EINVAL}


def open_inside(directory: str) -> None:
    """Give all accounts all permissions in the directory, and in new files of it."""
    os.chmod(directory, 0o777)
    entries = ((_USER_OWNER, _ALL), (_GROUP_OWNER, _ALL), (_OTHER, _ALL))
    _set(directory, _DEFAULT, [(tag, rights, _NO_ID) for tag, rights in entries])


def allow_passage(directory: str, uids: set[int]) -> bool:
    """Allows only these accounts to pass through; returns False if the file system has no ACLs."""
    if not uids:
        has_acls = _set(directory, _ACCESS, None)
        # Otherwise the mask of the named accounts would become the group's permission.
        os.chmod(directory, 0o700)
        return has_acls
    named = [(_USER, _PASS, uid) for uid in sorted(uids)]
    entries = [
        (_USER_OWNER, _ALL, _NO_ID),
        *named,
        (_GROUP_OWNER, _NOTHING, _NO_ID),
        (_MASK, _PASS, _NO_ID),
        (_OTHER, _NOTHING, _NO_ID),
    ]
    return _set(directory, _ACCESS, entries)


def may_pass(directory: str) -> set[int]:
    """The accounts that `allow_passage` named."""
    try:
        raw = os.getxattr(directory, _ACCESS)
    except OSError:
        return set()
    return {uid for tag, _, uid in _ENTRY.iter_unpack(raw[len(_VERSION) :]) if tag == _USER}


def _set(directory: str, which: str, entries: list[tuple[int, int, int]] | None) -> bool:
    try:
        if entries is None:
            os.removexattr(directory, which)
        else:
            os.setxattr(directory, which, _VERSION + b"".join(_ENTRY.pack(*entry) for entry in entries))
    except OSError as error:
        if error.errno in (errno.ENODATA, *_WITHOUT):
            return error.errno == errno.ENODATA
        raise
    return True
