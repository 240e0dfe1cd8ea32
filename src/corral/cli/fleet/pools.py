"""`corral pool`: pools of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import delete_each
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.hints import none_yet
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import GpuView, PoolView

app = typer.Typer(help="List pools of GPUs; manage them (operators).", no_args_is_help=True)

PoolArgument = Annotated[str, typer.Argument(metavar="POOL", help="A pool's name.")]
GpuOption = Annotated[
    list[str] | None, typer.Option("--gpu", metavar="GPU", help="A GPU's id (see corral gpus); repeatable.")
]
NodeOption = Annotated[
    list[str] | None, typer.Option("--node", metavar="NODE", help="All GPUs of this node; repeatable.")
]
DescriptionOption = Annotated[str | None, typer.Option(help="What the pool is for.")]


@command(app, "ls", examples=["corral pool ls", "corral pool ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the pools with their free GPUs."""
    with terminal.client() as client:
        found = list(client.pools.list())
        empty = none_yet(client, found, "pools", "corral pool create NAME --gpu ID")
    terminal.table(
        ("NAME", "MODEL", "GPUS>", "FREE>", "GROUP", "RUNNING>", "WAITING>", "QUEUES~", "DESCRIPTION~?"),
        found,
        lambda view: (
            view["name"],
            _model(view),
            str(view["gpus_total"]),
            str(view["gpus_free"]),
            view["group"] or formats.NOTHING,
            str(view["running"]),
            str(view["queued"]),
            formats.listed(view["queues"]),
            view["description"],
        ),
        empty=empty,
    )


def _model(view: PoolView) -> str:
    return view["model"] or ("mixed" if view["gpus_total"] else formats.NOTHING)


@command(app, "show", examples=["corral pool show big", "corral pool show default -o json"])
def show(terminal: Terminal, name: PoolArgument) -> None:
    """Show one pool with its GPUs and their jobs."""
    with terminal.client() as client:
        view = client.pools.get(name)
    terminal.facts(
        view,
        [
            ("Name", view["name"]),
            ("Description", view["description"]),
            ("Model", _model(view)),
            ("GPUs", f"{view['gpus_total']}, {view['gpus_free']} free"),
            ("Group", view["group"] or "none"),
            ("Queues", formats.listed(view["queues"])),
            ("Jobs", f"{view['running']} running, {view['queued']} waiting"),
        ],
    )
    if view["gpus"] and not terminal.as_json:
        terminal.say("")
        terminal.table(("GPU", "NODE", "MODEL", "HEALTH!", "JOBS~", "MOVES TO~"), view["gpus"], _gpu_row, empty="")


def _gpu_row(gpu: GpuView) -> Sequence[str]:
    jobs = [f"{job['id'] or 'a job'} ({job['user']})" for job in gpu["jobs"]]
    moves_to = f"{gpu['next_pool']}, when free" if gpu.get("next_pool") else formats.NOTHING
    return (gpu["id"], gpu["node"], gpu["model"], gpu["health"], formats.listed(jobs), moves_to)


@command(
    app,
    "create",
    examples=["corral pool create big --node node-3 --node node-4", "corral pool create small --gpu node-1/0"],
)
def create(
    terminal: Terminal,
    name: PoolArgument,
    gpu: GpuOption = None,
    node: NodeOption = None,
    description: DescriptionOption = None,
) -> None:
    """Create a pool of GPUs of one model, with a queue of the same name (operators)."""
    body: dict[str, Any] = {"name": name} if description is None else {"name": name, "description": description}
    body["gpus"] = _gpus(terminal, gpu, node)
    with terminal.client() as client:
        view = client.pools.create(body)
    terminal.answer(
        view,
        f"Created pool {view['name']} with {formats.count(view['gpus_total'], 'GPU')}. "
        f"Give it to a group: corral group create NAME --pool {view['name']}",
    )


