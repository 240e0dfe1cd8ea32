"""An error of the operating system as text: its place and its reason, as far as the error has them."""

from __future__ import annotations


def reason_of(error: OSError) -> str:
    """No such file or directory."""
    return error.strerror or str(error) or type(error).__name__


def placed_reason(error: OSError) -> str:
    """/data/train: No such file or directory; only the reason if the error names no file."""
    return f"{error.filename}: {reason_of(error)}" if error.filename else reason_of(error)


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Why a file that was named cannot be read as text."""
    return "it is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else reason_of(error)
