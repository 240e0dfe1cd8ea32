"""API schemas: object stores. A secret is accepted, but never returned."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.records import ObjectStoreKind, ObjectStoreRecord
from corral.server.schemas.base import Body, Label, Text, View, rfc3339

Address = Annotated[Text, Field(max_length=512)]
Secret = Annotated[Text, Field(max_length=16_384)]


class ObjectStoreCreate(Body):
    name: Label
    kind: Literal["s3", "gcs"] = Field(description="s3: S3 and compatible services, such as MinIO.")
    bucket: Label
    endpoint: Address | None = Field(default=None, description="Null: the provider's default.")
    region: Label = ""
    prefix: Address = Field(default="", description="Prefix of the bucket that can be used.")
    access_key: Label = Field(default="", description="Access key of S3.")
    secret: Secret = Field(
        default="",
        description="For S3 the secret key, for GCS the account's key as JSON. Stored encrypted, never shown.",
    )
    allow_write: bool = Field(default=False, description="Whether jobs may write to it.")


class ObjectStoreEdit(Body):
    """Changes to the access to a bucket. Fields that are left out keep their values."""

    endpoint: Address | None = None
    region: Label = ""
    access_key: Label = ""
    secret: Secret = ""
    allow_write: bool = False


class ObjectStoreView(View):
    name: str
    kind: ObjectStoreKind
    bucket: str
    allow_write: bool
    endpoint: str | None = Field(
        description="This field and the following ones are shown to operators only; for others they are empty."
    )
    region: str
    prefix: str
    access_key: str
    has_secret: bool
    volumes: int = Field(description="Number of volumes in this object store.")
    created_at: str


class ObjectStoreTestView(View):
    ok: bool
    detail: str
    objects_seen: int = Field(description="Names directly below the prefix.")


def object_store_view(store: ObjectStoreRecord, volumes: int, *, is_operator: bool) -> ObjectStoreView:
    return ObjectStoreView(
        name=store.name,
        kind=store.kind,
        bucket=store.bucket,
        allow_write=store.allow_write,
        endpoint=store.endpoint if is_operator else None,
        region=store.region if is_operator else "",
        prefix=store.prefix if is_operator else "",
        access_key=store.access_key if is_operator else "",
        has_secret=bool(store.secret) and is_operator,
        volumes=volumes if is_operator else 0,
        created_at=rfc3339(store.created_at),
    )
