"""Records of pools, flavors, packages, images and presets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import JobKind


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolRecord:
    """A named set of GPUs of one model. Which GPUs it has is kept with the GPUs."""

    name: str
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FlavorRecord:
    """A named kind of hardware."""

    name: str
    #: GPU models that will do; empty means any, or work without GPUs
    models: tuple[str, ...] = ()
    #: labels that a node must have, sorted
    labels: tuple[tuple[str, str], ...] = ()
    #: CPUs and memory that a job gets for each GPU, unless it asks for an amount itself; 0 means none
    cpu_milli_per_gpu: int = 0
    memory_bytes_per_gpu: int = 0
    #: GPUs of a job that asks for none
    default_gpus: int = 0
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageRecord:
    """A size that a user picks, for every node of the job."""

    name: str
    gpus: int = 0
    gpu_milli: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    flavor: str | None = None
    #: only nodes with the label rdma=true
    rdma: bool = False
    #: the kinds it is offered to; empty means every kind
    kinds: tuple[JobKind, ...] = ()
    description: str = ""
    created_at: float = 0.0


class Visibility(StrEnum):
    PRIVATE = "private"
    #: seen by the users and groups that it is shared with
    SHARED = "shared"
    PUBLIC = "public"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageRecord:
    """A container image for jobs, by name."""

    name: str
    address: str
    #: the image's owner; "" for a public one that operators keep
    owner: str = ""
    visibility: Visibility = Visibility.PRIVATE
    shared_users: tuple[str, ...] = ()
    shared_groups: tuple[str, ...] = ()
    #: the login that it is pulled with
    credential: str | None = None
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryCredentialRecord:
    name: str
    owner: str
    registry: str
    username: str
    #: encrypted; never shown
    secret: str
    created_at: float = 0.0


class AssetKind(StrEnum):
    """The kinds of models and data that operators register for the trainings of presets."""

    MODEL = "model"
    DATASET = "dataset"


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetAssetRecord:
    """A pretrained model or a data set that every user can pick for a preset."""

    kind: AssetKind
    name: str
    #: for a data set one of `corral.presets.formats.FORMATS`; for a model its architecture, "" if a file there has it
    format: str
    #: where it is: a directory on the nodes (a mirror), or the source of a mount: a volume, a bucket or a dataset
    source: str
    #: within the source
    path: str = ""
    #: classes of a data set; for a model the classes that it was trained for
    classes: tuple[str, ...] = ()
    description: str = ""
    created_at: float = 0.0
    created_by: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetRecord:
    """A template that an operator has added; those that come with corral are files."""

    name: str
    #: as it was given, checked
    yaml: str
    created_at: float = 0.0
    created_by: str = ""
