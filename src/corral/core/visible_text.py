"""Text that users wrote, made harmless for a terminal: characters that act are replaced by ones that show.

An escape sequence in a job's name or log could otherwise move the cursor, rewrite what stands there, change the title
or the clipboard; a bidirectional control could show words in another order than they are.
"""

from __future__ import annotations

import re

#: C0 without tab and line feed, DEL, C1, and what changes the direction or the lines of a text unseen.
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_IN_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_DELETE = 0x7F


def visible(text: str) -> str:
    """Of several lines: line breaks and tabs stay; others become a symbol such as ␛, or an escape such as \\u202e."""
    return text if text.isascii() and text.isprintable() else _ACTING.sub(_symbol, text)


def visible_line(text: str) -> str:
    """The same for what must stay on one line."""
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_symbol, text)


def visible_log(text: str) -> str:
    """The output of a program: a return to the beginning of the line begins a new one, so that nothing is hidden."""
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def visible_json(text: str) -> str:
    """A JSON document of the same meaning: within strings such characters become escapes."""
    # JSON itself has C0 as escapes already; what is left of them stands between values.
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _symbol(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == _DELETE else f"\\u{code:04x}"
