"""API schemas: secrets. A value is accepted, but never returned."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.control.records import SecretRecord
from corral.core.people.budgets import AccountKind
from corral.server.schemas.base import Body, Label, Text, View, rfc3339

#: An environment variable must fit beside the others of a job.
MAX_VALUE = 65_536


class SecretPut(Body):
    value: Annotated[Text, Field(min_length=1, max_length=MAX_VALUE)] = Field(
        description="Stored encrypted and never shown again."
    )
    group: Label | None = Field(
        default=None, description="Store it for this group instead of the caller; only operators can set it."
    )


class SecretView(View):
    name: str
    group: str | None = Field(description="The group that the secret belongs to; null: the caller's own.")
    set_by: str
    set_at: str


def secret_view(secret: SecretRecord) -> SecretView:
    return SecretView(
        name=secret.name,
        group=secret.owner.name if secret.owner.kind is AccountKind.GROUP else None,
        set_by=secret.set_by,
        set_at=rfc3339(secret.set_at),
    )
