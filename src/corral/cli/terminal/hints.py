"""Hints that fit the reader: a command that only operators may use is named to operators only."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.client.client import Client


def none_yet(client: Client, found: Sized, nouns: str, create: str) -> str:
    """The text for an empty list of things that operators create; the role is only read if the list is empty."""
    if len(found) > 0:
        return ""
    is_operator = client.people.me()["role"] == "operator"
    return f"No {nouns}. " + (f"Create one: {create}" if is_operator else "Ask an operator to create one.")


def none_found(client: Client, found: Sized, text: str, for_operators: str) -> str:
    """The text for an empty list, with a sentence that is of use to operators only."""
    if len(found) > 0:
        return ""
    return f"{text} {for_operators}" if client.people.me()["role"] == "operator" else text
