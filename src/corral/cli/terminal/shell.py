"""`corral completion` and `corral version`: the command itself."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.cli.entry import own_version
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ClientError
from corral.core.os_errors import placed_reason

app = typer.Typer()
completion_app = typer.Typer(help="Completion of commands and options in your shell.", no_args_is_help=True)

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
ShellArgument = Annotated[
    str | None, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell; default: your current shell.")
]


@command(app, "version", section=Section.SETUP, examples=["corral version", "corral version -o json"])
def version(terminal: Terminal) -> None:
    """Print the version of this command and, if it can be reached, of the server."""
    own = own_version()
    try:
        with terminal.client() as client:
            server: str | None = client.system.about()["version"]
    except ClientError:
        # the version of the command is printed without a server, too
        server = None
    suffix = f" (server {server})" if server else ""
    terminal.answer({"version": own, "server_version": server, "server": terminal.server}, f"corral {own}{suffix}")


@command(completion_app, "show", connects=False, examples=["corral completion show bash > ~/.corral-completion.bash"])
def show(terminal: Terminal, shell: ShellArgument = None) -> None:
    """Print the completion script."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    chosen = _shell(shell)
    script = get_completion_script(prog_name="corral", complete_var="_CORRAL_COMPLETE", shell=chosen)
    terminal.answer({"shell": chosen, "script": script}, script)


@command(
    completion_app, "install", connects=False, examples=["corral completion install", "corral completion install zsh"]
)
def install(terminal: Terminal, shell: ShellArgument = None) -> None:
    """Install the completion script for your shell."""
    from typer.completion import install as install_script  # type: ignore[attr-defined]

    try:
        chosen, path = install_script(shell=_shell(shell), prog_name="corral", complete_var="_CORRAL_COMPLETE")
    except OSError as error:
        raise Refused(f"cannot install: {placed_reason(error)}") from error
    terminal.answer({"shell": chosen, "path": str(path)}, f"Installed for {chosen} in {path}. Open a new terminal.")


def _shell(given: str | None) -> str:
    import os

    chosen = given or os.path.basename(os.environ.get("SHELL", ""))
    if chosen not in SHELLS:
        raise WrongUsage(
            f"shell: {chosen!r} is not supported" if chosen else "shell: cannot detect which shell you use",
            hint=f"Name one: {', '.join(SHELLS)}.",
        )
    return chosen
