"""A number with its noun, in the right form: every message and table uses these functions."""

from __future__ import annotations


def counted(amount: float, noun: str, plural: str = "") -> str:
    """1 GPU, 2 GPUs, 0.5 GPUs; at most three decimals."""
    shown = f"{amount:.3f}".rstrip("0").rstrip(".") if isinstance(amount, float) else str(amount)
    return f"{shown} {noun_for(amount, noun, plural)}"


def noun_for(amount: float, noun: str, plural: str = "") -> str:
    """The noun for an amount, without the number. The plural ends with an s unless it is given."""
    return noun if amount == 1 else plural or f"{noun}s"
