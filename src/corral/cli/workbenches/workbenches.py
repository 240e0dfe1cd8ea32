"""`corral workbench`: long-lived jobs to work in, with Jupyter and SSH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from corral.cli.jobs.job_request import request_body, with_job_options
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.client.http.errors import ClientError
from corral.core.jobs.field_types import JobCommand

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import SshView, WorkbenchCreate, WorkbenchView

app = typer.Typer(help="Workbenches: Jupyter and SSH on GPUs, for as long as you need.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A workbench's name or id.")]
#: How long a command waits until a workbench is ready.
READY_SECONDS = 120.0


@command(
    app,
    "create",
    examples=[
        "corral workbench create bench --gpus 1",
        "corral workbench create bench --ssh --idle-stop 2h --venv /opt/venvs/torch",
        "corral workbench create shell --no-jupyter --ssh --package a100-x1",
    ],
)
@with_job_options(JobCommand.WORKBENCH_CREATE)
def create(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The workbench's name, unique among your jobs.")],
    jupyter: Annotated[bool, typer.Option("--jupyter/--no-jupyter", help="Offer JupyterLab.")] = True,
    ssh: Annotated[
        bool | None,
        typer.Option("--ssh/--no-ssh", help="Let your registered SSH keys log in. Default: if you have a key."),
    ] = None,
    *,
    idle_stop: Annotated[
        str | None, typer.Option("--idle-stop", metavar="DURATION", help="Stop it when unused for so long.")
    ] = None,
    **typed: Any,
) -> None:
    """Create a workbench and start it.

    A workbench keeps its settings: stop it when you leave, start it when you come back. Files in its own directory stay
    until it is deleted.
    """
    body = {"name": name, "jupyter": jupyter, **request_body(JobCommand.WORKBENCH_CREATE, typed)}
    if ssh is not None:
        body["ssh"] = ssh
    if idle_stop is not None:
        body["idle_stop"] = idle_stop
    with terminal.client() as client:
        view = client.workbenches.create(cast("WorkbenchCreate", body))
    follow = f"Start it: corral workbench start {name}" if "hold" in body else _next_steps(view)
    terminal.answer(view, f"Created workbench {view['name']} ({view['id']}), {view['state']}. {follow}")


@command(app, "ls", examples=["corral workbench ls", "corral workbench ls -o json"])
def list_workbenches(terminal: Terminal) -> None:
    """List your workbenches, also stopped ones; operators see those of all users."""
    with terminal.client() as client:
        found = list(client.workbenches.list())
    terminal.table(
        ("ID", "NAME~", "USER?", "STATE!", "GPUS>", "IDLE>", "AUTO-STOP>?", "JUPYTER~", "SSH~"),
        found,
        _row,
        empty="No workbenches. Create one: corral workbench create NAME --gpus 1",
    )


@command(app, "start", examples=["corral workbench start bench"])
def start(terminal: Terminal, name: NameArgument) -> None:
    """Start a workbench again, with the settings that it was created with."""
    with terminal.client() as client:
        view = client.workbenches.start(name)
    terminal.answer(view, f"Workbench {view['name']} ({view['id']}) is {view['state']}. {_next_steps(view)}")


@command(app, "stop", examples=["corral workbench stop bench"])
def stop(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Stop a workbench and release its GPUs. Settings and files stay; its processes end."""
    terminal.confirm(f"Stop workbench {name}, and end its processes?", assume_yes=yes, is_reversible=True)
    with terminal.client() as client:
        view = client.workbenches.stop(name)
    terminal.answer(view, f"Workbench {view['name']} ({view['id']}) is {view['state']}.")


@command(app, "open", examples=["corral workbench open bench"])
def open_workbench(
    terminal: Terminal,
    name: NameArgument,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it where there is a display.")] = True,
) -> None:
    """Print the address of a workbench's Jupyter, and open it where there is a browser.

    The address leads to the console, which redirects to the workbench after the sign-in.
    """
    with terminal.client() as client:
        view = ready_workbench(terminal, client, name)
    if view["jupyter"] is None:
        raise WrongUsage(
            f"workbench {view['name']} offers no Jupyter", hint=f"It offers SSH: corral workbench ssh {view['name']}"
        )
    terminal.answer(view, view["jupyter"]["address"])
    if browser and not terminal.as_json and has_display():
        typer.launch(view["jupyter"]["address"])


