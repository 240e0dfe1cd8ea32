"""Records of requests that must not be carried out twice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKeyRecord:
    """A request of a user under a key that the user chose, and its result."""

    user: str
    key: str
    #: the digest of the whole request
    digest: str
    at: float
    #: the result of the use case as JSON
    result: str
    #: the answer, once it was sent
    status: int | None = None
    answer: bytes | None = None
