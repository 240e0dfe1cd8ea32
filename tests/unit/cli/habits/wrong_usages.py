"""The wrong usages of wrong_usages.yaml, and how each one must end."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).with_name("wrong_usages.yaml")
#: Words of pydantic, of the API and of Python that users must never read.
INTERNAL = re.compile(r"Input should|Value error|validation|pydantic|Traceback|errno|NoneType|body\.|query\.", re.I)


@dataclass(frozen=True, kw_only=True, slots=True)
class WrongUsage:
    typed: str
    error: str
    hint: str
    code: int = 2

    @property
    def words(self) -> list[str]:
        return shlex.split(self.typed)

    def check(self, code: int, out: str, err: str) -> None:
        assert (code, out) == (self.code, "")
        hint = f"Hint: {self.hint}\n" if self.hint else ""
        assert err == f"Error: {self.error}\n{hint}"
        assert not INTERNAL.search(err)


def wrong_usages(which: str) -> list[WrongUsage]:
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return [WrongUsage(**row) for row in found[which]]
