"""`corral report`: reports on GPU usage as HTML, PDF or CSV; once, or on a schedule."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.habits.habit_group import HabitGroup
from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import ReportView, ScheduleView

app = typer.Typer(help="Make, keep and schedule reports on usage (operators).")
schedule_app = typer.Typer(help="Manage reports that are made and sent on a schedule.")
app.add_typer(schedule_app, name="schedule", cls=HabitGroup)

FORMATS = ("html", "pdf", "csv")
DEFAULT_PERIOD = "7d"
STDOUT = "-"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NO_CHANNEL = "none"

ReportArgument = Annotated[str, typer.Argument(metavar="REPORT", help="A report's id, such as r-0a1b2c3d4e.")]
ScheduleArgument = Annotated[str, typer.Argument(metavar="NAME", help="A schedule's name.")]
FormatOption = Annotated[str, typer.Option("--format", metavar="html|pdf|csv", help="The format of the file.")]
FileOption = Annotated[
    str | None, typer.Option("-f", "--file", metavar="FILE", help="Where to save it; - is the standard output.")
]


@default_command(
    app,
    examples=[
        "corral report",
        "corral report --period 30d --format pdf",
        "corral report --since 2026-09-01T00:00:00Z --until 2026-10-01T00:00:00Z --format csv -f september.csv",
        "corral report ls",
        "corral report schedule create weekly --channel mail",
    ],
)
def report(
    terminal: Terminal,
    period: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How far back, until now: 24h, 7d, 30d.  [default: 7d]")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="The beginning (RFC 3339), instead of a period.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="The end; default: now.")] = None,
    form: FormatOption = "html",
    file: FileOption = None,
) -> None:
    """Make a report and save it; with a command, manage reports and schedules (operators)."""
    _check_format(form)
    if since is None and until is not None:
        raise WrongUsage("--until goes with --since")
    body: dict[str, Any] = {"since": since, "until": until} if since else {"period": period or DEFAULT_PERIOD}
    if since and period:
        raise WrongUsage("give --period or --since, not both")
    with terminal.client() as client:
        made = _wait(terminal, client, client.reports.create({key: value for key, value in body.items() if value}))
        _save(terminal, client, made, form, file)


def _wait(terminal: Terminal, client: Client, asked: ReportView) -> ReportView:
    """Shows a spinner on a terminal; a report takes about a second."""
    if terminal.as_json or not sys.stderr.isatty():
        made = client.reports.wait(asked["id"])
    else:
        from corral.cli.terminal import tables

        with tables.terminal_console(to_stderr=True).status(f"Making {asked['title']} …"):
            made = client.reports.wait(asked["id"])
    if made["state"] == "failed":
        raise ClientError(f"report {made['id']} could not be made: {made['error']}")
    return made


def _save(terminal: Terminal, client: Client, made: ReportView, form: str, file: str | None) -> None:
    """Save the report in a file, or write it to the standard output."""
    if file == STDOUT and terminal.as_json:
        raise WrongUsage("-f - and -o json would mix in one output")
    content = client.reports.file(made["id"], form)
    if file == STDOUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = Path(file) if file else Path(f"corral-report-{made['until'][:10]}-{made['id']}.{form}")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ClientError(
            f"cannot write {path}: {error.strerror}", hint="Choose another place with -f FILE."
        ) from error
    terminal.answer({**made, "file": str(path)}, f"Saved {made['title']} as {path}")


@command(app, "ls", examples=["corral report ls", "corral report ls -o json"])
def ls(
    terminal: Terminal,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N reports.")] = 50,
) -> None:
    """List reports, newest first."""
    now = terminal.now()
    with terminal.client() as client:
        found = list(client.reports.list(limit=limit))
    terminal.table(
        ("ID", "STATE!", "MADE", "BY", "SCHEDULE?", "TITLE~"),
        found,
        lambda view: (
            view["id"],
            view["state"],
            formats.ago(view["created_at"], now),
            view["created_by"],
            view["schedule"] or formats.NOTHING,
            view["title"],
        ),
        empty="No reports yet. Make one: corral report",
    )


@command(app, "show", examples=["corral report show r-0a1b2c3d4e"])
def show(terminal: Terminal, report: ReportArgument) -> None:
    """Show the state of one report."""
    with terminal.client() as client:
        view = client.reports.get(report)
    now = terminal.now()
    terminal.facts(
        view,
        [
            ("Id", view["id"]),
            ("Title", view["title"]),
            ("State", view["state"]),
            ("Error", view["error"]),
            ("From", formats.local_time(view["since"])),
            ("Until", formats.local_time(view["until"])),
            ("Made", formats.at_and_ago(view["created_at"], now)),
            ("By", view["created_by"]),
            ("Schedule", view["schedule"] or ""),
            ("Formats", formats.listed(view["formats"]) if view["formats"] else ""),
        ],
    )


@command(
    app,
    "get",
    examples=["corral report get r-0a1b2c3d4e --format pdf", "corral report get r-0a1b2c3d4e --format csv -f -"],
)
def get(terminal: Terminal, report: ReportArgument, form: FormatOption = "html", file: FileOption = None) -> None:
    """Save a report that was made before."""
    _check_format(form)
    with terminal.client() as client:
        view = client.reports.get(report)
        _save(terminal, client, view, form, file)


@command(app, "rm", examples=["corral report rm r-0a1b2c3d4e"])
def rm(
    terminal: Terminal,
    reports: Annotated[list[str], typer.Argument(metavar="REPORT", help="One or more ids.")],
    yes: YesOption = False,
) -> None:
    """Delete reports and their files."""
    terminal.confirm(f"Delete {formats.count(len(reports), 'report')}: {formats.listed(reports)}?", assume_yes=yes)
    with terminal.client() as client:
        for report in reports:
            client.reports.delete(report)
    terminal.answer({"deleted": reports}, f"Deleted report {formats.listed(reports)}")


# ---------------------------------------------------------------- schedules

PeriodOption = Annotated[str | None, typer.Option(metavar="daily|weekly|monthly", help="What each report covers.")]
HourOption = Annotated[int | None, typer.Option(min=0, max=23, metavar="H", help="Hour of the day, in UTC.")]
WeekdayOption = Annotated[str | None, typer.Option(metavar="DAY", help="Of weekly ones: monday … sunday.")]
ChannelsOption = Annotated[
    list[str] | None, typer.Option("--channel", metavar="CHANNEL", help="Where it is sent; repeatable.")
]
EnabledOption = Annotated[bool | None, typer.Option("--enable/--disable", help="Switch it on or off.")]


@default_command(
    schedule_app,
    lists=True,
    examples=["corral report schedule", "corral report schedule create weekly --channel mail"],
)
def schedule(terminal: Terminal) -> None:
    """List schedules; with a command, manage them."""
    _list_schedules(terminal)


@command(schedule_app, "ls", examples=["corral report schedule ls", "corral report schedule ls -o json"])
def schedule_ls(terminal: Terminal) -> None:
    """List schedules and when each makes its next report."""
    _list_schedules(terminal)


def _list_schedules(terminal: Terminal) -> None:
    now = terminal.now()
    with terminal.client() as client:
        found = list(client.reports.schedules())
    terminal.table(
        ("NAME", "WHEN~", "ENABLED", "NEXT", "CHANNELS~"),
        found,
        lambda view: (
            view["name"],
            _when(view),
            "yes" if view["enabled"] else "no",
            formats.ago(view["next_run"], now),
            formats.listed(view["channels"]),
        ),
        empty="No schedules. Create one: corral report schedule create NAME --period weekly",
    )


def _when(view: ScheduleView) -> str:
    day = {"weekly": f"every {WEEKDAYS[view['weekday']].capitalize()}", "monthly": "on the 1st of the month"}
    return f"{day.get(view['period'], 'every day')} at {view['hour']:02d}:00 UTC"


@command(
    schedule_app,
    "create",
    examples=[
        "corral report schedule create weekly --channel mail",
        "corral report schedule create months --period monthly --hour 7 --channel mail --channel team-chat",
    ],
)
def schedule_create(
    terminal: Terminal,
    name: ScheduleArgument,
    period: PeriodOption = None,
    hour: HourOption = None,
    weekday: WeekdayOption = None,
    channel: ChannelsOption = None,
    enabled: EnabledOption = None,
) -> None:
    """Schedule a daily, weekly or monthly report, which is sent to channels."""
    body = {"name": name, **_changes(period, hour, weekday, channel, enabled)}
    with terminal.client() as client:
        view = client.reports.create_schedule(body)
    terminal.answer(view, f"Created schedule {view['name']}: {_when(view)}, {_next(view, terminal.now())}")


@command(
    schedule_app,
    "edit",
    examples=["corral report schedule edit weekly --hour 7", "corral report schedule edit weekly --channel none"],
)
def schedule_edit(
    terminal: Terminal,
    name: ScheduleArgument,
    period: PeriodOption = None,
    hour: HourOption = None,
    weekday: WeekdayOption = None,
    channel: ChannelsOption = None,
    enabled: EnabledOption = None,
) -> None:
    """Change a schedule. The word none removes all channels."""
    changes = _changes(period, hour, weekday, channel, enabled)
    check_changes(changes, "report schedule edit")
    with terminal.client() as client:
        view = client.reports.edit_schedule(name, changes)
    terminal.answer(view, f"Changed schedule {view['name']}: {_when(view)}, {_next(view, terminal.now())}")


@command(schedule_app, "rm", examples=["corral report schedule rm weekly"])
def schedule_rm(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="One or more schedules.")],
    yes: YesOption = False,
) -> None:
    """Delete schedules. The reports that they made stay."""
    terminal.confirm(f"Delete {formats.count(len(names), 'schedule')}: {formats.listed(names)}?", assume_yes=yes)
    with terminal.client() as client:
        for name in names:
            client.reports.delete_schedule(name)
    terminal.answer({"deleted": names}, f"Deleted schedule {formats.listed(names)}")


def _changes(
    period: str | None, hour: int | None, weekday: str | None, channels: Sequence[str] | None, enabled: bool | None
) -> dict[str, Any]:
    """The given options as fields of the API."""
    given: dict[str, Any] = {"period": period, "hour": hour, "enabled": enabled}
    if weekday is not None:
        found = [place for place, day in enumerate(WEEKDAYS) if len(weekday) > 1 and day.startswith(weekday.lower())]
        if len(found) != 1:
            raise WrongUsage(f"--weekday: {weekday!r} is not one of {', '.join(WEEKDAYS)}")
        given["weekday"] = found[0]
    if channels:
        given["channels"] = [] if list(channels) == [NO_CHANNEL] else list(channels)
    return given_fields(given)


def _next(view: ScheduleView, now: float) -> str:
    return "switched off" if view["next_run"] is None else f"next {formats.ago(view['next_run'], now)}"


def _check_format(form: str) -> None:
    if form not in FORMATS:
        raise WrongUsage(f"--format: {form!r} is not one of {', '.join(FORMATS)}")
