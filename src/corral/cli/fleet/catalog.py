"""`corral flavor` and `corral package`: kinds of hardware and sizes of jobs to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.scheduling.queues import NO_LIMIT
from corral.cli.terminal import formats
from corral.cli.terminal.arguments import amount, pairs
from corral.cli.terminal.changes import check_changes, given_fields
from corral.cli.terminal.hints import none_yet
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import FlavorView, PackageView

flavor_app = typer.Typer(help="Kinds of hardware; managed by operators.", no_args_is_help=True)
package_app = typer.Typer(help="Sizes of jobs to choose from; managed by operators.", no_args_is_help=True)

FlavorArgument = Annotated[str, typer.Argument(metavar="FLAVOR", help="A flavor's name.")]
PackageArgument = Annotated[str, typer.Argument(metavar="PACKAGE", help="A package's name.")]
Models = Annotated[list[str] | None, typer.Option("--model", metavar="MODEL", help="A GPU model; repeatable.")]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="K=V", help="A node label; repeatable.")]
Description = Annotated[str | None, typer.Option(help="A short description.")]
Gpus = Annotated[float | None, typer.Option(metavar="N", help="GPUs; a fraction is a share of one.")]
Cpus = Annotated[float | None, typer.Option(metavar="N", help="CPUs.")]
Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="Memory, such as 64GiB.")]
Flavor = Annotated[str | None, typer.Option(help="The hardware of the package; none: any.")]
Rdma = Annotated[bool | None, typer.Option("--rdma/--no-rdma", help="Only nodes with the label rdma=true.")]
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="A job kind that may use it; repeatable.")
]


CpusPerGpu = Annotated[
    float | None, typer.Option(min=0, metavar="N", help="CPUs per GPU of jobs that ask for no CPUs; 0 for none.")
]
MemoryPerGpu = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory per GPU of jobs that ask for no memory, such as 64GiB.")
]
DefaultGpus = Annotated[int | None, typer.Option(min=0, metavar="N", help="GPUs of jobs that ask for none.")]


@command(flavor_app, "ls", examples=["corral flavor ls"])
def list_flavors(terminal: Terminal) -> None:
    """List the flavors."""
    with terminal.client() as client:
        found = list(client.catalog.flavors())
        empty = none_yet(client, found, "flavors", "corral flavor create NAME --model A100-80G")
    terminal.table(
        ("NAME", "MODELS", "LABELS~", "PER GPU", "GPUS>", "PACKAGES~", "DESCRIPTION~?"),
        found,
        lambda view: (
            view["name"],
            formats.listed(view["models"]) if view["models"] else "any",
            formats.listed([f"{key}={value}" for key, value in view["labels"].items()]),
            _per_gpu_text(view),
            str(view["gpus_total"]),
            formats.listed(view["packages"]),
            view["description"],
        ),
        empty=empty,
    )


@command(
    flavor_app,
    "create",
    examples=[
        "corral flavor create a100 --model A100-80G",
        "corral flavor create quick --label disk=nvme",
        "corral flavor create a100-balanced --model A100-80G --cpus-per-gpu 8 --memory-per-gpu 64GiB --default-gpus 1",
    ],
)
def create_flavor(
    terminal: Terminal,
    name: FlavorArgument,
    model: Models = None,
    label: Labels = None,
    cpus_per_gpu: CpusPerGpu = None,
    memory_per_gpu: MemoryPerGpu = None,
    default_gpus: DefaultGpus = None,
    description: Description = None,
) -> None:
    """Create a flavor (operators)."""
    changes = _flavor_changes(model, label, description) | _per_gpu(cpus_per_gpu, memory_per_gpu, default_gpus)
    with terminal.client() as client:
        view = client.catalog.create_flavor({"name": name, **changes})
    terminal.answer(view, f"Created flavor {view['name']}: {formats.count(view['gpus_total'], 'GPU')} of it.")


@command(flavor_app, "edit", examples=["corral flavor edit a100 --model A100-80G --model A100-40G"])
def edit_flavor(
    terminal: Terminal,
    name: FlavorArgument,
    model: Models = None,
    label: Labels = None,
    cpus_per_gpu: CpusPerGpu = None,
    memory_per_gpu: MemoryPerGpu = None,
    default_gpus: DefaultGpus = None,
    description: Description = None,
) -> None:
    """Change a flavor (operators), for later jobs only. The word none removes models or labels."""
    changes = _flavor_changes(model, label, description) | _per_gpu(cpus_per_gpu, memory_per_gpu, default_gpus)
    check_changes(changes, "flavor edit")
    with terminal.client() as client:
        view = client.catalog.edit_flavor(name, changes)
    terminal.answer(view, f"Changed flavor {view['name']}: {', '.join(sorted(changes))}")


@command(flavor_app, "rm", examples=["corral flavor rm a100", "corral flavor rm old older"])
def rm_flavors(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="FLAVOR", help="All of them or none are deleted.")],
    yes: YesOption = False,
) -> None:
    """Delete flavors that no package uses (operators)."""
    terminal.confirm(f"Delete {formats.count(len(names), 'flavor')}: {formats.listed(names)}?", assume_yes=yes)
    with terminal.client() as client:
        client.catalog.delete_flavors(names)
    terminal.answer({"deleted": names}, f"Deleted {formats.listed(names)}")


@command(
    package_app, "ls", examples=["corral package ls", "corral package ls --kind training", "corral package ls -o json"]
)
def list_packages(
    terminal: Terminal,
    kind: Annotated[
        str | None, typer.Option(help="Only packages that you could use now for a job of this kind.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="With --kind distributed: on N nodes.")] = None,
) -> None:
    """List the packages; with --kind those that you could use now, how many are free, and the expected wait."""
    with terminal.client() as client:
        found = list(client.catalog.packages(kind=kind, nodes=nodes))
        empty = none_yet(client, found, "packages", "corral package create NAME --gpus 1")
    size = ("NAME", "GPUS>", "CPUS>", "MEMORY>", "FLAVOR")
    if kind is None:
        terminal.table(
            (*size, "RDMA?", "KINDS", "DESCRIPTION~?"),
            found,
            lambda view: (*_size(view), "yes" if view["rdma"] else "no", _kinds(view), view["description"]),
            empty=empty,
        )
        return
    terminal.table(
        (*size, "QUEUE?", "FREE>", "WAITING>", "EXPECTED WAIT>"),
        found,
        lambda view: (
            *_size(view),
            view["queue"] or formats.NOTHING,
            str(view["free_count"]),
            str(view["queued"]),
            "unknown" if view["expected_wait_seconds"] is None else formats.duration(view["expected_wait_seconds"]),
        ),
        empty=f"There is no package that you could use now for a {kind} job. See your quota: corral quota show",
    )


@command(
    package_app,
    "create",
    examples=[
        "corral package create a100-x1 --gpus 1 --cpus 12 --memory 120GiB --flavor a100 --kind training",
        "corral package create notebook --gpus 0.5 --cpus 4 --memory 16GiB --kind workbench",
    ],
)
def create_package(
    terminal: Terminal,
    name: PackageArgument,
    gpus: Gpus = None,
    cpus: Cpus = None,
    memory: Memory = None,
    flavor: Flavor = None,
    rdma: Rdma = None,
    kind: Kinds = None,
    description: Description = None,
) -> None:
    """Create a package (operators)."""
    changes = _package_changes(gpus, cpus, memory, flavor, rdma, kind, description)
    with terminal.client() as client:
        view = client.catalog.create_package({"name": name, **changes})
    terminal.answer(view, f"Created package {view['name']}. Use it: corral submit --package {view['name']} …")


@command(
    package_app, "edit", examples=["corral package edit a100-x1 --memory 200GiB", "corral package edit x --kind none"]
)
def edit_package(
    terminal: Terminal,
    name: PackageArgument,
    gpus: Gpus = None,
    cpus: Cpus = None,
    memory: Memory = None,
    flavor: Flavor = None,
    rdma: Rdma = None,
    kind: Kinds = None,
    description: Description = None,
) -> None:
    """Change a package (operators), for later jobs only. The word none removes flavor or kinds."""
    changes = _package_changes(gpus, cpus, memory, flavor, rdma, kind, description)
    check_changes(changes, "package edit")
    with terminal.client() as client:
        view = client.catalog.edit_package(name, changes)
    terminal.answer(view, f"Changed package {view['name']}: {', '.join(sorted(changes))}")


@command(package_app, "rm", examples=["corral package rm a100-x1", "corral package rm old older"])
def rm_packages(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="PACKAGE", help="All of them or none are deleted.")],
    yes: YesOption = False,
) -> None:
    """Delete packages (operators). Jobs that were submitted with them are not changed."""
    terminal.confirm(f"Delete {formats.count(len(names), 'package')}: {formats.listed(names)}?", assume_yes=yes)
    with terminal.client() as client:
        client.catalog.delete_packages(names)
    terminal.answer({"deleted": names}, f"Deleted {formats.listed(names)}")


def _size(view: PackageView) -> Sequence[str]:
    return (
        view["name"],
        formats.number(view["gpus"]),
        formats.number(view["cpus"]) if view["cpus"] else "any",
        formats.size(view["memory_bytes"]) if view["memory_bytes"] else "any",
        view["flavor"] or "any",
    )


def _kinds(view: PackageView) -> str:
    return formats.listed(view["kinds"]) if view["kinds"] else "all"


def _per_gpu_text(view: FlavorView) -> str:
    cpus = formats.count(view["cpus_per_gpu"], "CPU") if view["cpus_per_gpu"] else ""
    memory = formats.size(view["memory_bytes_per_gpu"]) if view["memory_bytes_per_gpu"] else ""
    return formats.listed([part for part in (cpus, memory) if part])


def _per_gpu(cpus: float | None, memory: str | None, gpus: int | None) -> dict[str, Any]:
    given = {"cpus_per_gpu": cpus, "memory_bytes_per_gpu": memory, "default_gpus": gpus}
    return given_fields(given)


def _flavor_changes(
    models: Sequence[str] | None, labels: Sequence[str] | None, description: str | None
) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if models:
        changes["models"] = [] if list(models) == [NO_LIMIT] else list(models)
    if labels:
        changes["labels"] = {} if list(labels) == [NO_LIMIT] else pairs("--label", labels)
    if description is not None:
        changes["description"] = description
    return changes


def _package_changes(
    gpus: float | None,
    cpus: float | None,
    memory: str | None,
    flavor: str | None,
    rdma: bool | None,
    kinds: Sequence[str] | None,
    description: str | None,
) -> dict[str, Any]:
    plain = {
        "gpus": None if gpus is None else amount("--gpus", gpus),
        "cpus": None if cpus is None else amount("--cpus", cpus),
        "memory_bytes": memory,
        "flavor": flavor,
        "rdma": rdma,
        "description": description,
    }
    changes: dict[str, Any] = given_fields(plain)
    if changes.get("flavor") == NO_LIMIT:
        changes["flavor"] = None
    if kinds:
        changes["kinds"] = [] if list(kinds) == [NO_LIMIT] else list(kinds)
    return changes
