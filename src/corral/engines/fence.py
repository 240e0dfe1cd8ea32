"""The fence of an engine's root: only the server with the latest term starts and stops attempts there."""

from __future__ import annotations

from pathlib import Path

from corral.control.ports import EngineUnavailable
from corral.engines.attempts.terms import TERM, read_term, write_term


class Fence:
    """A server leads with a term; a later term that another server writes supersedes it."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._path = str(self._root / TERM)
        #: term of this server; 0 until it leads, as in tests: such a server is never superseded
        self.term = 0

    def term_seen(self) -> int:
        return read_term(self._path)

    def lead(self, term: int) -> None:
        """Durable when this returns."""
        write_term(self._path, term)
        self.term = term

    @property
    def is_superseded(self) -> bool:
        return 0 < self.term < self.term_seen()

    def check(self) -> None:
        """Raises EngineUnavailable if another server has taken over."""
        if self.is_superseded:
            raise EngineUnavailable(
                f"another server has taken over {self._root} (it has term {self.term_seen()}, this server has "
                f"term {self.term}): this server no longer starts or stops jobs there"
            )