@command(
    app,
    "ssh",
    free_arguments=True,
    examples=["corral workbench ssh bench", "corral workbench ssh bench -- nvidia-smi"],
)
def ssh(
    terminal: Terminal,
    name: NameArgument,
    cmd: Annotated[list[str] | None, typer.Argument(metavar="CMD", help="Run this instead of a shell.")] = None,
    identity: Annotated[
        Path | None, typer.Option("-i", "--identity", metavar="FILE", help="The private key; default: ssh's own.")
    ] = None,
) -> None:
    """Log in to a workbench.

    Its host key comes from the server, so ssh does not ask whether to trust it. Exits with the exit code of ssh.
    """
    program = shutil.which("ssh")
    if program is None:
        raise WrongUsage("there is no ssh here", hint="Install an OpenSSH client.")
    with terminal.client() as client:
        view = ready_workbench(terminal, client, name)
    if view["ssh"] is None:
        raise WrongUsage(
            f"workbench {view['name']} offers no SSH",
            hint=f"Create one that does: corral workbench create {view['name']}-ssh --ssh",
        )
    if not view["ssh"]["ready"]:
        raise ClientError(f"the SSH server of workbench {view['name']} is not ready yet: try again in a moment")
    with tempfile.TemporaryDirectory(prefix="corral-ssh-") as directory:
        known_hosts = Path(directory) / "known_hosts"
        known_hosts.write_text(f"{_alias(view)} {view['ssh']['host_key']}\n")
        remote_command = [*(cmd or [])][1:] if cmd and cmd[0] == "--" else cmd or []
        command_line = ssh_command(program, view, view["ssh"], known_hosts, identity, remote_command)
        code = subprocess.run(command_line, check=False).returncode
    raise typer.Exit(code if code >= 0 else 128 - code)


@command(app, "rm", examples=["corral workbench rm bench", "corral workbench rm bench old -y"])
def rm(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names or ids.")],
    yes: YesOption = False,
) -> None:
    """Delete stopped workbenches for good, with the files in their own directories."""
    question = (
        f"Delete {formats.count(len(names), 'workbench', 'workbenches')} with their files: {formats.listed(names)}?"
    )
    terminal.confirm(question, assume_yes=yes)
    with terminal.client() as client:
        for name in names:
            client.workbenches.delete(name)
    terminal.answer({"deleted": names}, f"Deleted {formats.listed(names)}")


def ssh_command(
    program: str, view: WorkbenchView, ssh: SshView, known_hosts: Path, identity: Path | None, cmd: Sequence[str]
) -> list[str]:
    """The command line of ssh; it accepts only the host key of this workbench."""
    options = {
        "UserKnownHostsFile": str(known_hosts),
        "GlobalKnownHostsFile": os.devnull,
        "HostKeyAlias": _alias(view),
        "StrictHostKeyChecking": "yes",
        "LogLevel": "ERROR",
    }
    line = [program, "-p", str(ssh["port"])]
    for key, value in options.items():
        line += ["-o", f"{key}={value}"]
    if identity is not None:
        line += ["-i", str(identity), "-o", "IdentitiesOnly=yes"]
    # As with ssh itself, the remote shell reads the arguments as one text.
    return [*line, f"{ssh['account']}@{ssh['host']}", *cmd]


def _alias(view: WorkbenchView) -> str:
    return f"corral-{view['id']}"


def ready_workbench(terminal: Terminal, client: Client, name: str) -> WorkbenchView:
    """Wait until the workbench can be reached; raises if that will not happen soon."""

    def show_state(view: WorkbenchView) -> None:
        if view["state"] in ("queued", "starting"):
            terminal.note(f"Workbench {view['name']} is {view['state']} …")

    from corral.client.workbenches.workbenches import is_ready

    view = client.workbenches.wait_ready(name, seconds=READY_SECONDS, on_change=show_state)
    if is_ready(view):
        return view
    hint = {
        "queued": f"See why it waits: corral why {view['id']}",
        "running": f"It is still starting; see its log: corral logs {view['id']}",
    }.get(view["state"], f"Start it: corral workbench start {view['name']}")
    raise ClientError(f"workbench {view['name']} is {view['state']}. {hint}")


def _next_steps(view: WorkbenchView) -> str:
    ways = [f"corral workbench open {view['name']}"] if view["jupyter"] else []
    ways += [f"corral workbench ssh {view['name']}"] if view["ssh"] else []
    return f"Use it: {' or '.join(ways)}" if ways else f"Follow it: corral logs -f {view['id']}"


def _row(view: WorkbenchView) -> Sequence[str]:
    jupyter, ssh = view["jupyter"], view["ssh"]
    idle, limit = view["idle_seconds"], view["idle_stop_seconds"]
    is_running = view["state"] == "running"
    return (
        view["id"],
        view["name"],
        view["user"],
        view["state"],
        formats.number(view["job"]["gpus"]),
        formats.NOTHING if idle is None else formats.duration(idle),
        formats.NOTHING if limit is None else formats.duration(limit),
        formats.NOTHING if jupyter is None else jupyter["address"] if is_running else "yes",
        formats.NOTHING if ssh is None else (ssh["command"] or "starting") if is_running else "yes",
    )


def has_display() -> bool:
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
