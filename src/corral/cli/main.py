"""The entry point: assembles the command groups, prints help in sections, and reports usage errors."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any

import typer

from corral.cli.alerts import alerts, channels
from corral.cli.assistant import mcp_command
from corral.cli.datasets import datasets, targets
from corral.cli.fleet import catalog, drill, nodes, pools, status, top
from corral.cli.habits.aliases import familiar, first_word
from corral.cli.habits.habit_group import HabitGroup
from corral.cli.habits.usage_errors import usage_error
from corral.cli.jobs import checkpoints, clone, curves, files, images, job_changes, jobs, logs, sessions, tasks
from corral.cli.jobs.presets import assets, presets
from corral.cli.jobs.submission import init_job, run, submit
from corral.cli.monitoring import exporter, health
from corral.cli.people import (
    account,
    budgets,
    events,
    groups,
    inbox,
    permissions,
    quotas,
    secrets,
    sign_in_providers,
    users,
)
from corral.cli.reports import analyse, reports
from corral.cli.scheduling import estimates, queues, receipts, reservations
from corral.cli.slurm import slurm_compat
from corral.cli.storage import file_copy, object_stores, volume_files, volumes
from corral.cli.system import about, backup, cluster, configuration, doctor, init_server, leader, search, store, up
from corral.cli.terminal import shell
from corral.cli.terminal.failures import WrongUsage, problem, readable
from corral.cli.terminal.terminal import (
    NoColorOption,
    Options,
    OutputOption,
    Section,
    ServerOption,
    TokenOption,
    keep_options,
)
from corral.cli.whatif import shadow, simulate, whatif
from corral.cli.workbenches import apps, remote_code, tunnels, workbenches

#: The shell's completion script asks by setting this variable.
COMPLETE_VARIABLE = "_CORRAL_COMPLETE"


class SectionedGroup(HabitGroup):
    """Lists commands under the heading of their section. Typer would draw this with Rich, which takes more time to load
    than the rest of the help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        shown = [(name, self.commands[name]) for name in self.list_commands(ctx) if not self.commands[name].hidden]
        width = max((len(name) for name, _ in shown), default=0)
        for name, entry in shown:
            heading = getattr(entry, "rich_help_panel", None) or "Commands"
            text = entry.get_short_help_str(formatter.width - 6 - width)
            sections.setdefault(heading, []).append((name.ljust(width), text))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, *extra: Any, **settings: Any) -> Any:
        """As in Typer, but a usage error is printed as JSON if JSON output was requested."""
        typed = familiar(sys.argv[1:] if args is None else args)
        plain_help = self._plain_help(typed)
        if plain_help is not None:
            typer.echo(plain_help)
            sys.exit(0)
        settings["standalone_mode"] = False
        try:
            code = super().main(typed, *extra, **settings)
        except typer.Abort:
            typer.echo("Aborted.", err=True)
            code = 1
        except typer.TyperException as error:
            _show_usage_error(error, as_json=_asks_for_json(typed))
            code = error.exit_code
        sys.exit(code if isinstance(code, int) else 0)

    def _plain_help(self, typed: Sequence[str]) -> str | None:
        """The help for a command line that consists of a command's name and --help. Normal parsing takes twice as long,
        because Typer loads pydantic to check the options of the groups."""
        if not typed or typed[-1] not in ("-h", "--help"):
            return None
        found: Any = self
        ctx = found.context_class(found, info_name="corral", **found.context_settings)
        for name in typed[:-1]:
            found = getattr(found, "commands", {}).get(name)
            if found is None:
                return None
            ctx = found.context_class(found, info_name=name, parent=ctx, **found.context_settings)
        return str(ctx.get_help())


app = typer.Typer(
    name="corral",
    cls=SectionedGroup,
    help="corral: shared, fair and observable GPUs, on one machine or on an existing cluster.",
    epilog=(
        "\b\nStart here:\n"
        "  corral up                                          start a server on this machine\n"
        "  corral login --user operator                       sign in\n"
        "  corral submit --gpus 1 -- python train.py          run something\n"
        "  corral jobs                                        see how it goes\n"
        "\n\nExit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not signed in or not allowed, "
        "4 not found, 5 server unreachable."
    ),
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,
)

