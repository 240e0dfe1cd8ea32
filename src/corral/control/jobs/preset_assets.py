"""Pretrained models and data sets for presets: registered once by an operator, picked by every user.

An asset is a directory on the nodes (a mirror), or part of a volume, a bucket or a dataset, which the job then mounts
read-only. A preset's parameter of type `model` or `dataset` takes the name of one; a model can also be a version of a
dataset, to which an earlier training has committed its best weights.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from corral.control.errors import Invalid, NotFound, Taken
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.records import AssetKind, PresetAssetRecord
from corral.control.storage.mount_text import mount_request
from corral.control.storage.mounts import resolved
from corral.core.names import SETTING_NAME

#: Where jobs see mounted assets.
MOUNTED_AT = "/mnt/corral"
ARCHITECTURE = re.compile(r"[A-Za-z0-9_.:-]{0,100}")
MAX_CLASSES = 10_000
_DATASET = "dataset:"


@dataclass(frozen=True, kw_only=True, slots=True)
class PickedAsset:
    """An asset as the command of a preset sees it."""

    name: str
    path: str
    format: str
    classes: tuple[str, ...] = ()
    #: SOURCE and PATH of the mount that the job needs; None for a directory on the nodes
    mount: tuple[str, str] | None = None

    def places(self, parameter: str) -> dict[str, str]:
        """The texts that fill the places of a parameter: {p}, {p.name}, {p.format}, {p.classes}."""
        more = {"name": self.name, "format": self.format, "classes": ",".join(self.classes)}
        return {parameter: self.path, **{f"{parameter}.{key}": value for key, value in more.items()}}


#: Beside {p} itself.
PLACES = ("name", "format", "classes")


def add(work: Work, caller: Caller, asset: PresetAssetRecord, *, formats: Collection[str], replace: bool) -> None:
    """Register a model or a data set. Trainings that use an earlier one of this name are not touched."""
    require_operator(caller, "register models and data sets for presets")
    _check(work, caller, asset, formats)
    there = find(work.tx.images.preset_assets(), asset.kind, asset.name)
    if there is not None and not replace:
        raise Taken(f"there is a {asset.kind} {asset.name!r} already", field="name", name=asset.name)
    work.tx.images.save_preset_asset(asset)
    work.record(caller, f"preset.{asset.kind}-registered", asset.name, detail={"source": asset.source})


def remove(work: Work, caller: Caller, kind: AssetKind, name: str) -> None:
    """The files stay where they are."""
    require_operator(caller, "register models and data sets for presets")
    if find(work.tx.images.preset_assets(), kind, name) is None:
        raise NotFound(f"there is no {kind} {name!r}", field="name")
    work.tx.images.delete_preset_asset(kind, name)
    work.record(caller, f"preset.{kind}-removed", name)


def find(assets: Sequence[PresetAssetRecord], kind: AssetKind, name: str) -> PresetAssetRecord | None:
    return next((asset for asset in assets if (asset.kind, asset.name) == (kind, name)), None)


def pick(assets: Sequence[PresetAssetRecord], kind: AssetKind, given: str) -> PickedAsset:
    """The asset that a value names. Raises ValueError with what would have been right."""
    if not given:
        return PickedAsset(name="", path="", format="")
    if kind is AssetKind.MODEL and given.startswith(_DATASET):
        name = given.removeprefix(_DATASET).partition("@")[0].rpartition("/")[2]
        path = f"{MOUNTED_AT}/models/{name}"
        return PickedAsset(name=given, path=path, format="", mount=(given, path))
    asset = find(assets, kind, given)
    if asset is None:
        there = ", ".join(asset.name for asset in assets if asset.kind is kind) or "none"
        raise ValueError(f"must be a registered {kind}, got {given!r}; there are: {there}")
    mount = None if asset.source.startswith("/") else (asset.source, f"{MOUNTED_AT}/{kind}s/{asset.name}")
    root = asset.source if mount is None else mount[1]
    return PickedAsset(
        name=asset.name,
        path=str(PurePosixPath(root, asset.path)),
        format=asset.format,
        classes=asset.classes,
        mount=mount,
    )


def mounts_of(picked: Mapping[str, PickedAsset]) -> list[tuple[str, str]]:
    """The mounts that a job needs for its assets, each once."""
    return list(dict.fromkeys(asset.mount for asset in picked.values() if asset.mount is not None))


def _check(work: Work, caller: Caller, asset: PresetAssetRecord, formats: Collection[str]) -> None:
    if SETTING_NAME.fullmatch(asset.name) is None:
        raise Invalid(f"the name {asset.name!r} is not allowed: up to 63 letters, digits, - and _", field="name")
    if asset.kind is AssetKind.DATASET and asset.format not in formats:
        raise Invalid(f"a data set has one of the formats {', '.join(formats)}, not {asset.format!r}", field="format")
    if asset.kind is AssetKind.MODEL and ARCHITECTURE.fullmatch(asset.format) is None:
        raise Invalid(f"{asset.format!r} is not an architecture, such as torchvision:resnet18", field="format")
    path = PurePosixPath(asset.path)
    if path.is_absolute() or ".." in path.parts:
        raise Invalid("the path is relative to the source, and stays in it", field="path")
    if len(set(asset.classes)) != len(asset.classes) or len(asset.classes) > MAX_CLASSES:
        raise Invalid(f"classes are at most {MAX_CLASSES}, and each is named once", field="classes")
    if not asset.source.startswith("/"):
        # Refused while the volume, bucket or dataset does not exist.
        resolved(work.tx, caller, [mount_request(asset.source, f"{MOUNTED_AT}/{asset.name}", mode="ro")])