@command(
    app, "edit", examples=["corral pool edit big --description 'for long runs'", "corral pool edit big --node node-3"]
)
def edit(
    terminal: Terminal,
    name: PoolArgument,
    gpu: GpuOption = None,
    node: NodeOption = None,
    empty: Annotated[bool, typer.Option("--empty", help="Move all its GPUs to the pool default.")] = False,
    description: DescriptionOption = None,
) -> None:
    """Change a pool (operators). --gpu and --node replace its GPUs; the others move to the pool default."""
    if empty and (gpu or node):
        raise WrongUsage("--empty excludes --gpu and --node")
    changes: dict[str, Any] = {} if description is None else {"description": description}
    if empty or gpu or node:
        changes["gpus"] = _gpus(terminal, gpu, node)
    if not changes:
        raise WrongUsage("nothing to change", hint="Give --gpu, --node, --empty or --description.")
    with terminal.client() as client:
        view = client.pools.edit(name, changes)
    terminal.answer(view, f"Changed pool {view['name']}: it has {formats.count(view['gpus_total'], 'GPU')}")


@command(
    app,
    "move-gpus",
    examples=[
        "corral pool move-gpus big node-1-gpu0 node-1-gpu1",
        "corral pool move-gpus default --node node-3",
        "corral pool move-gpus big --node node-3 --when-free",
    ],
)
def move_gpus(
    terminal: Terminal,
    name: PoolArgument,
    gpus: Annotated[
        list[str] | None, typer.Argument(metavar="GPU", help="Their ids, as `corral gpus` lists them.")
    ] = None,
    gpu: GpuOption = None,
    node: NodeOption = None,
    when_free: Annotated[
        bool,
        typer.Option(
            "--when-free",
            help="GPUs with running jobs take no new jobs, and move when these have ended. To take this back, move the "
            "GPU to the pool that it is in.",
        ),
    ] = False,
) -> None:
    """Move GPUs from their pools into this one: all of them or none (operators). GPUs with running jobs are refused, or
    follow later with --when-free."""
    wanted = _gpus(terminal, [*(gpus or ()), *(gpu or ())], node)
    if not wanted:
        raise WrongUsage("nothing to move", hint="Name GPUs, or give --node.")
    with terminal.client() as client:
        pool = client.pools.move_gpus(name, wanted, when_free=when_free)
    here = {view["id"] for view in pool["gpus"]}
    later = [gpu_id for gpu_id in wanted if gpu_id not in here]
    follow = f"; {formats.count(len(later), 'GPU')} will follow when free: {formats.listed(later)}" if later else ""
    terminal.answer(pool, f"Pool {pool['name']} has {formats.count(pool['gpus_total'], 'GPU')} now{follow}")


@command(app, "rm", examples=["corral pool rm big", "corral pool rm -y big small"])
def rm(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="POOL", help="Names of pools.")],
    yes: YesOption = False,
) -> None:
    """Delete pools without group and jobs; their GPUs move to the pool default (operators)."""
    subject = f"{formats.count(len(names), 'pool')} with {'its' if len(names) == 1 else 'their'} queues"
    terminal.confirm(f"Delete {subject}: {formats.listed(names)}?", assume_yes=yes)
    delete_each(
        terminal,
        names,
        lambda client, name: client.pools.delete(name),
        lambda name: f"Deleted pool {name}; its GPUs are in default",
    )


def _gpus(terminal: Terminal, gpus: list[str] | None, nodes: list[str] | None) -> list[str]:
    """The ids of the named GPUs, and of all GPUs on the named nodes."""
    wanted = list(gpus or ())
    if nodes:
        with terminal.client() as client:
            on_node = {view["id"]: [gpu["id"] for gpu in view["gpus"]] for view in client.fleet.nodes()}
        for node in nodes:
            if node not in on_node:
                raise WrongUsage(f"there is no node {node!r}", hint="`corral nodes` lists them.")
            wanted += on_node[node]
    return list(dict.fromkeys(wanted))
