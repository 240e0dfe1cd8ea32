"""The options of `corral simulate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

#: An option that is left out has the value of a fresh installation.
AS_INSTALLED = "Default: as installed."


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationOptions:
    """The options of a simulation as typed."""

    policy: Annotated[str, typer.Option(metavar="NAME[,…]", help="The order of waiting jobs.")] = "fair-share"
    placement: Annotated[str, typer.Option(metavar="NAME[,…]", help="Which GPUs a job gets.")] = "fragmentation"
    blocking: Annotated[
        str, typer.Option(metavar="NAME[,…]", help="Whether smaller jobs may pass: strict, backfill.")
    ] = "backfill"
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="FLEET",
            help="8x8xV100, or 4x8xA100:96:1TiB,10x4xT4 with CPUs and memory; or an openb node list. Default: the "
            "fleet of the trace.",
        ),
    ] = None
    format_name: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="openb, philly, slurm, swf, corral. Default: detected."),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N jobs.")] = None
    time_limits: Annotated[
        str,
        typer.Option(metavar="given|known|none", help="Those of the trace, the true run times, or none at all."),
    ] = "given"
    preempt: Annotated[
        str,
        typer.Option(
            metavar="no|yes[,…]",
            help="Whether jobs at the front preempt running jobs behind them; with priority, shortest, weighted.",
        ),
    ] = "no"
    preemption_cost: Annotated[
        str, typer.Option(metavar="TIME", help="What each preemption adds to the run time of the victim.")
    ] = "0s"
    min_run: Annotated[
        str | None,
        typer.Option(metavar="TIME", help=f"How long an attempt runs at least before it is preempted. {AS_INSTALLED}"),
    ] = None
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.99,
            help=f"How far ahead of the victim a job must be, as a part of the victim's cost. {AS_INSTALLED}",
        ),
    ] = None
    moves: Annotated[
        bool, typer.Option("--moves", help="Move running jobs to other nodes where that lets another one start.")
    ] = False
    ageing: Annotated[
        float | None,
        typer.Option(min=0.001, help=f"Under shortest: GPU-hours that an hour of waiting makes up for. {AS_INSTALLED}"),
    ] = None
    size_power: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=2.0, help=f"Under shortest: the exponent of a job's GPUs in its size. {AS_INSTALLED}"
        ),
    ] = None
    unknown_run: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help=f"The assumed run time of a job without history and time limit. {AS_INSTALLED}"
        ),
    ] = None
    any_model: Annotated[bool, typer.Option("--any-model", help="Every job accepts every GPU model.")] = False
    csv: Annotated[str | None, typer.Option(metavar="DIR", help="Write jobs, utilisation and figures as CSV.")] = None
    plots: Annotated[
        str | None, typer.Option(metavar="DIR", help="Draw utilisation, waiting times and Gantt charts as SVG.")
    ] = None
    gantt: Annotated[int, typer.Option(min=1, metavar="N", help="Jobs in a Gantt chart.")] = 100
