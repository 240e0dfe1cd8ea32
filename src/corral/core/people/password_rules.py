"""The rules for passwords."""

from __future__ import annotations

MIN_LENGTH = 8
MAX_LENGTH = 256


def refusal_of(password: str) -> str | None:
    """Why a new password is not acceptable, or None if it is."""
    if len(password) < MIN_LENGTH:
        return f"must have at least {MIN_LENGTH} characters"
    if len(password) > MAX_LENGTH:
        return f"must have at most {MAX_LENGTH} characters"
    if "\x00" in password or password.isspace():
        return "must not be blank or contain NUL characters"
    return None
