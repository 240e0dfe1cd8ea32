"""`corral estimates`: the accuracy of estimated starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.moments import moment_option
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.views import EstimateAccuracyView, EstimateView, HorizonAccuracyView

    Accuracy = EstimateAccuracyView | HorizonAccuracyView

app = typer.Typer()

TITLES = ("HORIZON", "STARTED>", "BEFORE P50>", "BEFORE P90>", "MEDIAN ERROR>")
NOTHING = "No estimate can be checked yet: no job has waited, or no job that waited has started."


@command(
    app,
    "estimates",
    section=Section.QUEUE,
    examples=["corral estimates", "corral estimates --since 7d", "corral estimates -o json"],
)
def estimates(
    terminal: Terminal,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Made since: RFC 3339, or 2h for 2h ago.")] = None,
) -> None:
    """Show the accuracy of estimated starts: of 10 jobs, 5 should start before p50 and 9 before p90."""
    with terminal.client() as client:
        view = client.estimates.accuracy(since=moment_option("--since", since, terminal.now()))
    if terminal.as_json:
        terminal.json(view)
        return
    rows: list[tuple[str, Accuracy]] = [(row["horizon"], row) for row in view["by_horizon"]]
    if rows:
        rows.append(("all", view))
    terminal.table(TITLES, rows, lambda row: _row(*row), empty=NOTHING)
    waiting = view["estimates"] - view["started"]
    if view["estimates"]:
        still = f"; {waiting} of them still wait" if waiting else ""
        terminal.say(f"From {formats.count(view['estimates'], 'estimate')}{still}.")


def _row(horizon: str, found: Accuracy) -> Sequence[str]:
    return (
        horizon,
        str(found["started"]),
        formats.percent(found["before_p50"]),
        formats.percent(found["before_p90"]),
        formats.duration(found["median_error_seconds"]),
    )


def start_text(planned: str | None, estimate: EstimateView | None, now: float) -> str:
    """The start in one cell of a table: the likely one (`about …`), as in the console. A planned start is a bound
    (`by …`), shown where it is the only one known or the earlier of the two."""
    if estimate and (planned is None or formats.moment(estimate["p50"]) <= formats.moment(planned)):
        return f"about {formats.ago(estimate['p50'], now)}"
    return formats.NOTHING if planned is None else f"by {_clock(planned, now)} ({formats.ago(planned, now)})"


def expected_text(estimate: EstimateView, now: float) -> str:
    """Such as `around 14:20:00 (p50, in 12m), before 15:05:00 (p90, in 57m)`."""
    if formats.moment(estimate["p90"]) <= now + 1:
        return "with the next cycle"
    half, most = (
        f"{_clock(estimate[part], now)} ({part}, {formats.ago(estimate[part], now)})" for part in ("p50", "p90")
    )
    return f"around {half}, before {most}"


def _clock(text: str, now: float) -> str:
    """Within a day only the time of day."""
    at = formats.moment(text)
    return formats.clock(at) if abs(at - now) < 20 * 3600 else formats.local_time(text)
