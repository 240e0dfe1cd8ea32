"""`corral quota`: limits of users and what they hold; and `corral scores`: fair-share scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.scheduling.queues import NO_LIMIT
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.hints import none_found
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.client.views import HeldView, KindQuotaView, QuotaUsageView

app = typer.Typer(help="See quotas; set them (operators).", no_args_is_help=True)
top = typer.Typer()

KINDS = ("workbench", "training", "distributed", "preset")
VOLUME_TYPES = ("block", "filesystem", "local", "object")


@command(app, "show", examples=["corral quota show", "corral quota show maria -o json"])
def show(
    terminal: Terminal,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Default: you.")] = None,
) -> None:
    """Show a user's quota, and how much of it unfinished jobs hold."""
    with terminal.client() as client:
        # all users may see their own quota; only operators see those of others
        quota = client.quotas.mine() if user is None else client.quotas.get(user)
        name = quota["user"]
        kinds = [(kind, limits) for kind, limits in quota["kinds"].items() if _is_limited(limits)]
        hint = f"Set one: corral quota set {name} --kind training --gpus 8"
        empty = "" if terminal.as_json else none_found(client, kinds, f"{name} has no quota.", hint)
    if terminal.as_json:
        terminal.json(quota)
        return
    volumes = [(kind, held) for kind, held in quota["volumes"].items() if held["limit"] is not None]
    if kinds or not volumes:
        terminal.table(
            ("KIND", "GPUS>", "CPUS>", "MEMORY>"),
            kinds,
            lambda entry: (entry[0], _of(entry[1]["gpus"]), _of(entry[1]["cpus"]), _bytes_of(entry[1]["memory_bytes"])),
            empty=empty,
        )
    if volumes:
        terminal.table(("VOLUMES", "SIZE>"), volumes, lambda entry: (entry[0], _bytes_of(entry[1])), empty="")


@command(app, "ls", examples=["corral quota ls", "corral quota ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the GPU quotas of all users per job kind, and how much of them is held (operators)."""
    with terminal.client() as client:
        found = list(client.quotas.list())
    terminal.table(
        ("USER", *(f"{kind.upper()}>" for kind in KINDS), "VOLUMES~?"),
        found,
        lambda view: (view["user"], *(_of(view["kinds"][kind]["gpus"]) for kind in KINDS), _volumes(view)),
        empty="No users. Create one: corral user create NAME",
    )


@command(
    app,
    "set",
    examples=[
        "corral quota set maria --kind training --gpus 8 --memory 256GiB",
        "corral quota set --users maria,nora --kind workbench --gpus 3",
        "corral quota set --all --volume block=1TiB --volume local=none",
        "corral quota set maria --gpus none",
    ],
)
def set_quota(
    terminal: Terminal,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="A user's name.")] = None,
    users: Annotated[str | None, typer.Option(metavar="A,B,…", help="Several users, the same change for each.")] = None,
    all_users: Annotated[bool, typer.Option("--all", help="The same change for all users.")] = False,
    kind: Annotated[str, typer.Option(help="The job kind that the limits are for.")] = "training",
    gpus: Annotated[str | None, typer.Option(metavar="N", help="Most GPUs; the word none removes the limit.")] = None,
    cpus: Annotated[str | None, typer.Option(metavar="N", help="Most CPUs, or none.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Most memory, or none.")] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE=SIZE", help="Most bytes of block, filesystem, local or object; repeatable."),
    ] = None,
) -> None:
    """Set the quotas of users. Limits that are not given stay as they are; running jobs are not changed."""
    limits: dict[str, float | int | None] = {}
    if gpus is not None:
        limits["gpus"] = _amount("--gpus", gpus)
    if cpus is not None:
        limits["cpus"] = _amount("--cpus", cpus)
    if memory is not None:
        limits["memory_bytes"] = _bytes("--memory", memory)
    quota: dict[str, Any] = {kind: limits} if limits else {}
    if volume:
        quota["volumes"] = _volume_limits(volume)
    if not quota:
        raise WrongUsage("nothing to set", hint="Give --gpus, --cpus, --memory or --volume.")
    if kind not in KINDS:
        raise WrongUsage(f"--kind: there is no kind {kind!r}", hint=f"Choose one of {', '.join(KINDS)}.")
    names = _users(user, users, all_users=all_users)
    with terminal.client() as client:
        views = client.quotas.edit(names, quota)
    if terminal.as_json:
        terminal.json({"items": list(views)} if names is None or len(names) > 1 else views[0])
    elif len(views) == 1 and limits:
        terminal.say(f"Quota of {views[0]['user']} for {kind}: {', '.join(_limits(views[0]['kinds'][kind]))}")
    else:
        terminal.say(f"Changed the quota of {formats.count(len(views), 'user')}.")


