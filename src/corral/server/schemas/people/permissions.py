"""API schemas: permission groups and SSH keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.people import ssh_keys
from corral.control.records import Function, PermissionGroupRecord, SshKeyRecord
from corral.server.schemas.base import Body, Label, Text, View, rfc3339

#: Listed for the type checker and for the API's description; a test checks that no function is missing.
FunctionName = Literal[
    "train",
    "distribute",
    "workbench",
    "tasks",
    "volumes",
    "datasets",
    "images",
    "see-others-jobs",
    "tokens",
]
Functions = Annotated[list[FunctionName], Field(max_length=len(Function))]
Description = Annotated[Text, Field(max_length=1000)]


class PermissionGroupCreate(Body):
    name: Label
    functions: Functions = Field(default=[])
    description: Description = ""


class PermissionGroupEdit(Body):
    functions: Functions | None = Field(default=None, description="The complete set; it replaces the present one.")
    description: Description | None = None


class Assignment(Body):
    users: Annotated[list[Label], Field(min_length=1, max_length=1000)]


class PermissionGroupView(View):
    name: str
    functions: list[Function]
    description: str
    users: list[str]
    users_count: int
    created_at: str


class SshKeyCreate(Body):
    name: Annotated[Text, Field(min_length=1, max_length=ssh_keys.MAX_NAME)]
    public_key: Annotated[Text, Field(min_length=1, max_length=65_536, description="The content of a .pub file.")]


class SshKeyView(View):
    id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: str


def functions_of(names: list[FunctionName] | None) -> frozenset[Function] | None:
    return None if names is None else frozenset(Function(name) for name in names)


def permission_group_view(group: PermissionGroupRecord, users: list[str]) -> PermissionGroupView:
    return PermissionGroupView(
        name=group.name,
        functions=list(group.functions),
        description=group.description,
        users=users,
        users_count=len(users),
        created_at=rfc3339(group.created_at),
    )


def ssh_key_view(key: SshKeyRecord) -> SshKeyView:
    return SshKeyView(
        id=key.id,
        name=key.name,
        public_key=key.public_key,
        fingerprint=key.fingerprint,
        created_at=rfc3339(key.created_at),
    )
