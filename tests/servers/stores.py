"""The stores of tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.control.ports import Store
from corral.stores import open_store


@dataclass(kw_only=True)
class StorePlace:
    """An address, and the stores that a test opened there: several of them are several servers."""

    url: str
    _opened: list[Store] = field(default_factory=list)

    def open(self) -> Store:
        store = open_store(self.url)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()
