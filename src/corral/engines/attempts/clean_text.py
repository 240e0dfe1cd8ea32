"""Cleans texts of jobs, nodes and cluster programs for storing and showing: short, without control characters. Pure."""

from __future__ import annotations

#: length of one message
MAX_CHARS = 500


def plain(text: str, limit: int = MAX_CHARS) -> str:
    """Control, format and bidirectional characters are written as escapes, and a text longer than `limit` is cut."""
    shown = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", errors="surrogatepass").decode("ascii")
