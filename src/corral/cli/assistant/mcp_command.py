"""`corral mcp`: serves assistants, over stdin and stdout or over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.cli.terminal.failures import Refused
from corral.cli.terminal.terminal import Section, Terminal, command

app = typer.Typer()

DEFAULT_PORT = 8471


@command(
    app,
    "mcp",
    section=Section.SETUP,
    examples=["corral mcp", "corral mcp --http", "corral mcp --http --host 0.0.0.0 --port 8471"],
)
def mcp(
    terminal: Terminal,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP; each request brings its own token.")] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="With --http: where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --http.")] = DEFAULT_PORT,
) -> None:
    """Serve assistants by the Model Context Protocol: status, why, dry runs, submissions, logs and reports.

    Without --http the assistant starts this command and has the rights of your stored token or CORRAL_TOKEN. With
    --http each request must have a token of corral as its bearer token, and has the rights of that token.
    """
    try:
        from corral.cli.assistant.mcp_server import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise Refused("the library `mcp` is missing", hint="Install it: pip install 'corral[mcp]'") from error
    if http:
        terminal.note(f"Serving assistants at http://{host}:{port}/mcp, for the server {terminal.server}")
        serve_http(terminal.server, host=host, port=port)
    else:
        serve_stdio(terminal.client)
