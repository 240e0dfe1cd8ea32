"""API schemas: images and logins to registries. A secret is accepted, but never returned."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.records import ImageRecord, RegistryCredentialRecord, Visibility
from corral.server.jobs.registry_listing import FoundImage
from corral.server.schemas.base import Body, Description, Label, Text, View, rfc3339

VisibilityWord = Literal["private", "shared", "public"]
Address = Annotated[Text, Field(min_length=1, max_length=512)]
Names = Annotated[list[Label], Field(max_length=200)]


class ImageEdit(Body):
    """Changes to an image. Fields that are left out keep their values."""

    address: Address = Field(default="", description="Address that the image is pulled from.")
    visibility: VisibilityWord = "private"
    shared_users: Names = Field(
        default_factory=list, description="Users and groups that may use the image, if its visibility is shared."
    )
    shared_groups: Names = Field(default_factory=list)
    credential: Label | None = Field(
        default=None, description="The owner's login that the image is pulled with; null: the login for the registry."
    )
    description: Description = ""


class ImageCreate(Body):
    name: Label
    address: Address
    visibility: VisibilityWord = Field(
        default="private", description="public: an image of the platform; only operators can create one."
    )
    shared_users: Names = Field(default_factory=list)
    shared_groups: Names = Field(default_factory=list)
    credential: Label | None = None
    description: Description = ""


class ImageView(View):
    name: str
    owner: str = Field(description="Empty for a public image, which belongs to the platform.")
    address: str
    visibility: VisibilityWord
    shared_users: list[str] = Field(description="Shown to its owner and to operators only.")
    shared_groups: list[str]
    credential: str | None
    description: str
    created_at: str


class LoginPut(Body):
    registry: Label
    username: Annotated[Text, Field(min_length=1, max_length=253)]
    secret: Annotated[Text, Field(min_length=1, max_length=8192)] = Field(
        description="A password or token. Stored encrypted and never shown again."
    )
    platform: bool = Field(default=False, description="For public images; only operators can set it.")


class RegistryLoginView(View):
    name: str
    registry: str
    username: str
    platform: bool
    created_at: str


class RegistryImageView(View):
    """An image of a registry, which may or may not be known to corral by a name."""

    address: str = Field(description="For `image` of a job.")
    repository: str
    version: str
    size_bytes: int | None = Field(description="Compressed, as it is pulled; null: the registry does not say.")
    created_at: str | None


def registry_image_view(found: FoundImage) -> RegistryImageView:
    return RegistryImageView(
        address=found.address,
        repository=found.repository,
        version=found.version,
        size_bytes=found.size_bytes,
        created_at=found.created_at,
    )


def image_values(body: ImageCreate | ImageEdit) -> dict[str, Any]:
    """The fields that were given, in the form of the record."""
    values = body.model_dump(include=body.model_fields_set)
    if "visibility" in values:
        values["visibility"] = Visibility(values["visibility"])
    for field in ("shared_users", "shared_groups"):
        if field in values:
            values[field] = tuple(sorted(set(values[field])))
    return values


def image_view(image: ImageRecord, *, is_owner: bool) -> ImageView:
    return ImageView(
        name=image.name,
        owner=image.owner,
        address=image.address,
        visibility=image.visibility.value,
        shared_users=list(image.shared_users) if is_owner else [],
        shared_groups=list(image.shared_groups) if is_owner else [],
        credential=image.credential if is_owner else None,
        description=image.description,
        created_at=rfc3339(image.created_at),
    )


def login_view(login: RegistryCredentialRecord) -> RegistryLoginView:
    return RegistryLoginView(
        name=login.name,
        registry=login.registry,
        username=login.username,
        platform=login.owner == "",
        created_at=rfc3339(login.created_at),
    )
