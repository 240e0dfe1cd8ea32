"""How a job gets a secret: as an environment variable, or as a file. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from corral.core.names import SECRET_NAME, VARIABLE_NAME

#: Variables with this prefix are set by corral.
_RESERVED = "CORRAL_"
_FILE = "file"


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretUse:
    """One secret of a job."""

    name: str
    #: holds the value, or the path of the file
    variable: str
    is_file: bool = False


def parse_secret(text: str) -> SecretUse:
    """Read `NAME`, `NAME=VARIABLE` or `NAME:file`. Raises ValueError.

    Without a variable, the name in capitals is used; the path of a file is in the variable NAME_FILE.
    """
    name, equals, variable = text.partition("=")
    is_file = False
    if not equals:
        name, colon, kind = text.partition(":")
        if colon and kind != _FILE:
            raise ValueError(f"{text!r}: write NAME, NAME=VARIABLE or NAME:file")
        is_file = bool(colon)
        variable = re.sub(r"[^A-Za-z0-9]", "_", name).upper() + ("_FILE" if is_file else "")
    if SECRET_NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not the name of a secret: letters, digits, '.', '_' and '-'")
    if VARIABLE_NAME.fullmatch(variable) is None:
        raise ValueError(
            f"{text!r}: {variable!r} is not a name of an environment variable; choose one: {name}=VARIABLE"
        )
    if variable.startswith(_RESERVED):
        raise ValueError(f"{text!r}: variables that begin with {_RESERVED} are set by corral")
    return SecretUse(name=name, variable=variable, is_file=is_file)


def parse_secrets(texts: tuple[str, ...]) -> tuple[SecretUse, ...]:
    """Read the secrets of one job. Raises ValueError, also if two of them have the same variable."""
    uses = tuple(map(parse_secret, texts))
    seen: dict[str, str] = {}
    for use in uses:
        if use.variable in seen:
            raise ValueError(f"the secrets {seen[use.variable]} and {use.name} have the same variable {use.variable}")
        seen[use.variable] = use.name
    return uses
