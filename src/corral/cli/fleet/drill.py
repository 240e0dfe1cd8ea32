"""`corral drill`: make virtual GPUs and nodes fail, to see what happens then.

Works only on the machine of the server, through a file in its home: no API request can start a drill.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal.failures import Refused
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.engines.local.faults import Faults, GpuFault

app = typer.Typer(help="Make virtual GPUs and nodes fail, to see what happens then.", no_args_is_help=True)

GpuArgument = Annotated[str, typer.Argument(metavar="GPU", help="A virtual GPU, as `corral gpus` lists it.")]
HomeOption = Annotated[
    Path | None, typer.Option("--home", metavar="DIR", help="The server's home.  [env: CORRAL_HOME]")
]


@command(
    app,
    "overheat",
    connects=False,
    examples=["corral drill overheat a10-001-gpu0", "corral drill overheat a10-001-gpu0 --temperature 97"],
)
def overheat(
    terminal: Terminal,
    gpu: GpuArgument,
    temperature: Annotated[float, typer.Option(min=0, max=200, metavar="CELSIUS", help="How hot.")] = 97.0,
    home: HomeOption = None,
) -> None:
    """Make a GPU too hot."""
    _change_gpu(terminal, home, gpu, f"{gpu} is at {temperature:g} °C now.", temperature=temperature)


@command(app, "lose-gpu", connects=False, examples=["corral drill lose-gpu a10-001-gpu0"])
def lose_gpu(terminal: Terminal, gpu: GpuArgument, home: HomeOption = None) -> None:
    """Make a GPU disappear: it does not respond any more."""
    _change_gpu(terminal, home, gpu, f"{gpu} does not respond any more.", lost=True)


@command(app, "hang", connects=False, examples=["corral drill hang a10-001-gpu0"])
def hang(terminal: Terminal, gpu: GpuArgument, home: HomeOption = None) -> None:
    """Make a GPU idle although a job holds it, as when the job hangs."""
    _change_gpu(terminal, home, gpu, f"{gpu} is idle now.", idle=True)


@command(app, "xid", connects=False, examples=["corral drill xid a10-001-gpu0 79"])
def xid(
    terminal: Terminal,
    gpu: GpuArgument,
    code: Annotated[int, typer.Argument(min=0, max=100_000, metavar="CODE", help="The driver's XID code.")],
    home: HomeOption = None,
) -> None:
    """Make the driver report an error of a GPU, once. Repeat the command to report it again."""
    home = _home(home)
    faults = _faults(home)
    known = _known_gpu(home, gpu, faults)
    _write(home, _with_gpu(faults, gpu, replace(known, xids=(*known.xids, code))))
    terminal.answer(_shown(home), f"{gpu} reports XID {code}.")


@command(
    app, "ecc", connects=False, examples=["corral drill ecc a10-001-gpu0", "corral drill ecc a10-001-gpu0 --errors 3"]
)
def ecc(
    terminal: Terminal,
    gpu: GpuArgument,
    errors: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="The number of errors.")] = 1,
    remap: Annotated[bool, typer.Option("--remap", help="Also report that a row could not be remapped.")] = False,
    home: HomeOption = None,
) -> None:
    """Make a GPU report uncorrected memory errors."""
    text = f"{gpu} has {errors} uncorrected memory error{'s' if errors > 1 else ''}."
    _change_gpu(terminal, home, gpu, text, ecc_uncorrected=errors, remap_failed=remap)


@command(app, "lose-node", connects=False, examples=["corral drill lose-node a10-003"])
def lose_node(
    terminal: Terminal,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A virtual node, as `corral nodes` lists it.")],
    home: HomeOption = None,
    yes: YesOption = False,
) -> None:
    """Make a node go down. Its jobs are killed; `clear` brings the node back."""
    terminal.confirm(f"Make {node} go down, and kill its jobs?", assume_yes=yes, is_reversible=True)
    home = _home(home)
    fleet = _fleet(home)
    if node not in fleet:
        raise _unknown("node", node, list(fleet))
    faults = _faults(home)
    _write(home, replace(faults, down=faults.down | {node}))
    terminal.answer(_shown(home), f"{node} is down.")


@command(app, "clear", connects=False, examples=["corral drill clear", "corral drill clear a10-001-gpu0"])
def clear(
    terminal: Terminal,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One GPU or node; default: all.")] = None,
    home: HomeOption = None,
) -> None:
    """End a drill: the GPU or node, or all of them, work again."""
    from corral.engines.local.faults import Faults

    home = _home(home)
    if name is None:
        _fleet(home)
        _write(home, Faults())
        terminal.answer(_shown(home), "All GPUs and nodes work again.")
        return
    faults = _faults(home)
    if name not in faults.gpus and name not in faults.down:
        raise _unknown("drill on", name, [*faults.gpus, *faults.down])
    gpus = {gpu: fault for gpu, fault in faults.gpus.items() if gpu != name}
    _write(home, replace(faults, gpus=gpus, down=faults.down - {name}))
    terminal.answer(_shown(home), f"{name} works again.")


@command(app, "ls", connects=False, examples=["corral drill ls", "corral drill ls -o json"])
def ls(terminal: Terminal, home: HomeOption = None) -> None:
    """List the GPUs and nodes that a drill has made fail."""
    body = _shown(_home(home))
    items = [{"name": name, "fault": fault} for name, fault in {**body["nodes"], **body["gpus"]}.items()]
    terminal.table(
        ("NAME", "FAULT~"),
        items,
        lambda item: (item["name"], _fault_text(item["fault"])),
        empty="No drill is on. `corral drill --help` shows what can be made to fail.",
    )


def _fault_text(fault: Any) -> str:
    if isinstance(fault, str):
        return fault
    return ", ".join(key if value is True else f"{key} {value}" for key, value in fault.items())


# ------------------------------------------------------------------------------------------------ the files


def _home(given: Path | None) -> Path:
    from corral.server.settings.settings_sources import default_home

    if given is not None:
        return given
    return Path(os.environ["CORRAL_HOME"]) if os.environ.get("CORRAL_HOME") else default_home(os.environ)


def _fleet(home: Path) -> dict[str, list[str]]:
    from corral.engines.local.faults import announced_fleet

    fleet = announced_fleet(home / "local")
    if fleet is None:
        raise Refused(
            f"no server with virtual GPUs was started with the home {home}",
            hint="Give the server's home with --home or CORRAL_HOME, on the server's machine. "
            "Real GPUs cannot be made to fail.",
        )
    return fleet


def _faults(home: Path) -> Faults:
    from corral.engines.local.faults import FAULTS_FILE, read_faults

    _fleet(home)
    path = home / "local" / FAULTS_FILE
    try:
        return read_faults(path)
    except (ValueError, OSError) as error:
        raise Refused(f"{path} cannot be read: {error}", hint="`corral drill clear` starts again.") from error


def _write(home: Path, faults: Faults) -> None:
    from corral.engines.local.faults import FAULTS_FILE, write_faults

    path = home / "local" / FAULTS_FILE
    try:
        write_faults(path, faults)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Use the account of the server.") from error


def _shown(home: Path) -> dict[str, Any]:
    from corral.engines.local.faults import faults_body

    return faults_body(_faults(home))


def _change_gpu(terminal: Terminal, given: Path | None, gpu: str, text: str, **fault: Any) -> None:
    home = _home(given)
    faults = _faults(home)
    known = _known_gpu(home, gpu, faults)
    _write(home, _with_gpu(faults, gpu, replace(known, **fault)))
    terminal.answer(_shown(home), text)


def _known_gpu(home: Path, gpu: str, faults: Faults) -> GpuFault:
    """The faults of the GPU so far."""
    from corral.engines.local.faults import GpuFault

    gpus = [each for node in _fleet(home).values() for each in node]
    if gpu not in gpus:
        raise _unknown("virtual GPU", gpu, gpus)
    return faults.gpus.get(gpu, GpuFault())


def _with_gpu(faults: Faults, gpu: str, fault: GpuFault) -> Faults:
    return replace(faults, gpus={**faults.gpus, gpu: fault})


def _unknown(what: str, name: str, known: list[str]) -> Refused:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There is: {', '.join(known[:8])}{', …' if known[8:] else ''}."
    return Refused(f"there is no {what} {name!r}", hint=hint if known else "No drill is on.")
