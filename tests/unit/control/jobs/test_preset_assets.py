"""Models and data sets for presets: who registers what, and what a preset's command gets of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.datasets import datasets
from corral.control.errors import Forbidden, Invalid, NotFound, Taken
from corral.control.jobs import preset_assets
from corral.control.jobs.presets import Parameter, ParameterType, Preset, problems_of, render
from corral.control.ports import AttemptPhase, Store
from corral.control.records import DEFAULT_TARGET, AssetKind, JobSpec, OperationKind, PresetAssetRecord
from corral.core.model import EndReason, JobState
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

FORMATS = ("image-folder", "csv")
FLOWERS = PresetAssetRecord(
    kind=AssetKind.DATASET,
    name="flowers",
    format="image-folder",
    source="/mirror",
    path="flowers",
    classes=("rose", "tulip"),
)
RESNET = PresetAssetRecord(
    kind=AssetKind.MODEL, name="resnet", format="torchvision:resnet18", source="/mirror", path="resnet18.pth"
)
PRESET = Preset(
    name="train",
    parameters=(
        Parameter(name="data", type=ParameterType.DATASET),
        Parameter(name="weights", type=ParameterType.MODEL, default=""),
    ),
    command=("train", "{data}", "{data.format}", "{data.classes}", "{weights}", "{weights.format}"),
)


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def added(desk: Desk, asset: PresetAssetRecord, *, again: bool = False) -> None:
    desk.do(preset_assets.add, ROOT, asset, formats=FORMATS, replace=again)


def listed(desk: Desk) -> list[PresetAssetRecord]:
    with desk.store.read() as tx:
        return tx.images.preset_assets()


def test_operators_register_replace_and_remove(desk: Desk) -> None:
    added(desk, FLOWERS)
    added(desk, RESNET)
    assert listed(desk) == [FLOWERS, RESNET]
    with pytest.raises(Taken):
        added(desk, FLOWERS)
    added(desk, replace(FLOWERS, classes=("rose",)), again=True)
    assert listed(desk)[0].classes == ("rose",)
    with pytest.raises(Forbidden):
        desk.do(preset_assets.add, ANN, RESNET, formats=FORMATS, replace=True)
    with pytest.raises(Forbidden):
        desk.do(preset_assets.remove, ANN, AssetKind.MODEL, "resnet")
    desk.do(preset_assets.remove, ROOT, AssetKind.MODEL, "resnet")
    with pytest.raises(NotFound):
        desk.do(preset_assets.remove, ROOT, AssetKind.MODEL, "resnet")
    assert [asset.name for asset in listed(desk)] == ["flowers"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (replace(FLOWERS, name="a/b"), "name"),
        (replace(FLOWERS, format="parquet"), "format"),
        (replace(RESNET, format="a b"), "format"),
        (replace(FLOWERS, path="../etc"), "path"),
        (replace(FLOWERS, path="/etc"), "path"),
        (replace(FLOWERS, classes=("rose", "rose")), "classes"),
    ],
)
def test_errors_name_the_wrong_field(desk: Desk, wrong: PresetAssetRecord, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        added(desk, wrong)
    assert refused.value.field == field
    assert listed(desk) == []


def test_a_volume_that_does_not_exist_is_refused(desk: Desk) -> None:
    with pytest.raises((Invalid, NotFound), match="nothing"):
        added(desk, replace(FLOWERS, source="nothing"))


def test_places_of_a_parameter_are_filled_from_the_asset() -> None:
    assert [*problems_of(PRESET)] == []
    rendered = render(PRESET, {"data": "flowers"}, [FLOWERS, RESNET])
    assert rendered.command == ("train", "/mirror/flowers", "image-folder", "rose,tulip", "", "")
    assert preset_assets.mounts_of(rendered.assets) == []
    rendered = render(PRESET, {"data": "flowers", "weights": "resnet"}, [FLOWERS, RESNET])
    assert rendered.command[4:] == ("/mirror/resnet18.pth", "torchvision:resnet18")
    assert rendered.parameters == {"data": "flowers", "weights": "resnet"}


def test_assets_in_volumes_and_versions_of_datasets_are_mounted() -> None:
    in_volume = replace(FLOWERS, source="public")
    rendered = render(PRESET, {"data": "flowers", "weights": "dataset:ann/net@v1"}, [in_volume])
    assert rendered.command[1] == "/mnt/corral/datasets/flowers/flowers"
    assert rendered.command[4] == "/mnt/corral/models/net"
    assert preset_assets.mounts_of(rendered.assets) == [
        ("public", "/mnt/corral/datasets/flowers"),
        ("dataset:ann/net@v1", "/mnt/corral/models/net"),
    ]


@pytest.mark.parametrize(("given", "words"), [
    ({"data": "trees"}, "must be a registered dataset, got 'trees'; there are: flowers"),
    ({"data": ""}, "must be a registered dataset"),
    ({"data": "flowers", "weights": "vgg"}, "must be a registered model, got 'vgg'; there are: none"),
])  # fmt: skip
def test_names_that_are_not_registered_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        render(PRESET, given, [FLOWERS])


# ------------------------------------------------------------------------------------------------ outputs


def test_a_completed_job_commits_its_outputs_and_a_failed_one_does_not(desk: Desk) -> None:
    desk.do(datasets.create, ANN, name="weights", target=DEFAULT_TARGET, description="")

    def run(name: str, code: int) -> None:
        spec = JobSpec(command=("train",), commit_outputs="weights=best")
        (job,) = desk.started(replace(draft(name, gpus=1), spec=spec))
        desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=code)
        assert desk.job(job.id).state is (JobState.FAILED if code else JobState.COMPLETED)

    run("fails", 1)
    with desk.store.read() as tx:
        assert tx.datasets.unfinished_operations() == []
    run("completes", 0)
    with desk.store.read() as tx:
        (operation,) = tx.datasets.unfinished_operations()
    assert (operation.kind, operation.created_by) == (OperationKind.COMMIT, "ann")
    assert operation.order["source"]["path"] == "best"
    assert operation.order["job"] == operation.order["source"]["job"]


@pytest.mark.parametrize("text", ["nothing", "=best", "weights=/etc", "weights=../x"])
def test_a_commit_that_cannot_be_made_is_refused_at_submission(desk: Desk, text: str) -> None:
    desk.do(datasets.create, ANN, name="weights", target=DEFAULT_TARGET, description="")
    spec = JobSpec(command=("train",), commit_outputs=text)
    with pytest.raises(Invalid):
        desk.submit(replace(draft("train", gpus=1), spec=spec))
    with pytest.raises(Invalid, match="there is no dataset"):
        desk.submit(replace(draft("other", gpus=1), spec=replace(spec, commit_outputs="weights")), caller=BOB)
