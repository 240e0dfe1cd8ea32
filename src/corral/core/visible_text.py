"""Makes text written by users safe for a terminal: control characters are replaced by visible symbols.

An escape sequence in a job's name or log could otherwise move the cursor, overwrite the screen, change the title or the
clipboard; a bidirectional control character could show text in another order than it is stored.
"""

from __future__ import annotations

import re

#: C0 without tab and line feed, DEL, C1, and invisible characters that change the direction or the lines of a text.
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_IN_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_DELETE = 0x7F


def visible(text: str) -> str:
    """Makes text of several lines safe to show: line breaks and tabs stay; other control characters become a symbol
    such as ␛ or an escape such as \u202e.
    """
    return text if text.isascii() and text.isprintable() else _ACTING.sub(_symbol, text)


def visible_line(text: str) -> str:
    """Makes one line of text safe to show: like `visible`, but line breaks become symbols, too."""
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_symbol, text)


def visible_log(text: str) -> str:
    """Makes the output of a program safe to show: a carriage return starts a new line, so nothing is overwritten."""
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def visible_json(text: str) -> str:
    """An equivalent JSON document: control characters within strings become escapes."""
    # JSON has C0 characters in strings as escapes already; the others are between values.
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _symbol(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == _DELETE else f"\\u{code:04x}"