@command(
    top,
    "scores",
    section=Section.QUEUE,
    examples=["corral scores", "corral scores maria", "corral scores maria --model A100-80G --since 7d"],
)
def scores(
    terminal: Terminal,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Show the history of this user's scores.")] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Only of this GPU model.")] = None,
    since: Annotated[str, typer.Option(metavar="DURATION", help="How far back.")] = "24h",
    points: Annotated[int, typer.Option(metavar="N", help="At most N points per model.")] = 25,
) -> None:
    """Show the scores of the fair-share order, lower goes first; or the history of one user's scores."""
    from corral.core.quantities import parse_duration

    try:
        begin = terminal.now() - parse_duration(since)
    except ValueError as error:
        raise WrongUsage(f"--since: {error}") from error
    with terminal.client() as client:
        if user is None:
            present = sorted(
                (view for view in client.scores.list() if model in (None, view["model"])),
                key=lambda view: (view["model"], -view["score"], view["user"]),
            )
            terminal.table(
                ("USER", "MODEL", "SCORE>", "GPUS NOW>"),
                present,
                lambda view: (view["user"], view["model"], f"{view['score']:.3f}", formats.number(view["usage"])),
                empty="No scores yet: they begin with the first job that holds a GPU.",
            )
            return
        history = list(client.scores.history(user, model=model, since=formats.rfc3339(begin), points=points))
    terminal.table(
        ("MODEL", "AT", "SCORE>", "GPUS>"),
        history,
        lambda view: (
            view["model"],
            formats.local_time(view["at"]),
            f"{view['score']:.3f}",
            formats.number(view["usage"]),
        ),
        empty=f"{user} has used no GPU of that kind.",
    )


def _users(user: str | None, users: str | None, *, all_users: bool) -> Sequence[str] | None:
    """The users whose quota is changed; None means all users."""
    if (user is not None) + (users is not None) + all_users != 1:
        raise WrongUsage("a quota needs exactly one of USER, --users and --all")
    if all_users:
        return None
    names = [user] if user is not None else [name.strip() for name in (users or "").split(",")]
    return [name for name in names if name]


def _is_limited(limits: KindQuotaView) -> bool:
    return any(held["limit"] is not None for held in (limits["gpus"], limits["cpus"], limits["memory_bytes"]))


def _of(held: HeldView) -> str:
    return _use(held, formats.number)


def _bytes_of(held: HeldView) -> str:
    return _use(held, lambda value: formats.size(int(value)))


def _use(held: HeldView, shown: Callable[[float], str]) -> str:
    """ "3 of 8", or "3 + 2 waiting of 8"."""
    limit = "no limit" if held["limit"] is None else shown(held["limit"])
    waiting = f" + {shown(held['asked'])} waiting" if held["asked"] else ""
    return f"{shown(held['held'])}{waiting} of {limit}"


def _volumes(view: QuotaUsageView) -> str:
    limited = [(kind, held) for kind, held in view["volumes"].items() if held["limit"] is not None]
    return ", ".join(f"{kind} {_bytes_of(held)}" for kind, held in limited) or formats.NOTHING


def _limits(limits: KindQuotaView) -> list[str]:
    gpus, cpus, memory = (limits[key]["limit"] for key in ("gpus", "cpus", "memory_bytes"))
    return [
        f"GPUs {'no limit' if gpus is None else formats.number(gpus)}",
        f"CPUs {'no limit' if cpus is None else formats.number(cpus)}",
        f"memory {'no limit' if memory is None else formats.size(int(memory))}",
    ]


def _volume_limits(given: Sequence[str]) -> dict[str, int | None]:
    limits: dict[str, int | None] = {}
    for text in given:
        kind, equals, size = text.partition("=")
        if not equals:
            raise WrongUsage(f"--volume: expected TYPE=SIZE, got {text!r}")
        if kind not in VOLUME_TYPES:
            raise WrongUsage(
                f"--volume: there is no type {kind!r} of volumes", hint=f"Choose one of {', '.join(VOLUME_TYPES)}."
            )
        limits[kind] = _bytes("--volume", size)
    return limits


def _amount(flag: str, text: str) -> float | int | None:
    if text == NO_LIMIT:
        return None
    try:
        value = float(text)
    except ValueError:
        raise WrongUsage(f"{flag}: expected a number or the word {NO_LIMIT}, got {text!r}") from None
    return int(value) if value.is_integer() else value


def _bytes(flag: str, text: str) -> int | None:
    from corral.core.quantities import parse_bytes

    if text == NO_LIMIT:
        return None
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise WrongUsage(f"{flag}: {error}") from error
