"""`corral code`: a workbench in VS Code on this machine, by Remote-SSH.

The entry for SSH goes into a file of corral's own, `~/.ssh/corral/config`, which the user's `~/.ssh/config` includes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.cli.workbenches.workbenches import ready_workbench
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.views import SshView, WorkbenchView

top = typer.Typer()

_INCLUDE = "Include ~/.ssh/corral/config"
_PROGRAMS = ("code", "codium", "cursor")


@command(top, "code", section=Section.DAILY, examples=["corral code bench", "corral code bench --folder /data/project"])
def code(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="WORKBENCH", help="A workbench with SSH, by name or id.")],
    folder: Annotated[str | None, typer.Option(metavar="DIR", help="The folder to open there.")] = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start VS Code, if it is installed here.")] = True,
) -> None:
    """Open a workbench in VS Code on this machine, by Remote-SSH.

    Writes an entry for the workbench to ~/.ssh/corral/config, so that `ssh corral-NAME` works, too. VS Code in the
    browser needs no SSH: `corral submit --app code-server`.
    """
    with terminal.client() as client:
        view = ready_workbench(terminal, client, name)
    if view["ssh"] is None:
        raise WrongUsage(
            f"workbench {view['name']} offers no SSH",
            hint=f"Create one that does: corral workbench create {view['name']}-ssh --ssh",
        )
    if not view["ssh"]["ready"]:
        raise ClientError(f"the SSH server of workbench {view['name']} is not ready yet: try again in a moment")
    host = write_entry(Path.home() / ".ssh", view, view["ssh"])
    remote = f"ssh-remote+{host}"
    line = ["code", "--remote", remote, *([folder] if folder else [])]
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    terminal.answer({"host": host, "command": line}, " ".join(line))
    if start and not terminal.as_json and program is not None:
        subprocess.run([program, *line[1:]], check=False)


def write_entry(directory: Path, view: WorkbenchView, ssh: SshView) -> str:
    """Write the entry of a workbench; returns its host name. Entries of other workbenches stay."""
    own = directory / "corral"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    host, known_hosts = f"corral-{view['name']}", own / f"{view['id']}.known_hosts"
    _write(known_hosts, f"corral-{view['id']} {ssh['host_key']}\n")
    entry = "".join(
        [
            f"Host {host}\n",
            f"  HostName {ssh['host']}\n",
            f"  Port {ssh['port']}\n",
            f"  User {ssh['account']}\n",
            f"  HostKeyAlias corral-{view['id']}\n",
            f'  UserKnownHostsFile "{known_hosts}"\n',
            "  StrictHostKeyChecking yes\n",
        ]
    )
    config = own / "config"
    others = [part for part in _entries(config) if part.splitlines()[0] != f"Host {host}"]
    _write(config, "\n".join([*others, entry]))
    _include(directory / "config")
    return host


def _entries(config: Path) -> list[str]:
    if not config.exists():
        return []
    return [f"Host {part.rstrip()}\n" for part in f"\n{config.read_text()}".split("\nHost ")[1:]]


def _include(config: Path) -> None:
    """`Include` must be before the first entry: behind one, it would be a part of it."""
    text = config.read_text() if config.exists() else ""
    if _INCLUDE not in text.splitlines():
        _write(config, f"{_INCLUDE}\n\n{text}" if text else f"{_INCLUDE}\n")


def _write(path: Path, text: str) -> None:
    """Written atomically; a link to the file, as in a repository of settings, stays one."""
    target = path.resolve()
    draft = target.with_name(f".{target.name}.corral")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.replace(draft, target)
