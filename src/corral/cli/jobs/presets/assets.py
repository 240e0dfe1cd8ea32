"""`corral preset add-model`, `add-dataset`, `assets` and `rm-asset`: models and data sets that presets train with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.jobs.presets.presets import app
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.core.os_errors import unreadable

if TYPE_CHECKING:
    from corral.client.views import PresetAssetView

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As users pick it.")]
VolumeOption = Annotated[
    str | None, typer.Option("--volume", metavar="VOLUME", help="It is in this volume, or this bucket's volume.")
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME@VERSION", help="It is a version of this dataset.")
]
DirectoryOption = Annotated[
    str | None, typer.Option("--directory", metavar="DIR", help="It is in a directory that every node has: a mirror.")
]
PathOption = Annotated[str, typer.Option("--path", metavar="PATH", help="Its file or directory within that.")]
DescriptionOption = Annotated[str, typer.Option("--description", metavar="TEXT", help="Shown where users pick it.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace one of the same name.")]


@command(
    app,
    "add-model",
    examples=[
        "corral preset add-model resnet18 --directory /mirror/torchvision --path resnet18.pth "
        "--architecture torchvision:resnet18",
        "corral preset add-model shapes --dataset weights@best",
    ],
)
def add_model(
    terminal: Terminal,
    name: NameArgument,
    *,
    volume: VolumeOption = None,
    dataset: DatasetOption = None,
    directory: DirectoryOption = None,
    path: PathOption = "",
    architecture: Annotated[
        str, typer.Option(metavar="NAME", help="Such as torchvision:resnet18; default: of the model.json beside it.")
    ] = "",
    description: DescriptionOption = "",
    replace: ReplaceOption = False,
) -> None:
    """Register pretrained weights, which every user can then pick (operators)."""
    source = _source(volume, dataset, directory)
    body = {"source": source, "path": path, "format": architecture, "description": description, "replace": replace}
    with terminal.client() as client:
        view = client.presets.add_asset("model", name, body)
    terminal.answer(view, f"Registered model {name}. Use it: corral preset run classifier -p model={name} …")


@command(
    app,
    "add-dataset",
    examples=[
        "corral preset add-dataset flowers --directory /mirror/flowers --format image-folder",
        "corral preset add-dataset reviews --volume public --path reviews --format csv --classes good,bad",
    ],
)
def add_dataset(
    terminal: Terminal,
    name: NameArgument,
    *,
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="image-folder, coco, csv or text.")],
    volume: VolumeOption = None,
    dataset: DatasetOption = None,
    directory: DirectoryOption = None,
    path: PathOption = "",
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Default: read from a directory that the server sees.")
    ] = None,
    classes_file: Annotated[
        Path | None, typer.Option("--classes-file", metavar="FILE", help="A file with a class in each line.")
    ] = None,
    description: DescriptionOption = "",
    replace: ReplaceOption = False,
) -> None:
    """Register a data set, which every user can then pick (operators)."""
    source = _source(volume, dataset, directory)
    body = {"source": source, "path": path, "format": format, "description": description, "replace": replace}
    given = _classes(classes, classes_file)
    if given is not None:
        body["classes"] = given
    with terminal.client() as client:
        view = client.presets.add_asset("dataset", name, body)
    found = formats.count(len(view["classes"]), "class", "classes") if view["classes"] else "classes not known yet"
    terminal.answer(view, f"Registered data set {name} ({found}). Use it: corral preset run … -p dataset={name}")


@command(app, "assets", examples=["corral preset assets", "corral preset assets -o json"])
def assets(terminal: Terminal) -> None:
    """List the registered models and data sets."""
    with terminal.client() as client:
        found = list(client.presets.assets())
    titles = ("KIND", "NAME", "FORMAT", "FROM~", "CLASSES~", "DESCRIPTION~")
    terminal.table(titles, found, _row, empty="No model and no data set is registered.")


@command(
    app, "rm-asset", examples=["corral preset rm-asset dataset flowers", "corral preset rm-asset model resnet18 -y"]
)
def rm_asset(
    terminal: Terminal,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="model or dataset.")],
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="One or more names.")],
    yes: YesOption = False,
) -> None:
    """Remove models or data sets from the list (operators). Their files stay."""
    if kind not in ("model", "dataset"):
        raise WrongUsage(f"the kind is model or dataset, not {kind!r}")
    terminal.confirm(f"Remove {kind} {formats.listed(names)} from the list?", assume_yes=yes)
    with terminal.client() as client:
        for name in names:
            client.presets.remove_asset(kind, name)
    terminal.answer({"deleted": names}, f"Removed {formats.listed(names)}")


def _source(volume: str | None, dataset: str | None, directory: str | None) -> str:
    given = [volume, dataset and f"dataset:{dataset}", directory]
    named = [source for source in given if source]
    if len(named) != 1:
        raise WrongUsage("give one of --volume, --dataset and --directory")
    if directory and not directory.startswith("/"):
        raise WrongUsage(f"--directory is an absolute path of the nodes, not {directory!r}")
    return named[0]


def _classes(listed: str | None, file: Path | None) -> list[str] | None:
    if listed is not None and file is not None:
        raise WrongUsage("give --classes or --classes-file, not both")
    if file is None:
        return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read {file}: {unreadable(error)}") from error
    return [line.strip() for line in lines if line.strip()]


def _row(view: PresetAssetView) -> Sequence[str]:
    place = "/".join(part for part in (view["source"].rstrip("/"), view["path"]) if part)
    return (
        view["kind"],
        view["name"],
        view["format"] or formats.NOTHING,
        place,
        formats.listed(view["classes"]) if view["classes"] else formats.NOTHING,
        view["description"],
    )
