"""The table of commands: the words of the first level, each with the module that has it.

The program loads the modules of the word that was typed and no other: importing all of them takes three times as long
as `corral jobs`. A test compares the table with the commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from corral.cli.terminal.terminal import Section

if TYPE_CHECKING:
    import typer


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a group of commands is: `module:attribute`, below `corral.cli`."""

    place: str
    #: the words that select it: the group's own name, or the names of its commands
    words: tuple[str, ...]
    #: None: the commands are of the first level themselves
    name: str | None = None
    section: Section | None = None

    def load(self) -> typer.Typer:
        module, _, attribute = self.place.partition(":")
        found: typer.Typer = getattr(import_module(f"corral.cli.{module}"), attribute)
        return found


def _noun(name: str, place: str, section: Section) -> Place:
    return Place(place=place, words=(name,), name=name, section=section)


def _commands(place: str, *words: str) -> Place:
    return Place(place=place, words=words)


#: In the order in which help lists them.
PLACES: Sequence[Place] = (
    _commands("jobs.submission.submit:app", "submit"),
    _commands("jobs.submission.run:app", "run"),
    _commands("jobs.submission.wait:app", "wait"),
    _commands("jobs.jobs:app", "jobs", "show", "why"),
    _noun("inbox", "people.inbox:app", Section.DAILY),
    _commands(
        "jobs.job_changes:app",
        "stop",
        "start",
        "requeue",
        "restart",
        "resize",
        "migrate",
        "extend",
        "edit",
        "keep",
        "rm",
    ),
    _commands("jobs.clone:app", "clone"),
    _commands("jobs.logs:app", "logs"),
    _commands("jobs.sessions:app", "shell"),
    _noun("files", "jobs.files:app", Section.DAILY),
    _commands("storage.file_copy:app", "cp", "sync"),
    _noun("preset", "jobs.presets.assets:app", Section.DAILY),
    _commands("jobs.checkpoints:app", "checkpoints", "checkpoint"),
    _commands("jobs.curves:app", "curves"),
    _noun("image", "jobs.images:app", Section.DAILY),
    _noun("registry", "jobs.images:registry_app", Section.DAILY),
    _noun("secret", "people.secrets:app", Section.DAILY),
    _noun("volume", "storage.volume_files:app", Section.DAILY),
    _noun("dataset", "datasets.datasets:app", Section.DAILY),
    _noun("target", "datasets.targets:app", Section.DAILY),
    _commands("scheduling.queues:top", "pin", "unpin", "move"),
    _commands("people.quotas:top", "scores"),
    _noun("queue", "scheduling.queues:app", Section.QUEUE),
    _commands("fleet.status:app", "status"),
    _commands("fleet.top:app", "top"),
    _noun("nodes", "fleet.nodes:nodes_app", Section.CLUSTER),
    _noun("gpus", "fleet.nodes:gpus_app", Section.CLUSTER),
    _noun("cluster", "system.cluster:app", Section.CLUSTER),
    _noun("leader", "system.leader:app", Section.CLUSTER),
    _noun("pool", "fleet.pools:app", Section.CLUSTER),
    _noun("object-store", "storage.object_stores:app", Section.CLUSTER),
    _noun("maintenance", "fleet.maintenance:app", Section.CLUSTER),
    _noun("reservation", "scheduling.reservations:app", Section.CLUSTER),
    _noun("analyse", "reports.analyse:app", Section.CLUSTER),
    _noun("alert", "alerts.alerts:app", Section.CLUSTER),
    _noun("channel", "alerts.channels:app", Section.CLUSTER),
    _commands("scheduling.receipts:app", "receipts"),
    _commands("scheduling.estimates:app", "estimates"),
    _commands("people.events:app", "events"),
    _noun("report", "reports.reports:app", Section.CLUSTER),
    _commands("whatif.simulate:app", "simulate"),
    _noun("shadow", "whatif.shadow:app", Section.CLUSTER),
    _noun("whatif", "whatif.whatif:app", Section.CLUSTER),
    _commands("system.about:app", "about"),
    _commands("system.search:app", "search"),
    _commands("jobs.tasks:app", "allocate", "start-program", "release", "gpu-manager"),
    _noun("slurm-compat", "slurm.slurm_compat:app", Section.DAILY),
    _noun("workbench", "workbenches.workbenches:app", Section.DAILY),
    _noun("app", "workbenches.apps:app", Section.DAILY),
    _commands("workbenches.apps:top", "open"),
    _commands("workbenches.remote_code:top", "code"),
    _commands("workbenches.tunnels:top", "tunnel"),
    _commands("people.account:app", "login", "logout", "whoami", "profile", "passwd"),
    _noun("token", "people.account:token_app", Section.PEOPLE),
    _noun("key", "people.permissions:key_app", Section.PEOPLE),
    _noun("user", "people.users:user_app", Section.PEOPLE),
    _noun("group", "people.groups:app", Section.PEOPLE),
    _noun("permission-group", "people.permissions:group_app", Section.PEOPLE),
    _noun("provider", "people.directories:app", Section.PEOPLE),
    _noun("quota", "people.quotas:app", Section.PEOPLE),
    _noun("budget", "people.budgets:app", Section.PEOPLE),
    _noun("flavor", "fleet.catalog:flavor_app", Section.PEOPLE),
    _noun("package", "fleet.catalog:package_app", Section.PEOPLE),
    _commands("system.up:app", "up"),
    _noun("init", "system.init:app", Section.SETUP),
    _noun("config", "system.configuration:app", Section.SETUP),
    _noun("backup", "system.backup:app", Section.SETUP),
    _noun("store", "system.store:app", Section.SETUP),
    _noun("licence", "system.about:licence_app", Section.SETUP),
    _commands("system.doctor:app", "doctor"),
    _commands("monitoring.exporter:app", "exporter"),
    _commands("assistant.mcp_command:app", "mcp"),
    _noun("health", "monitoring.health:app", Section.CLUSTER),
    _noun("drill", "fleet.drill:app", Section.SETUP),
    _noun("completion", "terminal.shell:completion_app", Section.SETUP),
    _commands("terminal.shell:app", "version"),
)
