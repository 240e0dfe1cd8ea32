"""API schemas: flavors and packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from corral.control.fleet.catalog import Catalog, matching_gpus
from corral.control.fleet.live_fleet import Labels
from corral.control.fleet.offers import Offer
from corral.control.records import FlavorRecord, PackageRecord
from corral.core.model import WHOLE, JobKind
from corral.core.quantities import parse_cpus, parse_gpus
from corral.server.schemas.base import Body, Label, Number, Size, Text, View, number, rfc3339
from corral.server.schemas.scheduling.queues import Kinds


def _gpus(value: Any) -> Any:
    parse_gpus(value)
    return value


def _cpus(value: Any) -> Any:
    parse_cpus(value)
    return value


_NUMBER = WithJsonSchema({"type": "number", "minimum": 0})

Gpus = Annotated[float, BeforeValidator(_gpus), _NUMBER]
Cpus = Annotated[float, BeforeValidator(_cpus), _NUMBER]
Description = Annotated[Text, Field(max_length=1000)]
Names = Annotated[list[Label], Field(min_length=1, max_length=1000)]


class FlavorEdit(Body):
    """Changes to a flavor. Fields that are left out keep their values."""

    models: Annotated[list[Annotated[Label, Field(min_length=1)]], Field(max_length=32)] = Field(
        default_factory=list, description="Accepted GPU models; none means any."
    )
    labels: Annotated[dict[Label, Label], Field(max_length=64)] = Field(
        default_factory=dict, description="Labels that a node must have."
    )
    cpus_per_gpu: Cpus = Field(default=0, description="CPUs per GPU of jobs that ask for no number of CPUs; 0: none.")
    memory_bytes_per_gpu: Size = Field(default=0, description="Memory per GPU of jobs that ask for no memory; 0: none.")
    default_gpus: int = Field(default=0, ge=0, le=1_000_000, description="GPUs of jobs that ask for none.")
    description: Description = ""


class FlavorCreate(FlavorEdit):
    name: Label


class FlavorView(View):
    name: str
    models: list[str]
    labels: dict[str, str]
    cpus_per_gpu: Number
    memory_bytes_per_gpu: int
    default_gpus: int
    description: str
    gpus_total: int = Field(description="GPUs of this kind in the whole installation, in use or not.")
    packages: list[str]
    created_at: str


class PackageEdit(Body):
    """Changes to a package. Fields that are left out keep their values."""

    gpus: Gpus = Field(default=0, description="Per node: 0, a share below 1, or whole GPUs.")
    cpus: Cpus = 0
    memory_bytes: Size = 0
    flavor: Label | None = Field(default=None, description="Null: any hardware.")
    rdma: bool = Field(default=False, description="Use only nodes with the label rdma=true.")
    kinds: Kinds = Field(
        default_factory=list, description="Job kinds that the package is offered to; none means every kind."
    )
    description: Description = ""


class PackageCreate(PackageEdit):
    name: Label


class PackageView(View):
    name: str
    gpus: Number
    cpus: Number
    memory_bytes: int
    flavor: str | None
    models: list[str] = Field(description="GPU models of its flavor.")
    rdma: bool
    kinds: list[JobKind]
    description: str
    created_at: str
    available: bool | None = Field(
        default=None, description="This field and the following ones are set only if a kind is given."
    )
    queue: str | None = Field(default=None, description="Queue in which the caller's job would wait.")
    free_count: int | None = Field(default=None, description="Number of jobs of this size that would start now.")
    queued: int | None = Field(
        default=None, description="Number of jobs that wait in that queue for the same GPU model."
    )
    expected_wait_seconds: Number | None = Field(
        default=None, description="Estimated start of the next job; null if unknown."
    )


class NamesDelete(Body):
    """Names of the objects to delete: all of them or none."""

    names: Names


class DeletedView(View):
    deleted: list[str]


def flavor_changes(body: FlavorEdit) -> dict[str, Any]:
    changes = body.model_dump(exclude_unset=True)
    if "models" in changes:
        changes["models"] = tuple(changes["models"])
    if "labels" in changes:
        changes["labels"] = tuple(sorted(changes["labels"].items()))
    if "cpus_per_gpu" in changes:
        changes["cpu_milli_per_gpu"] = parse_cpus(changes.pop("cpus_per_gpu"))
    return changes


def package_changes(body: PackageEdit) -> dict[str, Any]:
    changes = body.model_dump(exclude_unset=True)
    if "gpus" in changes:
        changes["gpus"], changes["gpu_milli"] = parse_gpus(changes["gpus"])
    if "cpus" in changes:
        changes["cpu_milli"] = parse_cpus(changes.pop("cpus"))
    if "kinds" in changes:
        changes["kinds"] = tuple(kind for kind in JobKind if kind.value in changes["kinds"])
    return changes


def flavor_view(flavor: FlavorRecord, catalog: Catalog, kinds: Mapping[tuple[Labels, str], int]) -> FlavorView:
    return FlavorView(
        name=flavor.name,
        models=list(flavor.models),
        labels=dict(flavor.labels),
        cpus_per_gpu=number(flavor.cpu_milli_per_gpu / WHOLE),
        memory_bytes_per_gpu=flavor.memory_bytes_per_gpu,
        default_gpus=flavor.default_gpus,
        description=flavor.description,
        gpus_total=matching_gpus(flavor, kinds),
        packages=catalog.packages_of(flavor.name),
        created_at=rfc3339(flavor.created_at),
    )


def package_view(package: PackageRecord, catalog: Catalog, offer: Offer | None = None) -> PackageView:
    wait = offer.expected_wait_seconds if offer is not None else None
    return PackageView(
        name=package.name,
        gpus=number(package.gpus + package.gpu_milli / WHOLE),
        cpus=number(package.cpu_milli / WHOLE),
        memory_bytes=package.memory_bytes,
        flavor=package.flavor,
        models=list(catalog.flavors[package.flavor].models) if package.flavor is not None else [],
        rdma=package.rdma,
        kinds=list(package.kinds),
        description=package.description,
        created_at=rfc3339(package.created_at),
        available=None if offer is None else True,
        queue=None if offer is None else offer.queue,
        free_count=None if offer is None else offer.free_count,
        queued=None if offer is None else offer.queued,
        expected_wait_seconds=None if wait is None else number(wait),
    )
