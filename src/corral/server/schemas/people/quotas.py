"""API schemas: quotas: limits beside what is held, replaced for one user or changed for many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from corral.control.people.quotas import QuotaEdit, QuotaUsage
from corral.core.model import WHOLE, JobKind
from corral.core.people.quota import Quota
from corral.core.quantities import MAX_BYTES, MAX_COUNT
from corral.core.storage.volumes import VolumeType
from corral.server.schemas.base import Body, Label, Number, View, number

Bytes = Annotated[int, Field(ge=0, le=MAX_BYTES)]
Amount = Annotated[float, Field(ge=0, le=MAX_COUNT)]


class QuotaPut(Body):
    """Limits on the resources that a user's jobs of one kind may hold; null means no limit."""

    gpus: Amount | None = None
    cpus: Amount | None = None
    memory_bytes: Bytes | None = None


class VolumeQuotasPut(Body):
    """The most bytes of a user's volumes of each type; null means no limit."""

    block: Bytes | None = None
    filesystem: Bytes | None = None
    local: Bytes | None = None
    object: Bytes | None = None


class QuotasPut(Body):
    """One entry per job kind; a kind that is left out has no limit afterwards. The same holds for the types of volumes,
    unless `volumes` is left out altogether."""

    workbench: QuotaPut | None = None
    training: QuotaPut | None = None
    distributed: QuotaPut | None = None
    preset: QuotaPut | None = None
    volumes: VolumeQuotasPut | None = None


class QuotasBatch(Body):
    """The same change for many users. Limits that are left out stay unchanged; null removes a limit."""

    users: Annotated[list[Label], Field(min_length=1, max_length=10_000)] | None = None
    all: bool = Field(default=False, validate_default=True, description="All users, instead of a list of users.")
    quota: QuotasPut

    @field_validator("all")
    @classmethod
    def _one_of_them(cls, is_for_all: bool, info: ValidationInfo) -> bool:
        if (info.data.get("users") is None) != is_for_all:
            raise ValueError("give either users or all")
        return is_for_all


class HeldView(View):
    limit: Number | None = Field(description="null means no limit")
    held: Number = Field(description="Held by jobs that have resources, or by volumes.")
    asked: Number = Field(description="Requested by waiting jobs. Held and asked count against the limit together.")


class KindQuotaView(View):
    gpus: HeldView
    cpus: HeldView
    memory_bytes: HeldView


class QuotaUsageView(View):
    user: str
    kinds: dict[str, KindQuotaView]
    volumes: dict[str, HeldView]


def quotas_of(body: QuotasPut) -> dict[JobKind, Quota]:
    """Every kind; a limit that is left out is none."""
    return {kind: Quota(**_limits(getattr(body, kind.value) or QuotaPut())) for kind in JobKind}


def volumes_of(body: QuotasPut) -> dict[VolumeType, int | None] | None:
    if body.volumes is None:
        return None
    return {kind: getattr(body.volumes, kind.value) for kind in VolumeType}


def edit_of(body: QuotasPut) -> QuotaEdit:
    """Returns only the given limits. A kind that is null loses all its limits."""
    given = body.model_fields_set
    kinds = {
        kind: _limits(QuotaPut()) if (value := getattr(body, kind.value)) is None else _given_limits(value)
        for kind in JobKind
        if kind.value in given
    }
    volumes: Mapping[VolumeType, int | None] = {}
    if body.volumes is not None:
        named = body.volumes.model_fields_set
        volumes = {kind: getattr(body.volumes, kind.value) for kind in VolumeType if kind.value in named}
    elif "volumes" in given:
        volumes = dict.fromkeys(VolumeType)
    return QuotaEdit(kinds={kind: changes for kind, changes in kinds.items() if changes}, volumes=volumes)


def usage_view(usage: QuotaUsage) -> QuotaUsageView:
    return QuotaUsageView(
        user=usage.user,
        kinds={
            kind.value: KindQuotaView(
                gpus=_held(item.quota.gpu_milli, item.held.gpu_milli, item.asked.gpu_milli, WHOLE),
                cpus=_held(item.quota.cpu_milli, item.held.cpu_milli, item.asked.cpu_milli, WHOLE),
                memory_bytes=_held(item.quota.memory_bytes, item.held.memory_bytes, item.asked.memory_bytes, 1),
            )
            for kind, item in usage.kinds.items()
        },
        volumes={kind.value: _held(item.max_bytes, item.held_bytes, 0, 1) for kind, item in usage.volumes.items()},
    )


def _limits(body: QuotaPut) -> dict[str, Any]:
    return {
        "gpu_milli": None if body.gpus is None else round(body.gpus * WHOLE),
        "cpu_milli": None if body.cpus is None else round(body.cpus * WHOLE),
        "memory_bytes": body.memory_bytes,
    }


def _given_limits(body: QuotaPut) -> dict[str, int | None]:
    names = {"gpus": "gpu_milli", "cpus": "cpu_milli", "memory_bytes": "memory_bytes"}
    limits = _limits(body)
    return {names[field]: limits[names[field]] for field in body.model_fields_set}


def _held(limit: int | None, held: int, asked: int, unit: int) -> HeldView:
    # Divided only where there is a unit: bytes stay exact.
    if unit == 1:
        return HeldView(limit=limit, held=held, asked=asked)
    return HeldView(
        limit=None if limit is None else number(limit / unit), held=number(held / unit), asked=number(asked / unit)
    )
