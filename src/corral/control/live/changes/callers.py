"""The caller of a use case, as permission checks and the audit log need it."""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.records import USUAL_FUNCTIONS, Function

#: The actor in the audit log for actions that no user requested.
PLATFORM = "corral"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The user that a request is executed for, and the address that it came from."""

    name: str
    is_operator: bool = False
    source: str = ""
    #: the functions that the caller's permission group allows
    functions: frozenset[Function] = USUAL_FUNCTIONS

    def may(self, function: Function) -> bool:
        return self.is_operator or function in self.functions


SYSTEM = Caller(name=PLATFORM, is_operator=True)
