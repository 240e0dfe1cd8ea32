"""Names in a directory (LDAP): which logins are accepted, and when two names of groups mean the same group."""

from __future__ import annotations

import re

#: Letters that a directory reads in one way only. Others (blanks, capitals of other scripts, wide letters) are equal to
#: it and different here, so that one account would have many counts of failed sign-ins.
LOGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+$'-]{0,127}")
#: In a template for a name: the place of the login.
PLACE = "{}"

_HEX = re.compile(r"[0-9A-Fa-f]{2}")
_SPECIAL = frozenset(',+"\\<>;=')

#: One step of a distinguished name: its types and values, all in small letters.
Step = tuple[tuple[str, str], ...]


def steps_of(name: str) -> tuple[Step, ...]:
    """The steps of a distinguished name, the entry's own first, in a form that can be compared. Raises ValueError."""
    if not name.strip():
        return ()
    return tuple(tuple(sorted(_pair(part) for part in _divided(step, "+"))) for step in _divided(name, ","))


def group_key(name: str) -> str:
    """Equal for two names of one group, whatever their case, blanks and escapes."""
    if "=" in name:
        try:
            return ",".join("+".join(f"{kind}={_plain(value)}" for kind, value in step) for step in steps_of(name))
        except ValueError:
            pass  # a short name with an equals sign
    return _folded(name)


def short_name(name: str, base: str) -> str | None:
    """The name of a group directly below `base`, without its place; None for groups elsewhere. Names are unique in one
    place only: a group of the same name in another place must not pass for this one."""
    try:
        steps, above = steps_of(name), steps_of(base)
    except ValueError:
        return None
    if not above or steps[1:] != above or len(steps[0]) != 1:
        return None
    value = steps[0][0][1]
    # It must not read like a whole name.
    return None if "=" in value else value


def filled(template: str, login: str) -> str:
    """The name to bind with: the login in its place, escaped in a distinguished name."""
    return template.replace(PLACE, escaped(login) if "=" in template else login)


def escaped(value: str) -> str:
    """A value for a distinguished name (RFC 4514)."""
    text = "".join(f"\\{char}" if char in _SPECIAL else char for char in value)
    text = "".join(f"\\{ord(char):02x}" if ord(char) < 32 or ord(char) == 127 else char for char in text)
    if text[:1] in ("#", " "):
        text = "\\" + text
    if text.endswith(" ") and len(text) > 1:
        text = text[:-1] + "\\ "
    return text


def _divided(text: str, mark: str) -> list[str]:
    """The parts between marks that are not escaped."""
    parts, begin, index = [], 0, 0
    while index < len(text):
        if text[index] == "\\":
            index += 1
        elif text[index] == mark:
            parts.append(text[begin:index])
            begin = index + 1
        index += 1
    return [*parts, text[begin:]]


def _pair(text: str) -> tuple[str, str]:
    kind, equals, value = text.partition("=")
    if not equals or not kind.strip() or not value.strip():
        raise ValueError(f"{text!r} is no part of a distinguished name")
    return kind.strip().casefold(), _folded(_unescaped(value.strip()))


def _unescaped(value: str) -> str:
    data, index = bytearray(), 0
    while index < len(value):
        if value[index] != "\\":
            data += value[index].encode("utf-8", "replace")
            index += 1
        elif _HEX.fullmatch(value, index + 1, index + 3):
            data.append(int(value[index + 1 : index + 3], 16))
            index += 3
        else:
            data += value[index + 1 : index + 2].encode("utf-8", "replace")
            index += 2
    return data.decode("utf-8", "replace")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _plain(value: str) -> str:
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in value)
