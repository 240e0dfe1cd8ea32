"""A dictionary that counts its changes.

The state and the unit of work keep their contents in these. A request that is refused is only rolled back if something
was changed since it began, and no code that changes an entry can forget to report the change.
"""

from __future__ import annotations

from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Counted(dict[Key, Value]):
    """Supports the changes that are overridden here; the others are refused."""

    changes = 0

    def __setitem__(self, key: Key, value: Value) -> None:
        self.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: Key) -> None:
        self.changes += 1
        super().__delitem__(key)

    def pop(self, key: Key, *default: Any) -> Any:
        self.changes += 1
        return super().pop(key, *default)

    def _refuse(self, *args: Any, **values: Any) -> Any:
        raise NotImplementedError("this change is not counted: set or remove single entries")

    update = setdefault = clear = popitem = __ior__ = _refuse
