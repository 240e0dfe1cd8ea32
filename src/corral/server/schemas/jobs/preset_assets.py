"""API schemas: models and data sets for presets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.records import AssetKind, PresetAssetRecord
from corral.server.schemas.base import Body, Note, Text, View, rfc3339

ClassName = Annotated[Text, Field(min_length=1, max_length=200)]


class PresetAssetCreate(Body):
    kind: Literal["model", "dataset"]
    name: Annotated[Text, Field(min_length=1, max_length=63)]
    source: Annotated[Text, Field(min_length=1, max_length=400)] = Field(
        description="An absolute path of a directory on the nodes (a mirror), or a volume, owner/volume, a bucket's "
        "volume, or dataset:NAME@VERSION, which jobs mount read-only."
    )
    path: Annotated[Text, Field(max_length=255)] = Field(default="", description="Within the source.")
    format: Annotated[Text, Field(max_length=100)] = Field(
        default="",
        description="For a data set: image-folder, coco, csv or text. For a model: its architecture, such as "
        "torchvision:resnet18; empty if model.json beside the weights has it.",
    )
    classes: Annotated[list[ClassName], Field(max_length=10_000)] | None = Field(
        default=None, description="Null: read from a data set in a directory that the server sees."
    )
    description: Note = ""
    replace: bool = Field(default=False, description="Replace one of the same kind and name.")


class PresetAssetView(View):
    kind: AssetKind
    name: str
    source: str
    path: str
    format: str
    classes: list[str]
    description: str
    created_by: str
    created_at: str


def preset_asset_view(asset: PresetAssetRecord) -> PresetAssetView:
    return PresetAssetView(
        kind=asset.kind,
        name=asset.name,
        source=asset.source,
        path=asset.path,
        format=asset.format,
        classes=list(asset.classes),
        description=asset.description,
        created_by=asset.created_by,
        created_at=rfc3339(asset.created_at),
    )
