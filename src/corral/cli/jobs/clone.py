"""`corral clone`: submits a job again, with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from corral.cli.jobs.job_request import request_body, with_flags, with_job_options
from corral.cli.jobs.job_texts import submitted
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ApiProblem
from corral.core.jobs.field_types import JobCommand

if TYPE_CHECKING:
    from corral.client.views import JobClone

app = typer.Typer()


@command(
    app,
    "clone",
    section=Section.DAILY,
    examples=[
        "corral clone resnet",
        "corral clone resnet --name resnet-large --gpus 8 --env EPOCHS=90",
        "corral clone j-12 -- python train.py --lr 0.2",
        "corral clone evaluate --after resnet-large",
    ],
)
@with_job_options(JobCommand.CLONE)
def clone(
    terminal: Terminal,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id or the name of a job of yours.")],
    cmd: Annotated[list[str] | None, typer.Argument(metavar="CMD", help="Another program to run, after --.")] = None,
    **typed: Any,
) -> None:
    """Submit a job of yours again. Options that are not given keep the job's values, including its environment."""
    changes = request_body(JobCommand.CLONE, typed)
    if cmd:
        changes["command"] = cmd
    with terminal.client() as client:
        try:
            view = client.jobs.clone(job, cast("JobClone", changes))
        except ApiProblem as error:
            raise with_flags(error) from error
    terminal.answer(view, submitted(view))
