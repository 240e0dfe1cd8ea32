"""`corral init`: writes the files that a project or a server begins with."""

from __future__ import annotations

import typer

from corral.cli.jobs.submission import init_job
from corral.cli.system import init_kubernetes, init_server

app = typer.Typer(help="Write the files that a project or a server begins with.", no_args_is_help=True)
init_server.register(app)
init_kubernetes.register(app)
init_job.register(app)