app.add_typer(submit.app)
app.add_typer(run.app)
app.add_typer(jobs.app)
app.add_typer(inbox.app)
app.add_typer(job_changes.app)
app.add_typer(clone.app)
app.add_typer(logs.app)
app.add_typer(sessions.app)
app.add_typer(files.app, name="files", rich_help_panel=Section.DAILY)
app.add_typer(file_copy.app)
presets.app.add_typer(assets.app)
app.add_typer(presets.app, name="preset", rich_help_panel=Section.DAILY)
app.add_typer(checkpoints.app)
app.add_typer(curves.app)
app.add_typer(images.app, name="image", rich_help_panel=Section.DAILY)
app.add_typer(images.registry_app, name="registry", rich_help_panel=Section.DAILY)
app.add_typer(secrets.app, name="secret", rich_help_panel=Section.DAILY)
volume_files.register(volumes.app)
app.add_typer(volumes.app, name="volume", rich_help_panel=Section.DAILY)
app.add_typer(datasets.app, name="dataset", rich_help_panel=Section.DAILY)
app.add_typer(targets.app, name="target", rich_help_panel=Section.DAILY)
app.add_typer(queues.top)
app.add_typer(quotas.top)
app.add_typer(queues.app, name="queue", rich_help_panel=Section.QUEUE)
app.add_typer(status.app)
app.add_typer(top.app)
app.add_typer(nodes.nodes_app, name="nodes", rich_help_panel=Section.CLUSTER)
app.add_typer(nodes.gpus_app, name="gpus", rich_help_panel=Section.CLUSTER)
app.add_typer(cluster.app, name="cluster", rich_help_panel=Section.CLUSTER)
app.add_typer(leader.app, name="leader", rich_help_panel=Section.CLUSTER)
app.add_typer(pools.app, name="pool", rich_help_panel=Section.CLUSTER)
app.add_typer(object_stores.app, name="object-store", rich_help_panel=Section.CLUSTER)
app.add_typer(reservations.app, name="reservation", rich_help_panel=Section.CLUSTER)
app.add_typer(analyse.app, name="analyse", rich_help_panel=Section.CLUSTER)
app.add_typer(alerts.app, name="alert", rich_help_panel=Section.CLUSTER)
app.add_typer(channels.app, name="channel", rich_help_panel=Section.CLUSTER)
app.add_typer(receipts.app)
app.add_typer(estimates.app)
app.add_typer(events.app)
app.add_typer(reports.app, name="report", rich_help_panel=Section.CLUSTER)
app.add_typer(simulate.app)
app.add_typer(shadow.app, name="shadow", rich_help_panel=Section.CLUSTER)
app.add_typer(whatif.app, name="whatif", rich_help_panel=Section.CLUSTER)
app.add_typer(about.app)
app.add_typer(search.app)
app.add_typer(tasks.app)
app.add_typer(slurm_compat.app, name="slurm-compat", rich_help_panel=Section.DAILY)
app.add_typer(workbenches.app, name="workbench", rich_help_panel=Section.DAILY)
app.add_typer(apps.app, name="app", rich_help_panel=Section.DAILY)
app.add_typer(apps.top)
app.add_typer(remote_code.top)
app.add_typer(tunnels.top)
app.add_typer(account.app)
app.add_typer(account.token_app, name="token", rich_help_panel=Section.PEOPLE)
app.add_typer(permissions.key_app, name="key", rich_help_panel=Section.PEOPLE)
app.add_typer(users.user_app, name="user", rich_help_panel=Section.PEOPLE)
app.add_typer(groups.app, name="group", rich_help_panel=Section.PEOPLE)
app.add_typer(permissions.group_app, name="permission-group", rich_help_panel=Section.PEOPLE)
app.add_typer(sign_in_providers.app, name="provider", rich_help_panel=Section.PEOPLE)
app.add_typer(quotas.app, name="quota", rich_help_panel=Section.PEOPLE)
app.add_typer(budgets.app, name="budget", rich_help_panel=Section.PEOPLE)
app.add_typer(catalog.flavor_app, name="flavor", rich_help_panel=Section.PEOPLE)
app.add_typer(catalog.package_app, name="package", rich_help_panel=Section.PEOPLE)
app.add_typer(up.app)
init_app = typer.Typer(help="Write the files that a project or a server begins with.", no_args_is_help=True)
init_server.register(init_app)
init_job.register(init_app)
app.add_typer(init_app, name="init", rich_help_panel=Section.SETUP)
app.add_typer(configuration.app, name="config", rich_help_panel=Section.SETUP)
app.add_typer(backup.app, name="backup", rich_help_panel=Section.SETUP)
app.add_typer(store.app, name="store", rich_help_panel=Section.SETUP)
app.add_typer(about.licence_app, name="licence", rich_help_panel=Section.SETUP)
app.add_typer(doctor.app)
app.add_typer(exporter.app)
app.add_typer(mcp_command.app)
app.add_typer(health.app, name="health", rich_help_panel=Section.CLUSTER)
app.add_typer(drill.app, name="drill", rich_help_panel=Section.SETUP)
app.add_typer(shell.completion_app, name="completion", rich_help_panel=Section.SETUP)
app.add_typer(shell.app)
for group in app.registered_groups:
    own = group.typer_instance.info.cls if group.typer_instance is not None else None
    group.cls = own if isinstance(own, type) and issubclass(own, HabitGroup) else HabitGroup


@app.callback()
def root(
    ctx: typer.Context,
    output: OutputOption = None,
    server: ServerOption = None,
    token: TokenOption = None,
    no_color: NoColorOption = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=shell.print_version, help="Print the version.")
    ] = False,
) -> None:
    keep_options(ctx, Options(output=output, server=server, token=token, no_color=no_color))


def _asks_for_json(typed: Sequence[str]) -> bool:
    """Whether a command line that could not be parsed requests JSON output."""
    own = " ".join(typed[: typed.index("--")] if "--" in typed else typed)
    return re.search(r"(^| )(-o ?|--output[ =])json( |$)", own) is not None


def _show_usage_error(error: typer.TyperException, *, as_json: bool) -> None:
    message = error.format_message()
    if message.startswith("Usage:"):  # a group without a command: its help is the message
        typer.echo(problem(WrongUsage("a command is missing")) if as_json else message, err=True)
        return
    found = usage_error(error)
    typer.echo(problem(found) if as_json else readable(found), err=True)


def main() -> None:
    if COMPLETE_VARIABLE in os.environ:
        shell.prepare_completion()
        app(prog_name="corral")
    else:
        part_for(familiar(sys.argv[1:]))(prog_name="corral")


def part_for(typed: Sequence[str]) -> typer.Typer:
    """The application with only the group that the command line names, if it exists: Typer assembles all two hundred
    commands before it reads the first argument, which takes longer than most commands."""
    place = first_word(typed, 0)
    asked = [group for group in app.registered_groups if place is not None and typed[place] in _names(group)]
    if not asked:
        return app  # which prints the known commands
    part = copy(app)
    part.registered_groups = asked
    return part


def _names(group: Any) -> set[str | None]:
    """The names that select a group: its own name, or those of its commands if it has none."""
    if isinstance(group.name, str):
        return {group.name}
    return {entry.name for entry in group.typer_instance.registered_commands}


if __name__ == "__main__":
    main()
