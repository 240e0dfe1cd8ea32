"""Refusals: the exceptions by which a use case refuses a request. The server turns each into a problem response.

A refusal names the field or the thing it is about and carries the numbers that explain it, and leaves nothing changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar


class Refusal(Exception):
    """The request is refused."""

    #: names the kind of problem for programs
    slug: ClassVar[str] = "refused"
    #: the HTTP status code
    status: ClassVar[int] = 400

    def __init__(
        self, detail: str, *, field: str | None = None, **numbers: float | int | str | list[str] | None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.numbers: Mapping[str, float | int | str | list[str] | None] = numbers
        #: which one of several things that were asked for together it is about, counted from 0
        self.item: int | None = None

    @property
    def title(self) -> str:
        return (type(self).__doc__ or "").strip().rstrip(".")


@contextmanager
def about_item(number: int) -> Iterator[None]:
    """Adds the number of the item to refusals inside the block."""
    try:
        yield
    except Refusal as refusal:
        if refusal.item is None:
            refusal.item = number
        raise


@contextmanager
def in_list(name: str) -> Iterator[None]:
    """Prefixes the field of refusals inside the block with the list and the item: `jobs[3].name`."""
    try:
        yield
    except Refusal as refusal:
        if refusal.item is not None:
            refusal.field = f"{name}[{refusal.item}]" + (f".{refusal.field}" if refusal.field else "")
        raise


class Invalid(Refusal):
    """A value is not allowed."""

    slug = "invalid"
    status = 422


class NotFound(Refusal):
    """The object does not exist."""

    slug = "not-found"
    status = 404


class SignedOut(Refusal):
    """Not signed in any more."""

    slug = "not-signed-in"
    status = 401


class Forbidden(Refusal):
    """Your role does not allow this."""

    slug = "forbidden"
    status = 403


class NotPermitted(Refusal):
    """Your permission group does not allow this."""

    slug = "not-permitted"
    status = 403


class Taken(Refusal):
    """The name is taken."""

    slug = "name-taken"
    status = 409


class WrongState(Refusal):
    """The state of the thing does not allow this."""

    slug = "wrong-state"
    status = 409


class InUse(Refusal):
    """The object is in use."""

    slug = "in-use"
    status = 409


class InsufficientQuota(Refusal):
    """Insufficient quota."""

    slug = "insufficient-quota"
    status = 409


class OverLimit(Refusal):
    """A limit would be exceeded."""

    slug = "over-limit"
    status = 409


class Missing(Refusal):
    """Something that it needs is missing."""

    slug = "missing"
    status = 409
