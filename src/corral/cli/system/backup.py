"""`corral backup`: archives of the store and of files of the home, on the machine of the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.system.server_settings import ConfigOption, HomeOption, refusals, server_settings
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.core.counts import counted

if TYPE_CHECKING:
    from corral.backup.manifest import Manifest
    from corral.server.settings.settings import Settings

app = typer.Typer(help="Back up and restore the server's state.", no_args_is_help=True)

PlaceOption = Annotated[
    str | None,
    typer.Option("--to", metavar="PLACE", help="A directory, s3://BUCKET/PREFIX or gs://…; default: backup.to."),
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="PLACE", help="The archive; default: backup.to of the configuration.")
]
PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help="Encrypts key file and configuration; default: of the settings."
    ),
]
BackupArgument = Annotated[str | None, typer.Argument(metavar="[BACKUP]", help="Default: the latest one.")]


@command(
    app,
    "create",
    connects=False,
    examples=[
        "corral backup create --to /mnt/backups/corral",
        "corral backup create --to s3://lab-backups/corral --passphrase-file /etc/corral/passphrase",
    ],
)
def create(
    terminal: Terminal,
    to: PlaceOption = None,
    passphrase_file: PassphraseOption = None,
    jobs: Annotated[
        str | None, typer.Option(metavar="RULE", help="Files of jobs: none, outputs, checkpoints or all.")
    ] = None,
    metrics: Annotated[bool | None, typer.Option("--metrics/--no-metrics", help="The metric history, too.")] = None,
    config: ConfigOption = None,
    home: HomeOption = None,
) -> None:
    """Make a backup while the server runs, read it back, and remove old ones by the rules of the settings."""
    from corral.server.system.backup.backups import make_backup

    settings = _settings(config, home, to, passphrase_file, jobs=jobs, metrics=metrics)
    with refusals():
        result = make_backup(settings)
    made = result.manifest
    rows = sum(table.rows for table in made.tables.values())
    terminal.say(
        f"Backup {made.id} is complete and was read back: "
        f"{counted(rows, 'row')} in {counted(len(made.tables), 'table')}, "
        f"{formats.count(made.files, 'file')} ({formats.size(made.file_bytes)}), {formats.size(made.written)} new."
    )
    for line in made.left_out:
        terminal.note(f"Left out: {line}")
    if result.removed:
        terminal.say(f"Removed by retention: {', '.join(result.removed)} ({formats.size(result.freed)} free).")
    if terminal.as_json:
        terminal.json({**_shown(made), "removed": list(result.removed), "freed_bytes": result.freed})


@command(app, "ls", connects=False, examples=["corral backup ls", "corral backup ls --from /mnt/backups/corral"])
def ls(
    terminal: Terminal,
    from_: FromOption = None,
    config: ConfigOption = None,
    home: HomeOption = None,
) -> None:
    """List complete backups, the latest last."""
    from corral.server.system.backup.backup_places import open_archive
    from corral.server.system.backup.backups import list_backups

    settings = _settings(config, home, from_, None)
    with refusals():
        found = [_shown(manifest) for manifest in list_backups(open_archive(settings.backup, make=False))]
    terminal.table(
        ("BACKUP", "STORE", "SCHEMA", "ROWS>", "FILES>", "SIZE>", "NEW>", "HOST~"),
        found,
        lambda item: (
            item["id"],
            item["store"]["kind"],
            item["store"]["schema"],
            str(item["rows"]),
            str(item["files"]),
            formats.size(item["file_bytes"]),
            formats.size(item["written_bytes"]),
            item["host"],
        ),
        empty="There is no backup.",
    )


@command(
    app,
    "verify",
    connects=False,
    examples=["corral backup verify", "corral backup verify 20260102T030405.678901Z-1a"],
)
def verify(
    terminal: Terminal,
    backup: BackupArgument = None,
    from_: FromOption = None,
    config: ConfigOption = None,
    home: HomeOption = None,
) -> None:
    """Read a whole backup and compare every digest."""
    from corral.backup.verification import verify_backup
    from corral.server.system.backup.backup_places import open_archive
    from corral.server.system.backup.backups import find_backup

    settings = _settings(config, home, from_, None)
    with refusals():
        blobs = open_archive(settings.backup, make=False)
        manifest = find_backup(blobs, backup)
        found = verify_backup(blobs, manifest)
    terminal.answer(
        {"id": manifest.id, "tables": found.tables, "rows": found.rows, "files": found.files, "bytes": found.bytes},
        f"Backup {manifest.id} is whole: {counted(found.rows, 'row')} in {counted(found.tables, 'table')}, "
        f"{formats.count(found.files, 'file')}, {formats.size(found.bytes)} read.",
    )


@command(app, "rm", connects=False, examples=["corral backup rm 20260102T030405.678901Z-1a"])
def rm(
    terminal: Terminal,
    backups: Annotated[list[str], typer.Argument(metavar="BACKUP")],
    from_: FromOption = None,
    config: ConfigOption = None,
    home: HomeOption = None,
    yes: YesOption = False,
) -> None:
    """Remove backups, and what no other backup needs."""
    from corral.server.system.backup.backups import delete_backups

    settings = _settings(config, home, from_, None)
    terminal.confirm(f"Remove {formats.count(len(backups), 'backup')} for good?", assume_yes=yes)
    with refusals():
        freed = delete_backups(settings, backups)
    terminal.answer({"removed": backups, "freed_bytes": freed}, f"Removed; {formats.size(freed)} became free.")


@command(
    app,
    "restore",
    connects=False,
    examples=[
        "corral backup restore --from /mnt/backups/corral --home /var/lib/corral --check",
        "corral backup restore 20260102T030405.678901Z-1a --from s3://lab-backups/corral --home /var/lib/corral",
    ],
)
def restore(
    terminal: Terminal,
    backup: BackupArgument = None,
    from_: FromOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Rehearse: read and compare everything, change nothing.")
    ] = False,
    passphrase_file: PassphraseOption = None,
    skip_ids: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Numbers of jobs that are left out after the last one; default 10000."),
    ] = None,
    config: ConfigOption = None,
    home: HomeOption = None,
) -> None:
    """Restore into an empty home and an empty database; nothing is overwritten. Then start the server once with
    `corral up --take-over`."""
    from corral.server.system.backup.backup_places import open_archive, passphrase_of
    from corral.server.system.backup.backups import find_backup
    from corral.server.system.backup.restore import restore as restore_backup
    from corral.stores.copying.store_dump import SKIPPED_IDS

    settings = _settings(config, home, from_, passphrase_file)
    with refusals():
        blobs = open_archive(settings.backup, make=False)
        manifest = find_backup(blobs, backup)
        done = restore_backup(
            settings,
            blobs,
            manifest,
            passphrase=passphrase_of(settings.backup),
            rehearse=check,
            skipped_ids=SKIPPED_IDS if skip_ids is None else skip_ids,
        )
    body = {
        "id": manifest.id,
        "home": done.home,
        "database": done.database,
        "rehearsal": done.is_rehearsal,
        "rows": done.verified.rows,
        "tables": {name: table.rows for name, table in manifest.tables.items()},
        "files": done.verified.files,
        "missing": list(done.missing),
    }
    verb = "can be restored" if check else "is restored"
    terminal.answer(
        body,
        f"Backup {manifest.id} {verb}: {counted(done.verified.rows, 'row')}, {counted(done.verified.files, 'file')}.",
    )
    if not terminal.as_json:
        for line in done.missing:
            terminal.note(f"Missing: {line}")
        if not check:
            terminal.note("Make sure that the former server does not run, then start this one: corral up --take-over")


def _settings(
    config: Path | None,
    home: Path | None,
    place: str | None,
    passphrase_file: Path | None,
    *,
    jobs: str | None = None,
    metrics: bool | None = None,
) -> Settings:
    if place == "":
        raise WrongUsage("the place is empty", hint="Write a directory, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX.")
    is_directory = place is not None and "://" not in place
    overrides: dict[str, Any] = {
        "backup.to": str(Path(place).absolute()) if place is not None and is_directory else place,
        "backup.passphrase_file": None if passphrase_file is None else str(passphrase_file.absolute()),
        "backup.jobs": jobs,
        "backup.metrics": metrics,
    }
    return server_settings(config, home, overrides)


def _shown(manifest: Manifest) -> dict[str, Any]:
    return {
        "id": manifest.id,
        "at": formats.rfc3339(manifest.at),
        "store": dict(manifest.store),
        "corral": manifest.corral,
        "host": manifest.host,
        "home": manifest.home,
        "rows": sum(table.rows for table in manifest.tables.values()),
        "tables": {name: table.rows for name, table in manifest.tables.items()},
        "files": manifest.files,
        "file_bytes": manifest.file_bytes,
        "written_bytes": manifest.written,
        "seconds": manifest.seconds,
        "encrypted": manifest.sealed is not None,
        "left_out": list(manifest.left_out),
    }
